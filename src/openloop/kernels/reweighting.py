"""Sums of gains under many weights at once, by cluster of users: one pass over rows that are sorted by user.

Users are dealt to clusters, u to u mod C, so a jackknife over clusters costs nothing whatever the number of users.
Kernels know nothing about metrics or propensities: rows have a weight, a level, an item and a gain per model.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from openloop.kernels.compiling import fixed, njit

Floats = npt.NDArray[np.float64]
Array = npt.NDArray[Any]

BLOCK = 2**16  # rows whose gains are brought side by side, which fit into a cache
PARTS = 4  # of the rows, each summed by a separate thread
WIDTH = 8  # grid points: a width that is known beforehand is one instruction


class Weighting(NamedTuple):
    """The weight of a row at grid point g: w · by_level[level, g] · by_item[item, g]."""

    weight: Floats  # (n,)
    level: Array  # (n,)
    item: Array  # (n,)
    by_level: Floats  # (L, G)
    by_item: Floats  # (I, G)


def tilted_sums(rows: Weighting, gains: Sequence[Floats], user: Array, clusters: int) -> Floats:
    """Σw_g and Σw_g·δ_m of each cluster: (clusters, M + 1, G), the weights first; rows are sorted by user."""
    by_level, by_item = _padded(rows.by_level), _padded(rows.by_item)

    def add(part: slice, sums: Floats) -> None:
        weight, level, item, own = fixed(rows.weight[part], rows.level[part], rows.item[part], user[part])
        _add_tilted(weight, level, item, by_level, by_item, _side_by_side(gains, part), own, sums)

    return summed(add, len(user), (clusters, len(gains) + 1, WIDTH))[:, :, : rows.by_level.shape[1]]


def tilted_sums_numpy(rows: Weighting, gains: Sequence[Floats], user: Array, clusters: int) -> Floats:
    """The definition, with all weights in memory."""
    weight = rows.weight[:, None] * rows.by_level[rows.level] * rows.by_item[rows.item]  # (n, G)
    sums = np.zeros((clusters, len(gains) + 1, weight.shape[1]))
    for m, gain in enumerate([np.ones(len(user)), *gains]):
        np.add.at(sums[:, m], user % clusters, weight * gain[:, None])
    return sums


@njit(cache=True, nogil=True)
def _add_tilted(
    weight: Floats,
    level: Array,
    item: Array,
    by_level: Floats,
    by_item: Floats,
    gains: Floats,
    user: Array,
    sums: Floats,
) -> None:
    M = gains.shape[1]
    w, own = np.empty(WIDTH), np.zeros((M + 1, WIDTH))  # of the row, and of its user
    for i in range(user.size):
        for g in range(WIDTH):
            w[g] = weight[i] * by_level[level[i], g] * by_item[item[i], g]
        for g in range(WIDTH):
            own[0, g] += w[g]
        for m in range(M):
            gain = gains[i, m]
            for g in range(WIDTH):
                own[m + 1, g] += w[g] * gain
        if i + 1 == user.size or user[i + 1] != user[i]:
            sums[user[i] % sums.shape[0]] += own
            own[:] = 0.0


def item_sums(weight: Floats, level: Array, item: Array, by_level: Floats, items: int) -> Floats:
    """Σ w · by_level[level, g] of each item: (items, G)."""
    sums = np.zeros((items, WIDTH))
    weight, level, item = fixed(weight, level, item)
    _add_items(weight, level, item, _padded(by_level), sums)
    return sums[:, : by_level.shape[1]]


def item_sums_numpy(weight: Floats, level: Array, item: Array, by_level: Floats, items: int) -> Floats:
    """The definition."""
    sums = np.zeros((items, by_level.shape[1]))
    np.add.at(sums, item, weight[:, None] * by_level[level])
    return sums


@njit(cache=True, nogil=True)
def _add_items(weight: Floats, level: Array, item: Array, by_level: Floats, sums: Floats) -> None:
    for i in range(weight.size):
        for g in range(WIDTH):
            sums[item[i], g] += weight[i] * by_level[level[i], g]


class WeightParts(NamedTuple):
    """Weights w, and of each the part a that propensities cannot move; b = w − a is the other."""

    weight: Floats  # (n,)
    fixed: Floats  # (n,)


def part_sums(rows: WeightParts, gains: Sequence[Floats], pairs: Array, user: Array, clusters: int) -> Floats:
    """Σad, Σbd₊ and Σbd₋ of each cluster and pair of models, d = δ_j − δ_k: (clusters, P, 3)."""

    def add(part: slice, sums: Floats) -> None:
        # What is held may be one number, broadcast.
        weight, held, of, own = fixed(rows.weight[part], rows.fixed[part], pairs, user[part])
        _add_parts(weight, held, _side_by_side(gains, part), of, own, sums)

    return summed(add, len(user), (clusters, len(pairs), 3))


def part_sums_numpy(rows: WeightParts, gains: Sequence[Floats], pairs: Array, user: Array, clusters: int) -> Floats:
    """The definition."""
    sums, moving = np.zeros((clusters, len(pairs), 3)), np.maximum(rows.weight - rows.fixed, 0.0)
    for p, (j, k) in enumerate(pairs):
        d = gains[j] - gains[k]
        columns = rows.fixed * d, moving * np.maximum(d, 0), moving * np.maximum(-d, 0)
        for c, column in enumerate(columns):
            np.add.at(sums[:, p, c], user % clusters, column)
    return sums


@njit(cache=True, nogil=True)
def _add_parts(weight: Floats, held: Floats, gains: Floats, pairs: Array, user: Array, sums: Floats) -> None:
    P, M = pairs.shape[0], gains.shape[1]
    D, A, B = np.zeros(M), np.zeros(P), np.zeros(P)  # of the row's user; D of each model
    for i in range(user.size):
        moving = max(weight[i] - held[i], 0.0)
        for m in range(M):
            D[m] += held[i] * gains[i, m]
        for p in range(P):
            d = moving * (gains[i, pairs[p, 0]] - gains[i, pairs[p, 1]])
            A[p] += max(d, 0.0)
            B[p] += max(-d, 0.0)
        if i + 1 == user.size or user[i + 1] != user[i]:
            into = sums[user[i] % sums.shape[0]]
            for p in range(P):
                into[p, 0] += D[pairs[p, 0]] - D[pairs[p, 1]]
                into[p, 1] += A[p]
                into[p, 2] += B[p]
            D[:], A[:], B[:] = 0.0, 0.0, 0.0


def summed(add: Callable[[slice, Floats], None], rows: int, shape: tuple[int, ...]) -> Floats:
    """The sums that `add` makes of blocks of rows. Parts are as many whatever the threads, and so are the bits."""

    def part(first: int) -> Floats:
        sums = np.zeros(shape)
        for block in blocks[first::PARTS]:
            add(block, sums)
        return sums

    blocks = [slice(start, start + BLOCK) for start in range(0, rows, BLOCK)]
    with ThreadPoolExecutor(PARTS) as pool:
        return np.sum(list(pool.map(part, range(min(PARTS, len(blocks))))), axis=0)


def _side_by_side(gains: Sequence[Floats], part: slice) -> Floats:
    """The gains of all models of some rows, (rows, M)."""
    return np.stack([gain[part] for gain in gains], axis=1)


def _padded(table: Floats) -> Floats:
    """The table with as many columns as the kernels read, the further ones 0."""
    return np.ascontiguousarray(np.pad(table, ((0, 0), (0, WIDTH - table.shape[1]))))
