"""Sums of gains under many weights at once, by cluster of users: one pass over rows that are sorted by user.

Users are dealt to clusters, so a jackknife over clusters costs nothing whatever the number of users.
Kernels know nothing about metrics or propensities: rows have a weight, a level, an item and a gain per model.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from openloop.kernels.compiling import fixed, njit

Floats = npt.NDArray[np.float64]
Array = npt.NDArray[Any]

WIDTH = 8  # grid points: a width that is known beforehand is one instruction


class Weighting(NamedTuple):
    """The weight of a row at grid point g: w · by_level[level, g] · by_item[item, g]."""

    weight: Floats  # (n,)
    level: Array  # (n,)
    item: Array  # (n,)
    by_level: Floats  # (L, G)
    by_item: Floats  # (I, G)


class Owners(NamedTuple):
    """The user of each row, and the cluster of each user."""

    user: Array  # (n,) rising
    cluster: Array  # (u,)


def tilted_sums(rows: Weighting, gains: Sequence[Floats], owners: Owners, clusters: int) -> Floats:
    """Σw_g and Σw_g·δ_m of each cluster: (clusters, M + 1, G), the weights first."""
    sums = np.zeros((clusters, len(gains) + 1, WIDTH))
    weight, level, item, user, cluster = fixed(rows.weight, rows.level, rows.item, *owners)
    by_level, by_item = _padded(rows.by_level), _padded(rows.by_item)
    _add_tilted(weight, level, item, by_level, by_item, _side_by_side(gains), user, cluster, sums)
    return sums[:, :, : rows.by_level.shape[1]]


@njit(cache=True, nogil=True)
def _add_tilted(
    weight: Floats,
    level: Array,
    item: Array,
    by_level: Floats,
    by_item: Floats,
    gains: Floats,
    user: Array,
    cluster: Array,
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
            sums[cluster[user[i]]] += own
            own[:] = 0.0


def item_sums(weight: Floats, level: Array, item: Array, by_level: Floats, items: int) -> Floats:
    """Σ w · by_level[level, g] of each item: (items, G)."""
    sums = np.zeros((items, WIDTH))
    weight, level, item = fixed(weight, level, item)
    _add_items(weight, level, item, _padded(by_level), sums)
    return sums[:, : by_level.shape[1]]


@njit(cache=True, nogil=True)
def _add_items(weight: Floats, level: Array, item: Array, by_level: Floats, sums: Floats) -> None:
    for i in range(weight.size):
        for g in range(WIDTH):
            sums[item[i], g] += weight[i] * by_level[level[i], g]


class WeightParts(NamedTuple):
    """Weights w, and of each the part a that propensities cannot move; b = w − a is the other."""

    weight: Floats  # (n,)
    fixed: Floats  # (n,)


def part_sums(rows: WeightParts, gains: Sequence[Floats], pairs: Array, owners: Owners, clusters: int) -> Floats:
    """Σad, Σbd₊ and Σbd₋ of each cluster and pair of models, d = δ_j − δ_k: (clusters, P, 3)."""
    sums = np.zeros((clusters, len(pairs), 3))
    weight, certain, pair, user, cluster = fixed(rows.weight, rows.fixed, pairs, *owners)
    _add_parts(weight, certain, _side_by_side(gains), pair, user, cluster, sums)
    return sums


@njit(cache=True, nogil=True)
def _add_parts(
    weight: Floats, certain: Floats, gains: Floats, pairs: Array, user: Array, cluster: Array, sums: Floats
) -> None:
    P, M = pairs.shape[0], gains.shape[1]
    D, A, B = np.zeros(M), np.zeros(P), np.zeros(P)  # of the row's user; D of each model
    for i in range(user.size):
        moving = max(weight[i] - certain[i], 0.0)
        for m in range(M):
            D[m] += certain[i] * gains[i, m]
        for p in range(P):
            d = moving * (gains[i, pairs[p, 0]] - gains[i, pairs[p, 1]])
            A[p] += max(d, 0.0)
            B[p] += max(-d, 0.0)
        if i + 1 == user.size or user[i + 1] != user[i]:
            into = sums[cluster[user[i]]]
            for p in range(P):
                into[p, 0] += D[pairs[p, 0]] - D[pairs[p, 1]]
                into[p, 1] += A[p]
                into[p, 2] += B[p]
            D[:], A[:], B[:] = 0.0, 0.0, 0.0


def _side_by_side(gains: Sequence[Floats]) -> Floats:
    """The gains of all models, (rows, M)."""
    return np.stack(gains, axis=1)


def _padded(table: Floats) -> Floats:
    """The table with as many columns as the kernels read, the further ones 0."""
    return np.ascontiguousarray(np.pad(table, ((0, 0), (0, WIDTH - table.shape[1]))))
