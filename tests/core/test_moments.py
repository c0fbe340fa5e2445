"""Moments: shapes are checked, strata collapse."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from openloop.core.moments import Moments
from openloop.errors import AlignmentError, UndefinedError
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


def test_strata_collapse_to_the_moments_without_them():
    assert_same_moments(of_rows().collapse(), of_rows(edges=()))
    assert of_rows().collapse().edges == ()


def test_all_users_as_one_have_the_value_and_its_variance_over_cells():
    whole = of_rows()
    for estimator in (naive, ips, snips, clipped, stratified):
        a, b = estimator(whole), estimator(whole.as_one_user())
        same(a.value, b.value)
        same(a.cell_variance, b.cell_variance)


def test_strata_of_a_metric_on_whole_users_do_not_collapse():
    whole = of_rows()
    with pytest.raises(UndefinedError, match=facts("map", "strata")):
        replace(whole, metric=metric("map")).collapse()


def by_hand(ids, n):
    sums = {"n": np.array(n, float)[:, None], "gain": 2 * np.array(n, float)[:, None]}
    cells = np.full(len(n), 10.0)
    return Moments(metric=metric("mae"), sums=sums, cells=cells, ids=None if ids is None else np.array(ids))


def test_shapes_are_checked():
    with pytest.raises(AlignmentError, match=facts("gain", (3, 1), "n", (2, 1))):
        Moments(metric=metric("mae"), sums={"n": np.ones((2, 1)), "gain": np.ones((3, 1))}, cells=np.ones(2))
    with pytest.raises(AlignmentError, match=facts("cells", (3,), "2 users")):
        Moments(metric=metric("mae"), sums={"n": np.ones((2, 1))}, cells=np.ones(3))


def test_a_sum_that_was_not_taken_is_named():
    with pytest.raises(UndefinedError, match=facts("mae", "'wgain'", "propensities")):
        by_hand(None, [1, 2]).stack("n", "wgain")


def test_sums_cannot_be_written():
    with pytest.raises(ValueError, match="read-only"):
        of_rows().sums["n"][0, 0] = 5


def test_population_and_users_are_counted():
    m = by_hand(None, [0, 3, 1])
    assert (m.n_users, m.users, m.population, m.n_strata) == (3, 2, 30, 1)
