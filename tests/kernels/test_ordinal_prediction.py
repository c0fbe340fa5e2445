"""Chances of levels over draws, by hand."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from scipy.stats import norm

from openloop.kernels.ordinal_prediction import OrdinalDraws, level_chances


def test_one_draw_by_hand():
    one = [np.full(shape, x, np.float32) for shape, x in [((1, 1, 1), 2), ((1, 1, 1), 0.5), ((1, 1), 4), ((1, 1), 1)]]
    given = OrdinalDraws(u=one[0], v=one[1], user_scale=one[2], item_scale=one[3], b=np.array([[0, 3]], np.float32))
    with ThreadPoolExecutor(1) as pool:
        found = level_chances(given, np.array([0]), np.array([0]), pool)[0]
    assert found == pytest.approx([norm.cdf(-0.5), norm.cdf(1) - norm.cdf(-0.5), 1 - norm.cdf(1)])
