"""Kernels on lists, by hand: ranks, common prefixes and orders."""

from __future__ import annotations

import numpy as np

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
