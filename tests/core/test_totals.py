"""Functions of totals: gradients are exact, and leaving a user out is what it says."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from openloop.core.totals import (
    complex_step,
    freedom,
    leave_one_out,
    smooth,
)
from openloop.estimators.weighted import quotient
from tests.examples import same

tables = arrays(float, st.tuples(st.integers(2, 20), st.just(2)), elements=st.floats(0.5, 50))


@given(arrays(float, 3, elements=st.floats(0.5, 100)))
def test_gradients_are_exact(at):
    x, y, z = at
    found = complex_step(lambda t: t[..., 0] * t[..., 1] / t[..., 2], at)
    same(found, [y / z, x / z, -x * y / z**2], rtol=1e-12)


@given(tables)
def test_leaving_a_user_out_is_the_value_of_the_others(columns):
    found = leave_one_out(quotient, columns)
    value = quotient(columns.sum(axis=0))
    for u in range(len(columns)):
        others = np.delete(columns, u, axis=0).sum(axis=0)
        same(found[u], quotient(others) - value, atol=1e-9)


def test_a_user_without_a_part_changes_nothing():
    columns = np.array([[1.0, 2.0], [0.0, 0.0], [5.0, 3.0]])
    assert leave_one_out(quotient, columns)[1] == 0


def test_nothing_is_left_without_the_only_user_and_no_number_says_otherwise():
    columns = np.array([[1.0, 2.0], [0.0, 0.0]])
    assert not np.isfinite(leave_one_out(quotient, columns)[0])


def test_to_first_order_leaving_out_is_the_influence():
    columns = np.random.default_rng(0).uniform(1, 2, (5000, 2))
    _, _, influence = smooth(quotient, columns)
    same(leave_one_out(quotient, columns), -influence / 5000, rtol=1e-2, atol=1e-9)


def test_the_fewest_of_units_effective_parts_and_heavy_weights_tell_the_freedom():
    assert freedom(40, 20.0, 30.0) == 29  # heavy weights
    assert freedom(40, 5.0, 39.5) == 14  # three times the effective parts, less one
    assert freedom(12, 20.0, 30.0) == 11  # units
    assert freedom(40, 0.4, 30.0) == 1  # never less
    assert freedom(9, np.array([np.inf, 2.0]), 30.0).tolist() == [8, 5]
