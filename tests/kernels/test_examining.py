"""Weights under examination by hand, and slopes that are derivatives."""

from __future__ import annotations

import numpy as np
import pytest

from openloop.kernels.examining import (
    ExaminedRows,
    examined_slopes,
    examined_slopes_plain,
    examined_weights,
    examined_weights_plain,
)
from tests.kernels.test_shown_lists import rows

THETA = np.array([1.0, 0.6, 0.45, 0.3, 0.2])


def examined(seed, below, *, random=False):
    rng, request, position, item = rows(seed)
    depth = np.bincount(request).astype(np.int32)
    exposure = rng.random((len(item), 5))
    return rng.random(len(item)), ExaminedRows(
        request=request, position=position, depth=depth, rank=rng.integers(7, size=len(item)).astype(np.int32),
        probability=rng.random((len(item), 5)) if random else np.empty((0, 0)),
        propensity=exposure[np.arange(len(item)), position - 1], exposure=exposure, below=below,
    )  # fmt: skip


def one(below, rank=2, depth=2):
    """One row at position 1 of a request that shows `depth` items."""
    return ExaminedRows(
        request=np.zeros(1, np.int32), position=np.ones(1, np.int32), depth=np.array([depth], np.int32),
        rank=np.array([rank], np.int32), propensity=np.array([0.5]), exposure=np.array([[0.5, 0.25, 0.25, 0, 0]]),
        below=below,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("below", "wanted"), [(0, 0.6 / (0.5 + 0.6 * 0.25)), (1, 0.6 / (0.5 * 1.6)), (2, 0.6)], ids=["all", "own", "none"]
)
def test_weights_by_hand(below, wanted):
    np.testing.assert_allclose(examined_weights(THETA, one(below)), [wanted])
    assert examined_weights(THETA, one(below, rank=3)).tolist() == [0]  # beyond what the request shows
    assert examined_weights(THETA, one(below, rank=0)).tolist() == [0]


def test_tops_of_ranks_are_not_cut_by_what_a_request_shows():
    np.testing.assert_allclose(examined_weights(THETA, one(2, rank=3), np.array([3.0, 2.0, 1.5])), [1.5])
    assert examined_weights(THETA, one(2, rank=0), np.ones(3)).tolist() == [0]


@pytest.mark.parametrize("below", range(3))
@pytest.mark.parametrize("random", [False, True])
def test_kernels_are_their_twins(below, random):
    gain, given = examined(below, below, random=random)
    w = examined_weights(THETA, given)
    np.testing.assert_allclose(w, examined_weights_plain(THETA, given), rtol=1e-12)
    groups = np.arange(len(given.depth)) % 3, 3
    np.testing.assert_allclose(
        examined_slopes(w * gain, THETA, given, *groups), examined_slopes_plain(w * gain, THETA, given, *groups),
        rtol=1e-11, atol=1e-13,
    )  # fmt: skip


@pytest.mark.parametrize("below", range(3))
@pytest.mark.parametrize("kind", ["list", "random", "discount"])
def test_slopes_are_derivatives(below, kind):
    gain, given = examined(below, below, random=kind == "random")
    tops = 1 / np.log2(np.arange(2, 9)) if kind == "discount" else None

    def total(theta):
        return examined_weights(theta, given, tops) @ gain

    one_group = np.zeros(len(given.depth), np.int64), 1
    w = examined_weights(THETA, given, tops)
    found = examined_slopes(w * gain, THETA, given, *one_group, moving=tops is None)
    for j, slope in enumerate(found[0]):
        step = np.exp(1e-5 * (np.arange(5) == j))
        assert slope == pytest.approx((total(THETA * step) - total(THETA / step)) / 2e-5, rel=1e-6, abs=1e-7)
