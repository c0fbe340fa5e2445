"""Held-out cells by item are those of the grid."""

from __future__ import annotations

import numpy as np

from openloop.propensity import Popularity
from openloop.propensity.checks.by_item import CountModel, held_out
from openloop.propensity.checks.held_out import HeldOut, judged
from tests.examples import same

U, I = 40, 6
rng = np.random.default_rng(0)
SEEN = rng.random((U, I)) < np.array([0.1, 0.2, 0.4, 0.5, 0.8, 0.95])
COUNTS = SEEN.sum(axis=0)


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
