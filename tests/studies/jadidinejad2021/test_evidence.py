"""The evidence: every model in every split, in the shape of Coat and of Yahoo! R3."""

from __future__ import annotations

import numpy as np
import pytest

from openloop.core.feedback import Feedback
from openloop.studies.jadidinejad2021 import evidence as gathering
from openloop.studies.jadidinejad2021 import figures, models, ranking
from openloop.studies.jadidinejad2021.agreement import TARGETS
from openloop.studies.jadidinejad2021.instances import open_line
from openloop.studies.kit.running import Run
from openloop.studies.kit.trials import Trials
from tests.studies.jadidinejad2021 import many


class Scorer:
    """A model by name: popular items first, more or less."""

    def __init__(self, name, log):
        rng = np.random.default_rng([len(name), ord(name[0]), ord(name[-1])])
        counts = np.bincount(log.item, minlength=log.n_items)
        self.held = rng.uniform(-1, 2) * np.log1p(counts) + rng.normal(size=(log.n_users, log.n_items))

    def scores(self, users):
        return self.held[users]


@pytest.fixture
def yahoo(tmp_path):
    """The folder of a small data set in the format of Yahoo! R3: only some users rated the drawn songs."""
    _, log, drawn = many.logs()
    folder = tmp_path / "yahoo-r3"
    folder.mkdir()
    for part, rows, kept in (("train", log, log.user >= 0), ("test", drawn, drawn.user < 50)):
        lines = zip(rows.user[kept] + 1, rows.item[kept] + 1, rows.rating[kept].astype(int), strict=True)
        text = "".join(f"{u}\t{i}\t{r}\n" for u, i, r in lines)
        (folder / f"ydata-ymusic-rating-study-v1_0-{part}.txt").write_text(text)
    return tmp_path


def test_all_three_items_run_on_yahoo_r3(yahoo, monkeypatch):
    monkeypatch.setattr(models, "fitted", Scorer)
    with Trials(yahoo / "cache", 0) as trials:
        run = Run(folder=yahoo, quick=True, seed=0, trials=trials)
        results = [item(run) for item in (figures.figure3, ranking.table6, figures.figure4)]
    assert [result.data for result in results] == [("yahoo-r3",)] * 3
    coded = results[1].tables[0]
    assert coded.name == "table6_yahoo-r3_as_coded"
    assert coded.rows[-1][1].published == 0.622
    assert all(-1 <= value.value <= 1 for _, value in coded.values())


def test_rounds_know_what_was_trained_on():
    ev = many.some_evidence(2)
    _, log, drawn = many.logs()
    there = set(zip(log.user.tolist(), log.item.tolist(), strict=True))
    kept = drawn.rating >= 4
    cells = zip(drawn.user[kept].tolist(), drawn.item[kept].tolist(), strict=True)
    assert ev.in_log.tolist() == [cell in there for cell in cells]
    assert all((ev.in_log | ~part.in_train).all() for part in ev.rounds)
    assert ev.rounds[0].in_train.sum() != 0


def test_as_coded_the_open_loop_leaves_out_whom_the_log_does_not_show():
    taste, log, drawn = many.logs()
    log = log.take(np.flatnonzero((log.user != 3) & (log.item != 5)))
    given, known = models.given_of(log, drawn), many.scores_of(taste, 3)
    parts = [[many.outcome(given, s, split, 0) for s in known.values()] for split in (models.WHOLE, 0)]
    ev = gathering.assembled(many.Plain(), "coat", given, tuple(known), parts, models.given_of(log))
    user, item = models.relevant(given)
    kept = (user != 3) & (item != 5)
    assert (ev.refitted.user.tolist(), ev.refitted.item.tolist()) == (user[kept].tolist(), item[kept].tolist())
    assert len(ev.in_log) == kept.sum() < len(user) == len(ev.rounds[0].own.user)
    split = models.split_of(given, models.WHOLE, 0)
    line = open_line(given, parts[0], split, 0, "coded")
    assert ev.targets(ev.rounds[0], None)["published"].value() == pytest.approx(line.value)


def test_every_method_has_a_column():
    ev = many.some_evidence(2)
    columns = {name.partition(":")[0] for name in ev.rounds[0].methods}
    assert columns == {"as coded", "as printed", *gathering.COLUMNS.values()}
    assert len(ev.rounds[0].methods) == 5 + 5 + 2 * (1 + 4 * len(ev.p))


def test_agreement_covers_methods_targets_splits_and_weightings():
    ev = many.some_evidence(2)
    found = ev.agreement(None, 20, 4)
    assert found.values.shape == (len(ev.rounds[0].methods), len(TARGETS), 2, 1 + 20 + 8)
    assert np.isfinite(found.values).all()


def test_on_a_world_where_popularity_decides_what_is_seen_ours_agree_better_than_holdout():
    ev = many.some_evidence(3)
    found = ev.agreement(None, 20, 4)
    for name in ("ours: snips of adg, popularity", "ours: 5 strata, popularity"):
        assert found.ahead(name, "as coded: holdout", "candidates").value > 0.05


def test_a_quick_run_has_fewer_models_and_splits():
    full, quick = (gathering.zoo_names(many.Plain(quick=q)) for q in (False, True))
    assert len(full) == 104
    assert set(quick) < set(full)
    assert len(quick) < 20


def test_the_whole_log_is_searched_where_no_rows_are_named():
    log = Feedback.from_arrays([0, 1], [1, 0], [5, 5], users=2, items=2)
    given = models.given_of(log)
    user, item = np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1])
    assert gathering._there(given, None, user, item).tolist() == [False, True, True, False]
    assert gathering._there(given, np.array([0]), user, item).tolist() == [False, True, False, False]
