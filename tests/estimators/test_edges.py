"""Edges of strata: by hand, between values, with enough rows, and of equal mass."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from openloop.errors import InputError
from openloop.estimators.edges import LEAST_ROWS, edges
from tests.examples import same
from tests.facts import facts

propensities = st.lists(st.sampled_from([0.01, 0.02, 0.1, 0.2, 0.3, 0.5, 0.9, 1.0]), min_size=1, max_size=60)
TENTHS = np.array([0.1, 0.2, 0.3, 0.4, 0.5, 0.6])


def rows_in(p, at):
    return np.bincount(np.searchsorted(at, p), minlength=len(at) + 1)


# -- equal mass ----------------------------------------------------------------------------------------------


def test_equal_mass_by_hand():
    # Σ1/p is 30·10 + 60·5 + 120·2.5 + 240·1.25 = 4 · 300: each value is a quarter of the population.
    p = np.repeat([0.1, 0.2, 0.4, 0.8], [30, 60, 120, 240])
    same(edges(p, 2), (0.3,))
    same(edges(p, 2, "mass"), (0.3,))
    same(edges(p, 4), (0.15, 0.3, 0.6))
    same(edges(p, 3), (0.3, 0.6))
    same(edges(p, 3, "count"), (0.6,))  # three quarters of the population in one stratum
    assert edges(p, 1) == ()


def test_a_share_that_rounding_just_misses_is_reached():
    p = np.repeat([0.1, 0.3, 0.7, 0.9], [100, 300, 700, 900])  # four equal masses of 1000 but for rounding
    same(edges(p, 2), (0.5,))


def test_strata_of_equal_mass_have_equal_shares_of_the_population():
    rng = np.random.default_rng(0)
    grid = rng.uniform(0.02, 0.9, 200_000)
    p = grid[rng.random(len(grid)) < grid]
    at = edges(p, 10)
    assert len(at) == 9
    same(rows_in(p, at) * 0 + 0.1, np.bincount(np.searchsorted(at, p), 1 / p) / (1 / p).sum(), atol=1e-3)
    assert np.abs(rows_in(grid, at) / len(grid) - 0.1).max() < 0.01
    assert np.abs(rows_in(grid, edges(p, 10, "count")) / len(grid) - 0.1).max() > 0.1


@given(st.lists(st.floats(1e-4, 1), min_size=1, max_size=300), st.integers(1, 12))
def test_strata_of_equal_mass_have_rows_enough(values, strata):
    p = np.array(values)
    at = edges(p, strata)
    assert len(at) < strata
    if len(np.unique(p)) <= strata:  # each value is a stratum, however few its rows
        assert len(at) + 1 == len(np.unique(p))
    else:
        assert len(at) == 0 or rows_in(p, at).min() >= LEAST_ROWS
    assert np.isin(at, (np.unique(p)[1:] + np.unique(p)[:-1]) / 2).all()


# -- equal count and equal width -----------------------------------------------------------------------------


def test_equal_count_and_width_by_hand():
    same(edges(TENTHS, 3, "count"), (0.25, 0.45))  # two of each
    same(edges(TENTHS, 2, "count"), (0.35,))
    same(edges(np.array([0.1, 0.1, 0.2, 0.9]), 2, "width"), (0.55,))
    assert edges(TENTHS, 1, "count") == ()


@given(propensities, st.integers(1, 6), st.sampled_from(["count", "width"]))
def test_edges_lie_between_values_and_cut_off_nothing(values, strata, bins):
    p = np.array(values)
    at = np.array(edges(p, strata, bins))
    distinct = np.unique(p)
    assert len(at) < strata or strata == 1
    assert np.all(np.diff(at) > 0)
    middles = (distinct[1:] + distinct[:-1]) / 2
    assert np.isin(at, middles).all()
    assert len(np.unique(np.searchsorted(at, p))) == len(at) + 1  # every stratum has a value
    if len(distinct) <= strata:
        assert len(at) + 1 == len(distinct)


@pytest.mark.parametrize("bins", ["mass", "count", "width"])
def test_at_least_one_stratum(bins):
    with pytest.raises(InputError, match=facts("strata", 0)):
        edges(np.array([0.5]), 0, bins)
