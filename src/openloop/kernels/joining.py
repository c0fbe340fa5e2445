"""Where the cells of a log stand in a table of cells: one hash table, which also finds cells that a table repeats.

Kernels know nothing about models: a cell is a number, and a negative one is no cell.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from openloop.kernels.compiling import fixed, njit

Ints = npt.NDArray[np.int64]

GOLDEN = np.uint64(0x9E3779B97F4A7C15)  # 2⁶⁴/φ: multiples of it are spread evenly over the leading bits


def match(table: Ints, rows: Ints) -> tuple[Ints, Ints]:
    """The first place in `table` of each of the `rows`, -1 where it has none; and the places that repeat a cell."""
    bits = max(int(2 * len(table)).bit_length(), 1)
    slots = np.full(1 << bits, -1, np.int64)
    place, repeats = np.full(len(rows), -1, np.int64), np.empty(len(table), np.int64)
    n_repeats = _match(*fixed(table, rows), np.uint64(64 - bits), slots, place, repeats)
    return place, repeats[:n_repeats]


@njit(cache=True, nogil=True)
def _match(table: Ints, rows: Ints, shift: np.uint64, slots: Ints, place: Ints, repeats: Ints) -> int:
    mask, n_repeats = slots.size - 1, 0
    for j in range(table.size):
        if table[j] < 0:
            continue
        slot = np.int64((np.uint64(table[j]) * GOLDEN) >> shift)
        while slots[slot] >= 0 and table[slots[slot]] != table[j]:
            slot = (slot + 1) & mask
        if slots[slot] < 0:
            slots[slot] = j
        else:
            repeats[n_repeats] = j
            n_repeats += 1
    for j in range(rows.size):
        slot = np.int64((np.uint64(rows[j]) * GOLDEN) >> shift)
        while slots[slot] >= 0 and table[slots[slot]] != rows[j]:
            slot = (slot + 1) & mask
        place[j] = slots[slot]
    return n_repeats
