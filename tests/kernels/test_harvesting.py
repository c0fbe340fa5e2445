"""Kernels of harvesting: by hand, and against their plain twins."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from openloop.kernels.harvesting import (
    Cells,
    coded,
    coded_numpy,
    links,
    links_numpy,
    row_scores,
    row_scores_numpy,
    score_and_information,
    score_and_information_numpy,
    sorted_order,
    sorted_order_numpy,
)

INFORMATION = pytest.mark.parametrize("score", [score_and_information, score_and_information_numpy])
LINKS = pytest.mark.parametrize("linked", [links, links_numpy])
ROWS = pytest.mark.parametrize("by_row", [row_scores, row_scores_numpy])

# One group, shown 10 times at each of two positions and clicked 4 and 2 times.
ONE = Cells(np.array([0, 2]), np.array([0, 1]), np.array([10.0, 10.0]), np.array([4.0, 2.0]))


@st.composite
def counted(draw):
    """Cells of a few groups, some of one position; rows of each with clusters and rewards that make up the cells."""
    seed, groups, depth = draw(st.integers(0, 10**6)), draw(st.integers(1, 6)), draw(st.integers(1, 5))
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, depth + 1, groups)
    position = np.concatenate([np.sort(rng.permutation(depth)[:size]) for size in sizes])
    shown = rng.integers(1, 4, len(position))
    cell = rng.permutation(np.repeat(np.arange(len(position)), shown))
    reward = rng.integers(0, 2, len(cell)).astype(float)
    cells = Cells(
        np.append(0, np.cumsum(sizes)), position, shown.astype(float), np.bincount(cell, reward, minlength=len(shown))
    )
    theta = rng.uniform(0.1, 2.0, depth)
    return cells, theta, cell, reward, rng.integers(0, 4, len(cell))


@INFORMATION
def test_score_and_information_by_hand(score):
    # θ = (1, ½): p = (⅔, ⅓), which is how the clicks fell; H = 6·⅔·⅓ on the diagonal.
    gradient, H = score(ONE, np.array([1.0, 0.5]))
    np.testing.assert_allclose(gradient, [0, 0], atol=1e-15)
    np.testing.assert_allclose(H, np.array([[4, -4], [-4, 4]]) / 3)
    np.testing.assert_allclose(score(ONE, np.ones(2))[0], [1, -1])


@ROWS
def test_parts_of_rows_by_hand(by_row):
    # r = 6/15: a click at 1 has e = .6, and moves p away from both positions.
    theta, cell, reward = np.array([1.0, 0.5]), np.repeat([0, 1], 10), np.zeros(20)
    reward[[0, 1, 2, 3, 10, 11]] = 1
    parts = by_row(ONE, theta, cell, reward, np.arange(20), 21)
    np.testing.assert_allclose(parts[0], 0.6 * np.array([1 / 3, -1 / 3]))
    np.testing.assert_allclose(parts[10], 0.8 * np.array([-2 / 3, 2 / 3]))
    np.testing.assert_array_equal(parts[20], [0, 0])


@LINKS
def test_a_click_links_its_position_to_those_of_its_group(linked):
    cells = Cells(np.array([0, 2, 4]), np.array([0, 1, 1, 2]), np.ones(4), np.array([1.0, 0, 1, 1]))
    np.testing.assert_array_equal(linked(cells, 3), [[1, 1, 0], [0, 1, 1], [0, 1, 1]])


@given(case=counted())
def test_kernels_are_their_definitions(case):
    cells, theta, cell, reward, cluster = case
    for found, wanted in zip(
        score_and_information(cells, theta), score_and_information_numpy(cells, theta), strict=True
    ):
        np.testing.assert_allclose(found, wanted, atol=1e-12)
    np.testing.assert_array_equal(links(cells, len(theta)), links_numpy(cells, len(theta)))
    parts = row_scores(cells, theta, cell, reward, cluster, 4)
    np.testing.assert_allclose(parts, row_scores_numpy(cells, theta, cell, reward, cluster, 4), atol=1e-12)
    # The rows of all clusters together are the score.
    np.testing.assert_allclose(parts.sum(axis=0), score_and_information(cells, theta)[0], atol=1e-12)


@given(keys=st.lists(st.one_of(st.integers(0, 9), st.integers(0, 2**62))))
def test_keys_are_sorted_and_coded(keys):
    key = np.array(keys, np.int64)
    np.testing.assert_array_equal(sorted_order(key), sorted_order_numpy(key))
    for found, wanted in zip(coded(key), coded_numpy(key), strict=True):
        np.testing.assert_array_equal(found, wanted)
