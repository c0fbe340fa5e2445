"""Known propensities are handed through, and refused where they do not fit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from openloop.data.simulate import movie_lovers
from openloop.errors import AlignmentError, ColumnError, PropensityError
from openloop.propensity.known import Known
from tests.contracts import PropensityModelContract
from tests.facts import facts

WORLD = movie_lovers(users=30, items=20)


class TestKnownColumn(PropensityModelContract):
    has_matrix = has_margins = sums_to_log = False
    needs_share = False

    def make(self):
        return Known()


class TestKnownArray(PropensityModelContract):
    has_margins = False
    sums_to_log = False  # nothing is fitted to the log
    needs_share = False

    def make(self):
        return Known(WORLD.propensities)


def test_an_array_is_looked_up_for_each_cell():
    log = WORLD.observe(0)
    P = np.random.default_rng(0).uniform(0.1, 1.0, (30, 20))
    p = Known(P).fit(log).predict(log)
    assert [p.values[n] for n in (0, 5)] == [P[log.user[n], log.item[n]] for n in (0, 5)]


def test_a_log_without_the_column_is_refused_by_fit_and_by_predict():
    log = WORLD.observe(0)
    bare = replace(log, propensity=None)
    with pytest.raises(ColumnError, match="propensity="):
        Known().fit(bare)
    with pytest.raises(ColumnError, match="propensity="):
        Known().fit(log).predict(bare)


@pytest.mark.parametrize("shape", [(20, 30), (20,), (30, 20, 1)])
def test_an_array_of_another_shape_is_refused(shape):
    with pytest.raises(AlignmentError, match=facts("Known", "values", (30, 20), shape)):
        Known(np.full(shape, 0.5)).fit(WORLD.observe(0))


@pytest.mark.parametrize("value", [0.0, -0.1, 1.1, np.nan])
def test_values_outside_0_1_are_refused_wherever_they_stand(value):
    P = WORLD.propensities.copy()
    P[-1, -1] = value
    with pytest.raises(PropensityError, match="Known"):
        Known(P).fit(WORLD.observe(0))
