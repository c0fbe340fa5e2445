"""Summaries of weights say in plain words when they carry too little."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from openloop.core.weights import (
    WeightSummary,
    diagnose,
    effective_size,
    few_users,
    mass_flag,
)
from tests.facts import facts

weights = st.lists(st.floats(1, 1e9), min_size=1, max_size=40).map(np.array)


def test_effective_size_and_largest_share_by_hand():
    summary = WeightSummary.of(np.array([1.0, 1.0, 2.0]))
    assert summary.effective_size == pytest.approx(16 / 6)  # (Σw)²/Σw²
    assert summary.largest_share == pytest.approx(1 / 2)
    assert summary.smallest_propensity == pytest.approx(1 / 2)


def test_equal_weights_count_every_row():
    assert WeightSummary.of(np.full(7, 3.0)).effective_size == pytest.approx(7)


@given(weights, st.sampled_from([0.5, 0.9, 0.99]))
def test_a_quantile_from_the_histogram_is_right_to_its_bin(w, q):
    exact = np.sort(w)[int(np.ceil(q * len(w))) - 1]
    found = WeightSummary.of(w).quantile(q)
    assert exact * 2 ** (-1 / 16) <= found <= exact * 2 ** (1 / 16)
    assert found <= w.max()


def test_thin_support_and_a_dominant_row_are_flagged():
    few = diagnose(WeightSummary.of(np.array([1.0] * 99 + [99.0])), users=100, population=198, clipped=None)
    assert few.mass == pytest.approx(1)
    assert any(re.search(facts(100, 4.0), flag) for flag in few.flags)
    assert any(re.search(facts("one row", "50%"), flag) for flag in few.flags)
    plenty = diagnose(WeightSummary.of(np.ones(100)), users=100, population=100, clipped=None)
    assert plenty.flags == ()


def test_few_users_are_flagged():
    assert few_users(29)
    assert not few_users(30)


@pytest.mark.parametrize(("mass", "flagged"), [(0.79, True), (0.8, False), (1.25, False), (1.26, True)])
def test_weights_that_do_not_add_up_to_the_population_are_flagged(mass, flagged):
    assert bool(mass_flag(mass)) is flagged


def test_the_effective_size_counts_rows_and_forgets_the_scale():
    assert effective_size(np.full(7, 1e300)) == pytest.approx(7)
    assert effective_size(np.array([3.0, 1.0])) == pytest.approx(16 / 10)
