"""Sums under many weights, by hand."""

from __future__ import annotations

import numpy as np
import pytest

from openloop.kernels.reweighting import (
    Weighting,
    tilted_sums,
    tilted_sums_numpy,
)


@pytest.mark.parametrize("sums", [tilted_sums, tilted_sums_numpy])
def test_two_users_by_hand(sums):
    one = Weighting(
        weight=np.array([1.0, 2.0, 3.0]), level=np.array([0, 1, 0]), item=np.array([1, 0, 1]),
        by_level=np.array([[1.0, 1.0], [1.0, 0.5]]), by_item=np.array([[1.0, 2.0], [1.0, 3.0]]),
    )  # fmt: skip
    found = sums(one, [np.array([1.0, 10.0, 100.0])], np.array([0, 0, 1]), 2)
    # weights at the second point: 1·1·3, 2·½·2, 3·1·3
    np.testing.assert_allclose(found, [[[3, 5], [21, 23]], [[3, 9], [300, 900]]])
