"""The largest ratio of each user: by hand, against the best of all thresholds, and against all vertices."""

from __future__ import annotations

from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from openloop.kernels.tilting import highest_means, highest_means_numpy

MAKERS = pytest.mark.parametrize("highest", [highest_means, highest_means_numpy])


@st.composite
def users(draw):
    """g, m and starts of a few users, each with some m > 0; zeros and ties are frequent."""
    sizes = draw(st.lists(st.integers(1, 7), min_size=1, max_size=4))
    n = sum(sizes)
    value = st.one_of(st.sampled_from([-1.0, 0.0, 0.5, 1.0]), st.floats(-10, 10).map(lambda x: round(x, 6)))
    gain = np.array(draw(st.lists(value, min_size=n, max_size=n)))
    mass = np.array(draw(st.lists(st.sampled_from([0.0, 0.3, 1.0, 7.0]), min_size=n, max_size=n)))
    start = np.concatenate([[0], np.cumsum(sizes)])
    mass[start[:-1]] += 0.5
    return gain, mass, start


@MAKERS
def test_by_hand(highest):
    # Γ = 2: the row of 1 gets 2, the row of 0 gets ½: 2/2.5; the second user has one row, which Γ cannot move.
    gain, mass, start = np.array([1.0, 0.0, 6.0]), np.array([1.0, 1.0, 2.0]), np.array([0, 2, 3])
    np.testing.assert_allclose(highest(gain, mass, start, np.array([1.0, 2.0])), [(0.5 + 3) / 2, (0.8 + 3) / 2])
    np.testing.assert_allclose(highest(gain, mass, start, np.array([1.0, 2.0]), 0.7), [(0.5 + 0.7) / 2, 0.7])


@MAKERS
def test_rows_without_mass_count_in_the_numerator_alone(highest):
    gain, mass, start = np.array([1.0, 1.0, -1.0]), np.array([1.0, 0.0, 0.0]), np.array([0, 3])
    # At Γ = 2, θ > 1: λ = (½, 2, ½) gives (½ + 2 − ½)/½ = 4.
    np.testing.assert_allclose(highest(gain, mass, start, np.array([2.0])), [4.0])


@given(case=users(), gammas=st.lists(st.floats(1, 50), min_size=1, max_size=4), most=st.sampled_from([np.inf, 0.4]))
def test_the_kernel_is_its_definition_whatever_the_order_of_gammas(case, gammas, most):
    found = highest_means(*case, np.array(gammas), most)
    np.testing.assert_allclose(found, highest_means_numpy(*case, np.array(gammas), most), rtol=1e-10, atol=1e-10)


@given(case=users(), gamma=st.floats(1, 50))
def test_no_vertex_is_higher(case, gamma):
    gain, mass, start = case
    best = []
    for a, b in pairwise(start):
        factor = np.array(list(product([1 / gamma, gamma], repeat=int(b - a))))
        best.append(np.max(factor @ gain[a:b] / (factor @ mass[a:b])))
    np.testing.assert_allclose(highest_means(*case, np.array([gamma])), np.mean(best), rtol=1e-10, atol=1e-10)
