"""Exact ranks: how many candidates rank above each wanted item, and how many tie with it.

A user's candidates are all items but the excluded ones; the item being ranked always is one. Scores come in
blocks of users, so memory is bounded by the block, not by users × items. Wanted and excluded items are lists
by user: user u owns item[ptr[u]:ptr[u + 1]].

Kernels know nothing about models: a function from users to their rows of scores is all that they ask.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import numpy.typing as npt
from threadpoolctl import threadpool_limits

from openloop.errors import InputError, PredictionError
from openloop.kernels.compiling import njit

Array = npt.NDArray[Any]
Ints = npt.NDArray[np.int32]
Pointers = npt.NDArray[np.int64]
Scorer = Callable[[Pointers], Array]  # users (B,) -> scores (B, I)

# Wide blocks make a fast matrix product, small ones leave their rows in cache for counting; this serves both.
BLOCK_BYTES = 10 * 2**20
LEAST = 1e-30  # products below, or beyond its inverse, leave the range of float32
# A product of fewer users reads all of Q for too little work: with a million items twice the time for 2 users a block.
FEW_USERS, FEW_BYTES = 16, 64 * 2**20
TOTAL_BYTES = 256 * 2**20


def ranks(
    scores_of: Scorer,
    wanted_ptr: Array,
    wanted_item: Array,
    n_items: int,
    excluded_ptr: Array | None = None,
    excluded_item: Array | None = None,
    *,
    threads: int | None = None,
    block: int | None = None,
) -> tuple[Ints, Ints]:
    """h (candidates strictly above) and e (tied, itself included) of each wanted item.

    `scores_of` gets an array of users, only those who want something. It is called from several threads at
    once, each with a BLAS of one thread. Blocks do not depend on `threads`, so results do not either; but a
    matrix product may round differently in a block of another shape.
    """
    n_users = len(wanted_ptr) - 1
    wanted = _lists("wanted", wanted_ptr, wanted_item, n_users, n_items)
    excluded = _excluded(excluded_ptr, excluded_item, n_users, n_items)
    users = np.flatnonzero(np.diff(wanted[0]))
    step = block or block_users(n_items, n_users)
    h, e = np.zeros((2, wanted[1].size), np.int32)

    def count(first: int) -> None:
        part = users[first : first + step]
        scores = checked_block(scores_of(part), part.size, n_items)  # (B, I)
        bad = count_above(scores, part, *wanted, *excluded, np.int32(1), h, e)
        if bad >= 0:
            raise PredictionError(f"ranks: user {part[bad]} has NaN scores, which have no rank; use -inf.")

    with threadpool_limits(1, "blas"), ThreadPoolExecutor(workers(threads, step, n_items)) as pool:
        list(pool.map(count, range(0, users.size, step)))
    return h, e


def factor_ranks(
    user_factors: Array,
    item_factors: Array,
    item_bias: Array | None,
    wanted_ptr: Array,
    wanted_item: Array,
    excluded_ptr: Array | None = None,
    excluded_item: Array | None = None,
    *,
    threads: int | None = None,
    block: int | None = None,
) -> tuple[Ints, Ints]:
    """`ranks` of the scores P Qᵀ + b."""
    n_items = len(item_factors)
    step = block or block_users(n_items, len(user_factors))
    scores_of = factor_scorer(user_factors, item_factors, item_bias, step)
    lists = (wanted_ptr, wanted_item, n_items, excluded_ptr, excluded_item)
    return ranks(scores_of, *lists, threads=threads, block=step)


def factor_scorer(user_factors: Array, item_factors: Array, item_bias: Array | None, step: int) -> Scorer:
    """The scores P Qᵀ + b of up to `step` users by one float32 matrix product; a thread's next ones overwrite them."""
    P, Qt = _factors(user_factors, item_factors, item_bias)  # (U, K), (K, I)
    own = threading.local()

    def scores_of(users: Pointers) -> Array:
        if not hasattr(own, "scores"):
            own.scores = np.empty((step, Qt.shape[1]), np.float32)
        return np.matmul(P[users], Qt, out=own.scores[: users.size])  # (B, I)

    return scores_of


