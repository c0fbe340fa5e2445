"""The experiment: every model in every split, in the shape of Coat and of Yahoo! R3."""

from __future__ import annotations

import numpy as np
import pytest

from openloop.studies.jadidinejad2021 import ITEMS, models
from openloop.studies.jadidinejad2021.experiment import COLUMNS, one_more
from openloop.studies.jadidinejad2021.open_loop import TARGETS
from openloop.studies.kit.running import Run
from openloop.studies.kit.trials import Trials
from tests.studies.jadidinejad2021 import many


class Scorer:
    """A model by name: popular items first, more or less."""

    def __init__(self, name):
        self.name = name

    def fit(self, log):
        name = self.name
        rng = np.random.default_rng([len(name), ord(name[0]), ord(name[-1])])
        counts = np.bincount(log.item, minlength=log.n_items)
        self.held = rng.uniform(-1, 2) * np.log1p(counts) + rng.normal(size=(log.n_users, log.n_items))
        return self

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
    monkeypatch.setattr(models, "unfitted", lambda name, _start: Scorer(name))
    with Trials(yahoo / "cache", 0) as trials:
        run = Run(folder=yahoo, quick=True, seed=0, trials=trials)
        results = [item.function(run) for item in ITEMS if item.name in ("figure3", "table6", "figure4")]
    assert [result.data for result in results] == [("yahoo-r3",)] * 3
    coded = results[1].tables[0]
    assert coded.name == "table6_yahoo-r3_as_coded"
    assert coded.rows[-1][1].published == 0.622
    assert all(-1 <= value.value <= 1 for _, value in coded.values())


def test_every_method_has_a_column():
    found = many.some_experiment(2)
    columns = {name.partition(":")[0] for name in found.splits[0].methods}
    assert columns == {"as coded", "as printed", *COLUMNS.values()}
    assert len(found.splits[0].methods) == 5 + 5 + 2 * (1 + 4 * len(found.p))


def test_agreement_covers_methods_targets_splits_and_weightings():
    found = many.some_experiment(2)
    agreed = found.agreement(20)
    assert agreed.values.shape == (len(found.splits[0].methods), len(TARGETS), 2, 1 + 20)
    assert np.isfinite(agreed.values).all()


def test_on_a_world_where_popularity_decides_what_is_seen_ours_agree_better_than_holdout():
    found = many.some_experiment(3)
    agreed = found.agreement(20)
    for name in ("ours: snips of adg, popularity", "ours: 5 strata, popularity"):
        assert agreed.ahead(name, "as coded: holdout", "candidates").value > 0.05


def test_one_more_draw_is_within_the_limits_in_95_percent():
    drawn = np.random.default_rng(0).normal(size=(6, 4000))
    inside = np.mean(np.abs(drawn[0] - drawn[1:].mean(axis=0)) <= one_more(drawn[1:]))
    assert inside == pytest.approx(0.95, abs=3.3 * np.sqrt(0.95 * 0.05 / 4000))  # two deviations have 90 %
