"""Sums under many weights, by hand."""

from __future__ import annotations

import numpy as np

from openloop.kernels.reweighting import Owners, Weighting, tilted_sums


def test_two_users_by_hand():
    one = Weighting(
        weight=np.array([1.0, 2.0, 3.0]), level=np.array([0, 1, 0]), item=np.array([1, 0, 1]),
        by_level=np.array([[1.0, 1.0], [1.0, 0.5]]), by_item=np.array([[1.0, 2.0], [1.0, 3.0]]),
    )  # fmt: skip
    owners = Owners(user=np.array([0, 0, 1]), cluster=np.array([0, 1]))
    found = tilted_sums(one, [np.array([1.0, 10.0, 100.0])], owners, 2)
    # weights at the second point: 1·1·3, 2·½·2, 3·1·3
    np.testing.assert_allclose(found, [[[3, 5], [21, 23]], [[3, 9], [300, 900]]])
