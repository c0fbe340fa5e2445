"""Bounds hold, are wider than what is seen, and say so by numbers that are theirs."""

from __future__ import annotations

import numpy as np
import pytest

from openloop.estimators.bounds import generalisation_bound
from openloop.studies.schnabel2016 import bounds
from openloop.studies.schnabel2016.estimates import ETA, METRICS
from openloop.studies.schnabel2016.worlds import OBSERVED, observation_model


def test_tightness_compares_a_bound_with_the_quantile_of_deviations():
    found = bounds._tightness(0.9, np.arange(1, 101) / 100)
    assert found.seen == pytest.approx(np.quantile(np.arange(1, 101) / 100, 0.95))
    assert found.beyond == pytest.approx(0.1)
    assert found.ratio == pytest.approx(0.9 / found.seen)


def test_bounds_that_differ_by_draw_are_compared_draw_by_draw():
    found = bounds._tightness(np.array([1.0, 3.0]), np.array([2.0, 2.0]))
    assert (found.bound, found.beyond) == (2.0, 0.5)


def test_a_bound_that_fails_too_often_is_reported_as_failing():
    good, bad = bounds.Tightness(bound=2.0, seen=1.0, beyond=0.0), bounds.Tightness(bound=0.5, seen=1.0, beyond=0.2)
    assert bounds._holds("x", [good], proven=False).holds
    assert not bounds._holds("x", [good, bad], proven=False).holds
    assert [bounds._holds("x", [good], proven=proven).counted for proven in (True, False)] == [False, True]


def test_all_bounds_hold_on_a_small_world(small_run):
    result = bounds.bounds(small_run)
    assert [claim.text for claim in result.claims if not claim.holds] == []
    tail, erm, inaccurate = result.tables
    assert len(tail.rows) == 3 * 5
    assert all(row[3] > 1 for row in tail.rows)
    world = bounds.complete(small_run)
    P = observation_model(world.ratings, 0.25, OBSERVED)
    found = {row[0]: row for row in erm.rows}
    assert found["MAE, α = 0.25"][1] == pytest.approx(generalisation_bound(0.0, P, 5.0, 5, ETA))
    for row in inaccurate.rows:
        assert row[1] == pytest.approx(row[5] + row[6])  # Eq. 16: bias and spread
        assert row[5] >= row[7]  # Δ Σ|1 − P/P̂| is at least the bias of any model


def test_the_minimiser_is_the_model_with_the_least_estimate():
    found = {"truth": np.array([[1.0, 2.0]]), "ips": np.array([[[1.1, 3.0]], [[2.5, 1.5]]])}
    R, gap = bounds._minimiser(found, 0)
    assert R == 1.5  # the first in one draw, the second in the other
    assert gap == pytest.approx(np.quantile([-0.1, 0.5], 0.95))


def test_more_draws_continue_those_of_figure_2(small_run, monkeypatch):
    world = bounds.complete(small_run)
    few = bounds._more_draws(small_run, world, [1.0])[1.0]
    monkeypatch.setattr(type(small_run), "either", lambda _, full, quick: 12 if full == bounds.DRAWN else quick)
    more = bounds._more_draws(small_run, world, [1.0])[1.0]
    assert more["ips"].shape == (12, len(METRICS), 5)
    assert np.array_equal(more["ips"][: len(few["ips"])], few["ips"])