def block_users(n_items: int, n_users: int) -> int:
    """Users a block, whatever the number of threads; a multiple of 32 suits the matrix product.

    Even few users are divided into several blocks, because threads should end together.
    """
    row = 4 * max(n_items, 1)
    fit = min(BLOCK_BYTES // row, 1024, max(64, n_users // 16))
    return max(1, fit // 32 * 32 or fit, min(FEW_USERS, FEW_BYTES // row))


def workers(threads: int | None, step: int, n_items: int) -> int:
    """The threads asked for, or fewer where rows are so long that their blocks would not fit in memory."""
    fit = TOTAL_BYTES // max(4 * step * n_items, 1)
    return max(1, min(threads or os.cpu_count() or 1, fit))


def _factors(user: Array, item: Array, bias: Array | None) -> tuple[Array, Array]:
    """[P 1] and [Q b]ᵀ, the latter copied row by row: a product packs that faster than a transposed view."""
    if user.ndim != 2 or item.ndim != 2 or user.shape[1] != item.shape[1]:
        raise InputError(f"factor_ranks: factors must be U×K and I×K, got {user.shape} and {item.shape}.")
    user, item, bias = _within_range(user, item, bias)
    if bias is not None:
        user, item = np.column_stack([user, np.ones(len(user))]), np.column_stack([item, bias])
    return np.ascontiguousarray(user, np.float32), np.ascontiguousarray(item.T, np.float32)


def _within_range(user: Array, item: Array, bias: Array | None) -> tuple[Array, Array, Array | None]:
    """The same ranking where float32 would lose it: an offset that all items share goes, and extremes are scaled."""
    P, Q = (float(np.abs(x).max(initial=0.0)) for x in (user, item))
    if bias is not None and abs(middle := float(bias.mean(dtype=np.float64))) > 16 * (np.ptp(bias) + P * Q):
        bias = bias.astype(np.float64) - middle
    if bias is None:
        return (user, item, None) if P * Q == 0 or LEAST < P * Q < 1 / LEAST else (user / P, item / Q, None)
    most = max(P * Q, float(np.abs(bias).max(initial=0.0)))  # shrunk factors may be far below the bias
    if P * Q == 0 or LEAST < most < 1 / LEAST:
        return user, item, bias
    return user / P, item / Q * (P * Q / most), bias.astype(np.float64) / most


def checked_block(scores: Array, n_users: int, n_items: int) -> Array:
    """Scores as the kernel reads them; only float32 stays float32, since rounding would make ties."""
    if scores.shape != (n_users, n_items):
        raise InputError(f"ranks: scores must be {n_users} users × {n_items} items, got {scores.shape}.")
    return _frozen(np.ascontiguousarray(scores, np.float32 if scores.dtype == np.float32 else np.float64))


def _lists(name: str, ptr: Array, item: Array, n_users: int, n_items: int) -> tuple[Pointers, Ints]:
    ptr, item = np.ascontiguousarray(ptr, np.int64), np.ascontiguousarray(item, np.int32)
    if ptr.size != n_users + 1 or ptr[0] != 0 or ptr[-1] != item.size or np.any(np.diff(ptr) < 0):
        raise InputError(f"ranks: {name}_ptr must rise from 0 to {item.size} and have {n_users + 1} entries.")
    if item.size and not (item.min() >= 0 and item.max() < n_items):
        raise InputError(f"ranks: {name} items must lie in 0…{n_items - 1}, got {item.min()}…{item.max()}.")
    return _frozen(ptr), _frozen(item)


def _excluded(ptr: Array | None, item: Array | None, n_users: int, n_items: int) -> tuple[Pointers, Ints]:
    """The excluded lists; an item that occurred twice would be taken out of the counts twice."""
    if ptr is None or item is None:
        ptr, item = np.zeros(n_users + 1, np.int64), np.empty(0, np.int32)
    ptr, item = _lists("excluded", ptr, item, n_users, n_items)
    later = np.ones(item.size + 1, bool)  # not the first of a user
    later[ptr] = False
    if np.any((item[1:] <= item[:-1]) & later[1:-1]):
        raise InputError("ranks: a user's excluded items must ascend, each once; sort them by (user, item).")
    return ptr, item


def _frozen(array: Array) -> Array:
    """A read-only view: numba compiles once, whether or not the caller's array may be written."""
    view = array.view()
    view.flags.writeable = False
    return view


# h = |{c ∈ C_u : s_c > s_i}|,  e = |{c ∈ C_u : s_c = s_i}|,  C_u = all items - excluded + {i}.
# Counting runs over the whole row, branch-free; the few excluded items are then taken out of the counts.


@njit(cache=True, nogil=True)
def count_above(
    scores: Array,  # (B, I)
    users: Pointers,  # (B,)
    wanted_ptr: Pointers,
    wanted_item: Ints,
    excluded_ptr: Pointers,
    excluded_item: Ints,
    one: np.int32,
    h: Ints,
    e: Ints,
) -> int:
    """Fill h and e of the wanted items of a block of users; returns the first row with NaN, or -1."""
    for b in range(users.size):
        u, row = users[b], scores[b]
        if _numbers(row, one) < row.size:
            return b
        wanted = wanted_item[wanted_ptr[u] : wanted_ptr[u + 1]]
        excluded = excluded_item[excluded_ptr[u] : excluded_ptr[u + 1]]
        above, least = _counts(row, row[wanted], one)
        gone_above, gone_least = _counts(row[excluded], row[wanted], one)
        for j in range(wanted.size):
            w = wanted_ptr[u] + j
            h[w] = above[j] - gone_above[j]
            e[w] = (least[j] - above[j]) - (gone_least[j] - gone_above[j]) + _holds(excluded, wanted[j])
    return -1


# `one` is 1, but the compiler must not know: it then adds under a mask, where a literal 1 makes it turn masks
# into numbers first, a fifth slower.


@njit(cache=True, nogil=True)
def _counts(row: Array, x: Array, one: np.int32) -> tuple[Ints, Ints]:
    """For each x, how many of the row are > x, and how many are ≥ x."""
    above, least = np.empty(x.size, np.int32), np.empty(x.size, np.int32)
    for j in range(x.size):
        y, n, m = x[j], np.int32(0), np.int32(0)
        for c in range(row.size):
            if row[c] > y:
                n = np.int32(n + one)
            if row[c] >= y:
                m = np.int32(m + one)
        above[j], least[j] = n, m
    return above, least


@njit(cache=True, nogil=True)
def _numbers(row: Array, one: np.int32) -> np.int32:
    """How many are not NaN."""
    count = np.int32(0)
    for c in range(row.size):
        if not np.isnan(row[c]):
            count = np.int32(count + one)
    return count


@njit(cache=True, nogil=True)
def _holds(items: Ints, i: int) -> int:
    """1 if the ascending items hold i, else 0."""
    at = np.searchsorted(items, i)
    return 1 if at < items.size and items[at] == i else 0


def ranks_numpy(
    scores: Array,  # (U, I)
    wanted_ptr: Array,
    wanted_item: Array,
    excluded_ptr: Array | None = None,
    excluded_item: Array | None = None,
) -> tuple[Ints, Ints]:
    """The definition, with all scores at hand."""
    h, e = np.zeros((2, len(wanted_item)), np.int32)
    for u in range(len(wanted_ptr) - 1):
        candidate = np.ones(scores.shape[1], bool)  # (I,)
        if excluded_ptr is not None and excluded_item is not None:
            candidate[excluded_item[excluded_ptr[u] : excluded_ptr[u + 1]]] = False
        for w in range(wanted_ptr[u], wanted_ptr[u + 1]):
            i = wanted_item[w]
            others = np.delete(scores[u], i)[np.delete(candidate, i)]
            h[w] = np.sum(others > scores[u, i])
            e[w] = np.sum(others == scores[u, i]) + 1
    return h, e
