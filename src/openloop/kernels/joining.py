"""Where numbers stand in a table: one hash table, which also finds what a table repeats; and pairs in order.

Kernels know nothing about models: a cell is a number.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from openloop.kernels.compiling import fixed, njit

Ints = npt.NDArray[np.int64]
Places = npt.NDArray[np.int32]

GOLDEN = np.uint64(0x9E3779B97F4A7C15)  # 2⁶⁴/φ: multiples of it are spread evenly over the leading bits
LOWEST = np.iinfo(np.int64).min


def match(table: Ints, rows: Ints) -> tuple[Places, Ints]:
    """The first place in `table` of each of the `rows`, -1 where it has none; and the places that repeat a cell.

    A negative number in the table is no cell.
    """
    slots, repeats = _slots(table, 0)
    return find(slots, table, rows), repeats


def slots_of(table: Ints) -> Places:
    """The hash table of distinct numbers, for `find`."""
    return _slots(table, LOWEST)[0]


def find(slots: Places, table: Ints, rows: Ints) -> Places:
    """The place of each of the `rows` in the `table` that the slots are of, -1 where it has none."""
    place = np.empty(len(rows), np.int32)
    _find(*fixed(slots, table, rows), _shift(slots), place)
    return place


def _slots(table: Ints, lowest: int) -> tuple[Places, Ints]:
    """Twice to four times as many slots as there are numbers; and the places that repeat one."""
    slots = np.full(1 << max(int(2 * len(table)).bit_length(), 1), -1, np.int32)
    repeats = np.empty(len(table), np.int64)
    n_repeats = _fill(*fixed(table), _shift(slots), lowest, slots, repeats)
    return slots, repeats[:n_repeats]


def _shift(slots: Places) -> np.uint64:
    """By how many bits a product is shifted, so that it is the number of a slot."""
    return np.uint64(65 - len(slots).bit_length())


@njit(cache=True, nogil=True)
def _fill(table: Ints, shift: np.uint64, lowest: int, slots: Places, repeats: Ints) -> int:
    mask, n_repeats = slots.size - 1, 0
    for j in range(table.size):
        if table[j] < lowest:
            continue
        slot = np.int64((np.uint64(table[j]) * GOLDEN) >> shift)
        while slots[slot] >= 0 and table[slots[slot]] != table[j]:
            slot = (slot + 1) & mask
        if slots[slot] < 0:
            slots[slot] = j
        else:
            repeats[n_repeats] = j
            n_repeats += 1
    return n_repeats


@njit(cache=True, nogil=True)
def _find(slots: Places, table: Ints, rows: Ints, shift: np.uint64, place: Places) -> None:
    mask = slots.size - 1
    for j in range(rows.size):
        slot = np.int64((np.uint64(rows[j]) * GOLDEN) >> shift)
        while slots[slot] >= 0 and table[slots[slot]] != rows[j]:
            slot = (slot + 1) & mask
        place[j] = slots[slot]


def meet(table: Ints, rows: Ints) -> Places:
    """The first place in `table` of each of the `rows`, -1 where it has none; both rise."""
    place = np.empty(len(rows), np.int32)
    _meet(*fixed(table, rows), place)
    return place


@njit(cache=True, nogil=True)
def _meet(table: Ints, rows: Ints, place: Places) -> None:
    k = 0
    for j in range(rows.size):
        while k < table.size and table[k] < rows[j]:
            k += 1
        place[j] = k if k < table.size and table[k] == rows[j] else -1


def order_of_pairs(first: Places, second: Places, n_first: int, n_second: int) -> Places:
    """Where pairs stand by their first and then by their second number, equal ones as they are.

    Pairs with a negative number are left out. Counting takes a fifteenth of the time of sorting.
    """
    order = np.empty(len(first), np.int32)
    n_pairs = _count_sort(*fixed(first, second), n_first, n_second, order)
    return order[:n_pairs]


@njit(cache=True, nogil=True)
def _count_sort(first: Places, second: Places, n_first: int, n_second: int, order: Places) -> int:
    by_second, start = np.empty(first.size, np.int32), np.zeros(n_second + 1, np.int32)
    for j in range(first.size):
        if first[j] >= 0 and second[j] >= 0:
            start[second[j] + 1] += 1
    for k in range(n_second):
        start[k + 1] += start[k]
    n_pairs = start[n_second]
    for j in range(first.size):
        if first[j] >= 0 and second[j] >= 0:
            by_second[start[second[j]]] = j
            start[second[j]] += 1
    start = np.zeros(n_first + 1, np.int32)
    for k in range(n_pairs):
        start[first[by_second[k]] + 1] += 1
    for k in range(n_first):
        start[k + 1] += start[k]
    for k in range(n_pairs):
        j = by_second[k]
        order[start[first[j]]] = j
        start[first[j]] += 1
    return n_pairs
