"""Kernels on lists are their definitions: ranks, common prefixes, orders and sums."""

from __future__ import annotations

import numpy as np
import pytest

from openloop.kernels import shown_lists as lists


def rows(seed, requests=40, depth=5):
    """Requests of 1 … depth rows, items out of 8."""
    rng = np.random.default_rng(seed)
    size = rng.integers(1, depth + 1, requests)
    request = np.repeat(np.arange(requests), size).astype(np.int32)
    position = np.concatenate([np.arange(1, n + 1) for n in size]).astype(np.int32)
    return rng, request, position, rng.integers(8, size=len(request)).astype(np.int32)


def test_ranks_by_hand():
    table = np.array([[4, 2, -1], [0, 1, 2]], np.int32)
    key, request = np.array([1, 0]), np.array([0, 0, 1, 1], np.int32)
    assert lists.ranks_in_lists(table, key, request, np.array([2, 4, 4, 3], np.int32)).tolist() == [3, 0, 1, 0]


def test_prefixes_by_hand():
    hit, request = np.array([True, False, True, True, True]), np.array([0, 0, 0, 1, 1], np.int32)
    assert lists.prefix_hits(hit, request).tolist() == [True, False, False, True, True]


def test_orders_by_hand():
    """Equal keys stay as shown, and the positions are those of the request."""
    keys, request = np.array([2.0, 1.0, 1.0, 5.0]), np.array([0, 0, 0, 1], np.int32)
    assert lists.reordered(keys, request, np.array([1, 2, 4, 3], np.int32)).tolist() == [4, 1, 2, 3]


@pytest.mark.parametrize("seed", range(3))
def test_kernels_are_their_twins(seed):
    rng, request, position, item = rows(seed)
    table, key = np.argsort(rng.random((6, 8)), axis=1)[:, :4].astype(np.int32), rng.integers(6, size=40)
    rank = lists.ranks_in_lists(table, key, request, item)
    np.testing.assert_array_equal(rank, lists.ranks_in_lists_plain(table, key, request, item))
    hit = rng.random(len(item)) < 0.6
    np.testing.assert_array_equal(lists.prefix_hits(hit, request), lists.prefix_hits_plain(hit, request))
    keys = rng.integers(3, size=len(item)).astype(float)
    np.testing.assert_array_equal(
        lists.reordered(keys, request, position), lists.reordered_plain(keys, request, position)
    )
    w, gain = np.where(rng.random(len(item)) < 0.5, rng.random(len(item)), 0.0), rng.normal(size=len(item))
    given = (w, gain, rng.integers(7, size=40).astype(np.int32), request, position, (7, 5))
    for found, wanted in zip(lists.weighted_sums(*given), lists.weighted_sums_plain(*given), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-14)
    for found, wanted in zip(
        lists.place_facts(w, gain, position - 1, 5), lists.place_facts_plain(w, gain, position - 1, 5), strict=True
    ):
        np.testing.assert_allclose(found, wanted, rtol=1e-12)
