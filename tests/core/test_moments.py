"""Moments: shapes are checked, strata collapse, parts merge to the whole."""

from __future__ import annotations

import numpy as np
import pytest

from openloop.core.moments import Moments
from openloop.errors import AlignmentError
from openloop.estimators.stratified import stratified
from openloop.estimators.weighted import clipped, ips, naive, snips
from openloop.metrics.naming import metric
from openloop.sources.arrays.rows import Outcome
from tests.examples import moments, rows_of, same, small_world
from tests.facts import facts

WORLD = small_world()
LOG = WORLD.observe(1)
ERROR = WORLD.predictions["a"][LOG.user, LOG.item]
EDGES = (0.4, 0.6)


def of_rows(keep=slice(None), name="mae", edges=EDGES, cap=2.0):
    p = LOG.propensity[keep]
    rows = rows_of(LOG, edges=edges, stratum=np.searchsorted(edges, LOG.propensity)).take(keep)
    assert len(rows) == len(p)
    return moments(metric(name), rows, Outcome(prediction=ERROR[keep]), cap=cap)


def assert_same_moments(a: Moments, b: Moments):
    assert set(a.sums) == set(b.sums)
    for name in a.sums:
        same(a.sums[name], b.sums[name])
    same(a.powers, b.powers)
    same(a.cut_powers, b.cut_powers)
    same(a.clipped, b.clipped)
    assert a.weights.n == b.weights.n
    same(a.weights.squares, b.weights.squares)


@pytest.mark.parametrize("seed", range(3))
def test_splitting_rows_and_merging_gives_the_whole(seed):
    part = np.random.default_rng(seed).random(len(LOG)) < 0.3
    assert_same_moments(of_rows(part) + of_rows(~part), of_rows())


def test_merging_is_commutative_and_associative():
    third = np.arange(len(LOG)) % 3
    a, b, c = (of_rows(third == j) for j in range(3))
    assert_same_moments(a + b, b + a)
    assert_same_moments((a + b) + c, a + (b + c))


def test_strata_collapse_to_the_moments_without_them():
    assert_same_moments(of_rows().collapse(), of_rows(edges=()))
    assert of_rows().collapse().edges == ()


def test_all_users_as_one_have_the_value_and_its_variance_over_cells():
    whole = of_rows()
    for estimator in (naive, ips, snips, clipped, stratified):
        a, b = estimator(whole), estimator(whole.as_one_user())
        same(a.value, b.value)
        same(a.cell_variance, b.cell_variance)


@pytest.mark.parametrize("other", [{"name": "mse"}, {"edges": (0.5,)}, {"cap": 3.0}])
def test_moments_of_different_things_do_not_merge(other):
    with pytest.raises(AlignmentError, match=facts("Moments", "metric", "strata", "cap")):
        of_rows() + of_rows(**other)


def by_hand(ids, n):
    sums = {"n": np.array(n, float)[:, None], "gain": 2 * np.array(n, float)[:, None]}
    cells = np.full(len(n), 10.0)
    return Moments(metric=metric("mae"), sums=sums, cells=cells, ids=None if ids is None else np.array(ids))


def test_parts_that_name_their_users_merge_by_name():
    merged = by_hand(["a", "c"], [1, 2]) + by_hand(["b", "c"], [5, 7])
    assert merged.ids.tolist() == ["a", "b", "c"]
    assert merged.sums["n"][:, 0].tolist() == [1, 5, 9]
    assert merged.cells.tolist() == [10, 10, 10]


def test_named_and_unnamed_users_do_not_merge():
    with pytest.raises(AlignmentError, match=facts("Moments", "users", "frames")):
        by_hand(["a"], [1]) + by_hand(None, [1])


def test_parts_of_different_populations_do_not_merge():
    one, three = by_hand(None, [1]), by_hand(None, [1, 2, 3])  # which NumPy would broadcast
    with pytest.raises(AlignmentError, match=facts("population", 1, 3)):
        one + three
    with pytest.raises(AlignmentError, match=facts("population", 3, 1)):
        three + one
