"""The best few of each row of scores, in order; -inf is no candidate, and of equal scores the first leads.

`best` takes rows that are at hand, `best_lists` asks for those of a block of users at a time. Kernels know nothing
about models: rows of scores are all that they ask for.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import numpy.typing as npt
from threadpoolctl import threadpool_limits

from openloop.errors import UndefinedError
from openloop.kernels.compiling import njit
from openloop.kernels.ranking import Scorer, block_users, checked_block, workers

Array = npt.NDArray[Any]
Ints = npt.NDArray[np.int32]
Pointers = npt.NDArray[np.int64]


def best(scores: Array, k: int) -> tuple[Ints, Pointers]:
    """Columns of the k best of each row of (B, I), best first, -1 where candidates are fewer; and how many there are.

    The number of candidates is -1 for a row with NaN or +inf, which has no order.
    """
    n_rows, n_columns = scores.shape
    chosen, candidates = np.empty((n_rows, min(k, n_columns)), np.int32), np.empty(n_rows, np.int64)
    fill_best(np.ascontiguousarray(scores), chosen, candidates)
    return chosen, candidates


def best_lists(
    scores_of: Scorer,
    shape: tuple[int, int],
    k: int,
    excluded_ptr: Pointers,
    excluded_item: Ints,
    *,
    threads: int | None = None,
) -> tuple[Ints, int]:
    """The k best items of every user (U, k), -1 where there are fewer; user u's item[ptr[u]:ptr[u + 1]] are excluded.

    Beside them the number of users of whom an item that was left out scores as much as the last of the list.
    `scores_of` is called from several threads at once, each with a BLAS of one thread; blocks do not depend on
    `threads`. `shape` is (U, I).
    """
    n_users, n_items = shape
    lists = np.empty((n_users, min(k, n_items)), np.int32)
    step = block_users(n_items, n_users)

    def select(first: int) -> int:
        users = np.arange(first, min(first + step, n_users))
        scores = np.array(checked_block(scores_of(users), users.size, n_items))  # (B, I), a copy: it is written to
        ptr = excluded_ptr[first : users[-1] + 2]
        scores[np.repeat(users - first, np.diff(ptr)), excluded_item[ptr[0] : ptr[-1]]] = -np.inf
        lists[users], candidates = best(scores, k)
        if (bad := np.flatnonzero(candidates < 0)).size:
            raise UndefinedError(
                f"user {users[bad[0]]} has NaN or +inf among the scores, which have no order; use -inf."
            )
        return _tied(scores, lists[users])

    with threadpool_limits(1, "blas"), ThreadPoolExecutor(workers(threads, step, n_items)) as pool:
        return lists, sum(pool.map(select, range(0, n_users, step)))


@njit(cache=True, nogil=True)
def _tied(scores: Array, chosen: Ints) -> int:
    """Of how many rows a candidate that was not chosen scores as much as the last one chosen."""
    k, count = chosen.shape[1], 0
    for b in range(scores.shape[0]):
        row, last = scores[b], chosen[b, k - 1]
        if last < 0:
            continue
        least = 0
        for c in range(row.size):
            least += row[c] >= row[last]
        count += least > k
    return count


@njit(cache=True, nogil=True)
def fill_best(scores: Array, chosen: Ints, candidates: Pointers) -> None:
    """One pass per row, with the k best so far in a heap whose top is the worst of them."""
    k = chosen.shape[1]
    for b in range(scores.shape[0]):
        row, heap = scores[b], chosen[b]
        size, count = 0, 0
        for c in range(row.size):
            x = row[c]
            if not x < np.inf:
                count = -1
                break
            if x == -np.inf:
                continue
            count += 1
            if size < k:
                heap[size] = c
                size += 1
                if size == k:
                    for at in range(k // 2 - 1, -1, -1):
                        _sink(row, heap, at, k)
            elif x > row[heap[0]]:  # an equal one comes later, hence below
                heap[0] = c
                _sink(row, heap, 0, k)
        candidates[b] = count
        _order(row, heap, size, k)


@njit(cache=True, nogil=True)
def _worse(row: Array, i: int, j: int) -> bool:
    return row[i] < row[j] or (row[i] == row[j] and i > j)


@njit(cache=True, nogil=True)
def _sink(row: Array, heap: Ints, at: int, size: int) -> None:
    """Move an entry down until neither of its children is worse."""
    while True:
        child = 2 * at + 1
        if child >= size:
            return
        if child + 1 < size and _worse(row, heap[child + 1], heap[child]):
            child += 1
        if not _worse(row, heap[child], heap[at]):
            return
        heap[at], heap[child] = heap[child], heap[at]
        at = child


@njit(cache=True, nogil=True)
def _order(row: Array, heap: Ints, size: int, k: int) -> None:
    """Take the worst from the top to the end, until the best is first."""
    if size < k:
        for at in range(size // 2 - 1, -1, -1):
            _sink(row, heap, at, size)
    for last in range(size - 1, 0, -1):
        heap[0], heap[last] = heap[last], heap[0]
        _sink(row, heap, 0, last)
    heap[size:] = -1


def best_numpy(scores: Array, k: int) -> tuple[Ints, Pointers]:
    """The definition: a stable sort of each row."""
    order = np.argsort(-scores, axis=1, kind="stable")[:, :k].astype(np.int32)
    chosen = np.where(np.take_along_axis(scores, order, axis=1) > -np.inf, order, np.int32(-1))
    candidates = np.where((scores < np.inf).all(axis=1), (scores > -np.inf).sum(axis=1), -1)
    return chosen, candidates
