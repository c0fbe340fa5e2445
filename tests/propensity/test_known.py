"""Known propensities are handed through, and refused where they do not fit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import clone

from openloop.data.simulate import movie_lovers
from openloop.errors import AlignmentError, ColumnError, InputError, PropensityError, UndefinedError
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


def test_the_column_of_the_log_is_handed_through():
    log = WORLD.observe(0)
    np.testing.assert_array_equal(Known().fit(log).predict(log).values, log.propensity)


def test_an_array_is_looked_up_for_each_cell():
    log = WORLD.observe(0)
    P = np.random.default_rng(0).uniform(0.1, 1.0, (30, 20))
    p = Known(P).fit(log).predict(log)
    assert [p.values[n] for n in (0, 5)] == [P[log.user[n], log.item[n]] for n in (0, 5)]


def test_the_array_needs_no_column_and_goes_before_one():
    log = WORLD.observe(0)
    half = np.full((30, 20), 0.5)
    for given in (log, replace(log, propensity=None)):
        assert set(Known(half).fit(given).predict(given).values) == {0.5}


def test_column_and_matrix_of_a_world_agree():
    log = WORLD.observe(1)
    by_column, by_array = Known().fit(log).predict(log), Known(WORLD.propensities).fit(log).predict(log)
    np.testing.assert_array_equal(by_column.values, by_array.values)


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


def test_matrix_is_the_array_read_only_and_undefined_for_a_column():
    log = WORLD.observe(0)
    P = Known(WORLD.propensities).fit(log).matrix()
    np.testing.assert_array_equal(P, WORLD.propensities)
    assert not P.flags.writeable
    with pytest.raises(UndefinedError, match=facts("observed cells", "Known(values=)")):
        Known().fit(log).matrix()


def test_a_clone_has_its_own_equal_array():
    model = Known(WORLD.propensities)
    twin = clone(model)
    assert twin.values is not model.values
    np.testing.assert_array_equal(twin.values, model.values)


def test_the_name_of_a_column_is_no_array():
    with pytest.raises(InputError, match=facts("Known", "'p'", "propensity=", "values=")):
        Known("p").fit(movie_lovers().observe(0))
