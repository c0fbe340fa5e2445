"""Bounds hold, are wider than what is seen, and say so by numbers that are theirs."""

from __future__ import annotations

import numpy as np
import pytest

from openloop.estimators.bounds import generalisation_bound
from openloop.studies.schnabel2016 import bounds
from openloop.studies.schnabel2016.estimates import ETA
from openloop.studies.schnabel2016.worlds import OBSERVED, observation_model


def test_tightness_compares_a_bound_with_the_quantile_of_deviations():
    found = bounds._tightness(0.9, np.arange(1, 101) / 100)
    assert found.seen == pytest.approx(np.quantile(np.arange(1, 101) / 100, 0.95))
    assert found.beyond == pytest.approx(0.1)
    assert found.ratio == pytest.approx(0.9 / found.seen)


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
    assert all(row[1] >= row[5] for row in inaccurate.rows)  # the bias of any model, by Lemma 5.1
