"""Parts for threads: they cover all rows once, whatever the threads; sums over them; arrays that stay as they are."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from openloop.kernels import parts


def covered(found, n):
    assert [first for first, _ in found] + [n] == [0] + [last for _, last in found]


def test_parts_of_rows_by_hand():
    assert parts.row_parts(7, 3) == [(0, 3), (3, 6), (6, 7)]
    assert parts.row_parts(0) == []
    assert parts.row_parts(parts.PART + 1) == [(0, parts.PART), (parts.PART, parts.PART + 1)]


def test_parts_of_owners_cover_each_once_and_have_about_as_many_rows():
    counts = np.random.default_rng(0).integers(0, 9, 200)
    ptr = np.append(0, np.cumsum(counts))
    found = parts.owner_parts(ptr, 50)
    covered(found, 200)
    sizes = [ptr[last] - ptr[first] for first, last in found]
    assert max(sizes) < 50 + 2 * counts.max()
    assert len(found) > 10


def test_without_rows_there_is_one_part_of_all_owners_and_without_owners_none():
    assert parts.owner_parts(np.zeros(5, np.int64)) == [(0, 4)]
    assert parts.owner_parts(np.zeros(1, np.int64)) == []


def test_of_very_many_cells_there_are_a_few_dozen_parts():
    called = []
    with ThreadPoolExecutor(2) as pool:
        parts.in_parts(np.arange(1001) * 10_000, lambda first, last: called.append((first, last)), pool)
    covered(sorted(called), 1000)
    assert parts.MOST <= len(called) <= parts.MOST + 1


@pytest.mark.parametrize("threads", [1, 3])
def test_sums_of_parts_are_added_in_their_order(threads):
    x = np.tile([1e16, 1.0, -1e16, 1.0, 0.5], 20)  # in another order of parts the ones are lost, or others are

    def add(first, last, out):
        out += x[first:last].sum()

    with ThreadPoolExecutor(threads) as pool:
        found = parts.sum_of_parts(add, parts.row_parts(100, 1), (2,), pool)
    assert np.array_equal(found, np.zeros(2) + np.stack([x, x], axis=1).sum(axis=0))
    assert not np.array_equal(found, np.zeros(2) + np.sort(np.stack([x, x], axis=1), axis=0).sum(axis=0))
