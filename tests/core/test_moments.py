"""Moments: strata collapse, and all users may be one."""

from __future__ import annotations

import numpy as np

from openloop.blocks.block import Outcome
from openloop.core.moments import Moments
from openloop.estimators.stratified import stratified
from openloop.estimators.weighted import clipped, ips, naive, snips
from openloop.metrics.naming import metric
from tests.examples import moments, rows_of, same, small_world

WORLD = small_world()
LOG = WORLD.observe(1)
ERROR = WORLD.predictions["a"][LOG.user, LOG.item]
EDGES = (0.4, 0.6)


def of_rows(keep=slice(None), name="mae", edges=EDGES, cap=2.0):
    p = LOG.propensity[keep]
    rows = rows_of(LOG, n_strata=len(edges) + 1, stratum=np.searchsorted(edges, LOG.propensity)).take(keep)
    assert len(rows) == len(p)
    return moments(metric(name), rows, Outcome(prediction=ERROR[keep]), cap=cap, edges=edges)


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
