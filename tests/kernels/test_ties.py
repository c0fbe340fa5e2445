"""Expectations over tied blocks, against every order of small blocks."""

from __future__ import annotations

from itertools import combinations
from math import comb

import numpy as np
import pytest

from openloop.kernels.ties import (
    average_precision,
    expected_discount,
    expected_hit,
    expected_hits,
    expected_reciprocal_rank,
    first_block,
)

EXACT = {"rtol": 1e-12, "atol": 1e-14}
BLOCKS = [(h, e, r) for h in (0, 1, 4) for e in range(1, 7) for r in range(1, e + 1)]


def arrays(*values):
    return tuple(np.array([v]) for v in values)


def orders(h, e, r):
    """Every equally likely set of ranks that the r relevant items of a tied block can take."""
    return np.array(list(combinations(range(h + 1, h + e + 1), r)))


def discount(rank):
    return 1 / np.log2(1 + rank)


# --- by hand


def test_the_first_two_places_by_hand():
    assert expected_discount(*arrays(0, 1)) == 1
    assert expected_discount(*arrays(1, 1)) == discount(2)
    np.testing.assert_allclose(expected_discount(*arrays(0, 2)), (1 + discount(2)) / 2)
    np.testing.assert_allclose(expected_discount(*arrays(0, 2), k=1), 1 / 2)
    np.testing.assert_allclose(expected_hits(*arrays(0, 4), k=1), 1 / 4)
    np.testing.assert_allclose(expected_reciprocal_rank(*arrays(0, 2, 1)), (1 + 1 / 2) / 2)


def test_average_precision_by_hand():
    # Relevant at ranks 1 and 3: 1/1 + 2/3.
    found = average_precision(np.array([2, 0]), np.ones(2, int), np.zeros(2, int), 1)
    np.testing.assert_allclose(found, 5 / 3)


# --- by law: the mean over all orders


@pytest.mark.parametrize("k", [None, 1, 3, 6])
def test_discount_and_hits_average_the_places(k):
    for h, e, _ in BLOCKS:
        rank = np.arange(h + 1, h + e + 1)
        inside = rank <= (k or 100)
        gain = discount(rank) * inside
        np.testing.assert_allclose(expected_discount(*arrays(h, e), k), gain.mean(), **EXACT)
        np.testing.assert_allclose(expected_hits(*arrays(h, e), k or 100), np.mean(inside), **EXACT)


def test_first_place_averages_the_orders():
    for h, e, r in BLOCKS:
        first = orders(h, e, r)[:, 0]
        np.testing.assert_allclose(expected_reciprocal_rank(*arrays(h, e, r)), np.mean(1 / first), **EXACT)
        for k in (1, 2, 3, 5, 8, 12):
            np.testing.assert_allclose(expected_hit(*arrays(h, e, r), k), np.mean(first <= k), **EXACT)


def test_average_precision_averages_the_orders_of_two_blocks():
    for h, e, r in BLOCKS:
        for gap, e2, r2 in [(0, 1, 1), (2, 3, 2), (1, 4, 3)]:
            h2 = h + e + gap
            ranks = [np.concatenate([a, b]) for a in orders(h, e, r) for b in orders(h2, e2, r2)]
            wanted = np.mean([np.sum(np.arange(1, len(a) + 1) / a) for a in ranks])
            rows = np.repeat([[h2, e2], [h, e]], [r2, r], axis=0).T
            found = average_precision(*rows, np.zeros(r + r2, int), 1)
            np.testing.assert_allclose(found, wanted, **EXACT)


@pytest.mark.parametrize(("h", "e", "r"), [(0, 20_000, 30), (7, 5_000, 1), (3, 2_000, 1_999)])
def test_large_blocks_neither_overflow_nor_drift(h, e, r):
    p = [comb(e - j, r - 1) / comb(e, r) for j in range(1, e - r + 2)]  # integers of any length
    wanted = np.dot(p, 1 / (h + np.arange(1.0, e - r + 2)))
    np.testing.assert_allclose(expected_reciprocal_rank(*arrays(h, e, r)), wanted, rtol=1e-12)
    for k in (h + 10, h + e // 2):
        wanted = 1 - comb(e - r, k - h) / comb(e, k - h)
        np.testing.assert_allclose(expected_hit(*arrays(h, e, r), k), wanted, rtol=1e-12)


# --- groups


def test_groups_are_kept_apart_and_row_order_does_not_matter():
    rng = np.random.default_rng(0)
    group = rng.integers(0, 5, 40)
    h = rng.integers(0, 4, 40) * 5
    e = np.full(40, 5)
    whole = average_precision(h, e, group, 6)
    for g in range(6):
        mine = group == g
        alone = average_precision(h[mine], e[mine], group[mine] * 0, 1)
        np.testing.assert_allclose(whole[[g]], alone, **EXACT)
    other = rng.permutation(40)
    shuffled = h[other], e[other], group[other], 6
    np.testing.assert_allclose(average_precision(*shuffled), whole, **EXACT)
    np.testing.assert_array_equal(first_block(*shuffled), first_block(h, e, group, 6))
