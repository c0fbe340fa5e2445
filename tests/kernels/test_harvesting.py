"""Kernels of harvesting, by hand."""

from __future__ import annotations

import numpy as np
import pytest

from openloop.kernels.harvesting import (
    Cells,
    links,
    links_numpy,
    score_and_information,
    score_and_information_numpy,
)

INFORMATION = pytest.mark.parametrize("score", [score_and_information, score_and_information_numpy])
LINKS = pytest.mark.parametrize("linked", [links, links_numpy])

# One group, shown 10 times at each of two positions and clicked 4 and 2 times.
ONE = Cells(np.array([0, 2]), np.array([0, 1]), np.array([10.0, 10.0]), np.array([4.0, 2.0]))


@INFORMATION
def test_score_and_information_by_hand(score):
    # θ = (1, ½): p = (⅔, ⅓), which is how the clicks fell; H = 6·⅔·⅓ on the diagonal.
    gradient, H = score(ONE, np.array([1.0, 0.5]))
    np.testing.assert_allclose(gradient, [0, 0], atol=1e-15)
    np.testing.assert_allclose(H, np.array([[4, -4], [-4, 4]]) / 3)
    np.testing.assert_allclose(score(ONE, np.ones(2))[0], [1, -1])


@LINKS
def test_a_click_links_its_position_to_those_of_its_group(linked):
    cells = Cells(np.array([0, 2, 4]), np.array([0, 1, 1, 2]), np.ones(4), np.array([1.0, 0, 1, 1]))
    np.testing.assert_array_equal(linked(cells, 3), [[1, 1, 0], [0, 1, 1], [0, 1, 1]])
