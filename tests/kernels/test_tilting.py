"""The largest ratio of each user: by hand, and against all vertices."""

from __future__ import annotations

from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from openloop.kernels.tilting import TiltedRows, highest_means, highest_means_numpy

MAKERS = pytest.mark.parametrize("highest", [highest_means, highest_means_numpy])


def plain(delta, norm, moving=None, fixed=None):
    """Rows whose whole weight moves, unless some part of it is fixed."""
    delta = np.asarray(delta, float)
    moving = np.ones(len(delta)) if moving is None else np.asarray(moving, float)
    fixed = np.zeros(len(delta)) if fixed is None else np.asarray(fixed, float)
    return TiltedRows(delta, np.asarray(norm, float), fixed, moving)


@st.composite
def users(draw):
    """Rows and starts of a few users, each with some n and some weight above 0; zeros and ties are frequent."""
    sizes = draw(st.lists(st.integers(1, 7), min_size=1, max_size=4))
    n = sum(sizes)
    value = st.one_of(st.sampled_from([-1.0, 0.0, 0.5, 1.0]), st.floats(-10, 10).map(lambda x: round(x, 6)))
    some = st.lists(st.sampled_from([0.0, 0.3, 1.0, 7.0]), min_size=n, max_size=n)
    delta, norm, fixed, moving = (
        np.array(draw(values)) for values in (st.lists(value, min_size=n, max_size=n), *[some] * 3)
    )
    start = np.concatenate([[0], np.cumsum(sizes)])
    norm[start[:-1]] += 0.5
    return TiltedRows(delta, norm, fixed, moving + 0.1), start


@MAKERS
def test_by_hand(highest):
    # Γ = 2: the row of 1 gets 2, the row of 0 gets ½: 2/2.5; the second user has one row, which Γ cannot move.
    rows, start = plain([1, 0, 3], [1, 1, 1], [1, 1, 2]), np.array([0, 2, 3])
    gammas = np.array([1.0, 2.0])
    np.testing.assert_allclose(highest(rows, start, gammas), [(0.5 + 3) / 2, (0.8 + 3) / 2])
    np.testing.assert_allclose(highest(rows, start, gammas, 0.7), [(0.5 + 0.7) / 2, 0.7])
    # Half of every weight is fixed: (½ + 1)/(½ + 1 + ½ + ¼).
    half = plain([1, 0, 3], [1, 1, 1], [0.5, 0.5, 1], [0.5, 0.5, 1])
    np.testing.assert_allclose(highest(half, start, gammas), [(0.5 + 3) / 2, (1.5 / 2.25 + 3) / 2])


@MAKERS
def test_rows_without_mass_count_in_the_numerator_alone(highest):
    # At Γ = 2, θ > 1: λ = (½, 2, ½) gives (½ + 2 − ½)/½ = 4.
    rows = plain([1, 1, -1], [1, 0, 0])
    np.testing.assert_allclose(highest(rows, np.array([0, 3]), np.array([2.0])), [4.0])


@given(case=users(), gamma=st.floats(1, 50))
def test_no_vertex_is_higher(case, gamma):
    rows, start = case
    best = []
    for a, b in pairwise(start):
        delta, norm, fixed, moving = (column[a:b] for column in rows)
        weight = fixed + moving * np.array(list(product([1 / gamma, gamma], repeat=int(b - a))))
        best.append(np.max(weight @ delta / (weight @ norm)))
    np.testing.assert_allclose(highest_means(*case, np.array([gamma])), np.mean(best), rtol=1e-10, atol=1e-10)
