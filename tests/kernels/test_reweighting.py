"""Sums under many weights: by hand, and against their definitions, over blocks and clusters."""

from __future__ import annotations

import numpy as np
import pytest

from openloop.kernels import reweighting
from openloop.kernels.reweighting import (
    Weighting,
    WeightParts,
    item_sums,
    item_sums_numpy,
    part_sums,
    part_sums_numpy,
    tilted_sums,
    tilted_sums_numpy,
)


def rows(n=500, users=40, items=12, points=5, seed=0):
    rng = np.random.default_rng(seed)
    user = np.sort(rng.integers(0, users, n)).astype(np.int32)
    weighting = Weighting(
        weight=1 / rng.uniform(0.05, 1, n), level=rng.integers(0, 4, n).astype(np.int8),
        item=rng.integers(0, items, n).astype(np.int32), by_level=rng.uniform(0.2, 1, (4, points)),
        by_item=rng.uniform(0.2, 2, (items, points)),
    )  # fmt: skip
    return weighting, [rng.normal(size=n) for _ in range(3)], user


@pytest.mark.parametrize("sums", [tilted_sums, tilted_sums_numpy])
def test_two_users_by_hand(sums):
    one = Weighting(
        weight=np.array([1.0, 2.0, 3.0]), level=np.array([0, 1, 0]), item=np.array([1, 0, 1]),
        by_level=np.array([[1.0, 1.0], [1.0, 0.5]]), by_item=np.array([[1.0, 2.0], [1.0, 3.0]]),
    )  # fmt: skip
    found = sums(one, [np.array([1.0, 10.0, 100.0])], np.array([0, 0, 1]), 2)
    # weights at the second point: 1·1·3, 2·½·2, 3·1·3
    np.testing.assert_allclose(found, [[[3, 5], [21, 23]], [[3, 9], [300, 900]]])


@pytest.mark.parametrize("clusters", [7, 40, 64])
@pytest.mark.parametrize("points", [1, 7, 8])
def test_kernels_are_their_definitions(clusters, points, monkeypatch):
    monkeypatch.setattr(reweighting, "BLOCK", 64)  # a user's rows lie in two blocks
    weighting, gains, user = rows(points=points)
    own = gains, user, clusters
    np.testing.assert_allclose(tilted_sums(weighting, *own), tilted_sums_numpy(weighting, *own), rtol=1e-10, atol=1e-9)
    split = WeightParts(weight=weighting.weight, fixed=np.broadcast_to(0.7, 500))
    pairs = np.array([[0, 1], [0, 2], [2, 1]])
    found, wanted = (sums(split, gains, pairs, user, clusters) for sums in (part_sums, part_sums_numpy))
    np.testing.assert_allclose(found, wanted, rtol=1e-10, atol=1e-9)
    asked = *weighting[:4], 12
    np.testing.assert_allclose(item_sums(*asked), item_sums_numpy(*asked), rtol=1e-12)


def test_users_are_dealt_and_none_is_lost():
    weighting, gains, user = rows()
    few, many = (tilted_sums(weighting, gains, user, n) for n in (3, 40))
    np.testing.assert_allclose(few[1], many[1::3].sum(axis=0))


def test_models_that_differ_in_one_direction_have_no_other_part():
    weighting, gains, user = rows()
    ahead = [gains[0], gains[0] - np.abs(gains[1])]
    found = part_sums(WeightParts(weighting.weight, weighting.weight / 2), ahead, np.array([[0, 1], [1, 0]]), user, 5)
    assert (found[:, 0, 2] == 0).all()
    assert (found[:, 1, 1] == 0).all()
    np.testing.assert_allclose(found[:, 0], found[:, 1][:, [0, 2, 1]] * [-1, 1, 1])
