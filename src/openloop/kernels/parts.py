"""Parts of rows and of owners for threads, and sums over parts.

Parts depend on the data alone, never on the number of threads, and what parts add up is added in their order, so bits
do not depend on threads. Kernels know nothing about models.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor
from itertools import pairwise

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Pointers = npt.NDArray[np.int64]
Parts = list[tuple[int, int]]

PART = 20_000  # rows: enough for a thread to be worth its start
MOST = 64  # parts of many cells, where the order of adding does not depend on parts


def row_parts(n: int, size: int | None = None) -> Parts:
    """Ranges of `size` rows."""
    size = size or PART
    return [(first, min(first + size, n)) for first in range(0, n, size)]


def owner_parts(ptr: Pointers, size: int | None = None) -> Parts:
    """Ranges of owners with about `size` rows each; those of owner i are ptr[i] : ptr[i + 1]."""
    size = size or PART
    cuts = np.searchsorted(ptr, np.arange(size, int(ptr[-1]), size))
    return list(pairwise(np.unique(np.concatenate([[0], cuts, [len(ptr) - 1]])).tolist()))


def each_part(work: Callable[[int, int], None], parts: Parts, pool: Executor) -> None:
    """Call work(first, last) on every part; on a single one without a thread of its own."""
    if len(parts) == 1:
        work(*parts[0])
    else:
        list(pool.map(lambda part: work(*part), parts))


def in_parts(ptr: Pointers, work: Callable[[int, int], None], pool: Executor) -> None:
    """Call work(first, last) on ranges of owners with about equally many cells, of which there may be very many."""
    each_part(work, owner_parts(ptr, max(PART, int(ptr[-1]) // MOST)), pool)


def sum_of_parts(
    work: Callable[[int, int, Floats], None], parts: Parts, shape: tuple[int, ...], pool: Executor
) -> Floats:
    """The sum of what work(first, last, sums) adds to zeros of a shape, each part to its own."""
    sums, place = np.zeros((len(parts), *shape)), {first: k for k, (first, _) in enumerate(parts)}
    each_part(lambda first, last: work(first, last, sums[place[first]]), parts, pool)
    return sums.sum(axis=0)
