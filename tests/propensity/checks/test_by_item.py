"""Held-out cells by item are those of the grid: the same numbers as cell by cell, of a fold with the same counts."""

from __future__ import annotations

import numpy as np
import pytest

from openloop.core.feedback import Feedback
from openloop.errors import UndefinedError
from openloop.propensity import Calibrated, Known, Logistic, Popularity, Uniform
from openloop.propensity.checks import by_item
from openloop.propensity.checks.by_item import CountModel, held_out
from openloop.propensity.checks.held_out import HeldOut, judged, to_pi
from openloop.propensity.checks.overlap import overlap
from tests.examples import same

U, I = 40, 6
rng = np.random.default_rng(0)
SEEN = rng.random((U, I)) < np.array([0.1, 0.2, 0.4, 0.5, 0.8, 0.95])
LOG = Feedback.from_arrays(*np.nonzero(SEEN), np.ones(SEEN.sum()), users=U, items=I)
COUNTS = SEEN.sum(axis=0)


class Own(Popularity):
    """A class of one's own, of which nobody knows how it predicts."""


def test_models_of_counts_are_known_and_no_others():
    popularity = Popularity(gamma=1.0).fit(LOG)
    assert CountModel.of(popularity).name == "Popularity"
    raised = CountModel.of(Calibrated(Popularity(gamma=1.0), method=None, floor=0.3).fit(LOG))
    assert (raised.name, raised.fitted.min()) == ("Calibrated(Popularity)", 0.3)
    quantile = Calibrated(Popularity(gamma=1.0), method=None, quantile=0.2).fit(LOG)
    for other in (Own(gamma=1.0).fit(LOG), Logistic(reg=1.0).fit(LOG), Known(np.full((U, I), 0.5)).fit(LOG), quantile):
        assert CountModel.of(other) is None


def test_each_cell_outside_a_train_part_is_there_once():
    found = held_out(CountModel(model=Uniform()), COUNTS, U, share=1.0, folds=3, rng=np.random.default_rng(1))
    assert found.weight @ found.observed == len(LOG)
    assert found.weight.sum() == 3 * (U * I - len(LOG)) + len(LOG)
    assert set(found.observed) == {0.0, 1.0}


def test_entries_of_many_cells_are_judged_as_these_cells():
    found = held_out(
        CountModel(model=Popularity(gamma=1.0)), COUNTS, U, share=0.5, folds=4, rng=np.random.default_rng(2)
    )
    times = found.weight.astype(int)
    names = ("p", "pi", "observed", "s", "t")
    apart = HeldOut(**{n: np.repeat(getattr(found, n), times) for n in names}, weight=np.ones(times.sum()))
    one, other = (judged(x, 0.4, folds=4, bins=5) for x in (found, apart))
    assert one.cells == other.cells == times.sum()
    assert [b.n for b in one.curve] == [b.n for b in other.curve]
    for name in ("error", "chance", "mean_predicted", "mean_observed", "log_likelihood", "uniform"):
        same(getattr(one, name), getattr(other, name))
    same([b.stderr for b in one.curve], [b.stderr for b in other.curve])


def test_p_of_a_fold_is_refitted_to_the_counts_of_the_others():
    found = held_out(CountModel(model=Uniform()), COUNTS, U, share=1.0, folds=2, rng=np.random.default_rng(3))
    n = len(LOG)
    train = np.array([n - (n // 2 + n % 2), n - n // 2])  # the first fold has the odd row
    s = train / n
    for p in zip(np.unique(found.s), np.unique(s), strict=True):
        same(*p)
    same(np.unique(found.p), n / (U * I))  # (n·s)/(U·I·s)
    same(found.pi, to_pi(found.p, found.s, found.t))


def test_the_overlap_is_that_of_all_cells():
    model = Popularity(gamma=1.0).fit(LOG)
    found = by_item.overlap(CountModel.of(model), COUNTS, U)
    expected = overlap(model, LOG, model.predict(LOG).used)
    assert (found.cells, found.edges, found.below) == (expected.cells, expected.edges, expected.below)
    same(found.observed, expected.observed)
    same(found.grid, expected.grid)


def test_rows_that_cannot_be_dealt_by_counts_are_refused(monkeypatch):
    monkeypatch.setattr(by_item, "MOST", len(LOG))
    with pytest.raises(UndefinedError, match=f"Uniform: {len(LOG)} rows .* folds=None"):
        held_out(CountModel(model=Uniform()), COUNTS, U, share=1.0, folds=2, rng=np.random.default_rng(0))
