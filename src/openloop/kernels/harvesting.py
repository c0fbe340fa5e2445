"""Clicks of groups by position: the score of log θ, its information, and what each row adds to them.

A group g was shown n_gk times at position k and clicked c_gk times; C_g = Σ_k c_gk. Given C_g, its clicks fall on
positions with p_gk = n_gk θ_k/Σ_j n_gj θ_j, so the score of log θ is Σ_g (c_gk − C_g p_gk) and its information
H = Σ_g C_g (diag p_g − p_g p_gᵀ).

Kernels know nothing about users, items or requests: what makes a group is the caller's matter.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from openloop.kernels.compiling import njit

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Array = npt.NDArray[Any]

SPAN = 2  # a table for keys may be so many times longer than they are many
DIGIT = 11  # bits of a key that one pass of the sort looks at: its 2,048 counts stay in the nearest cache


class Cells(NamedTuple):
    """Cells (g, k) in which rows lie, sorted by group and position: those of group g are start[g] … start[g+1] - 1."""

    start: Ints  # (G + 1,)
    position: Ints  # (cells,) from 0
    shown: Floats  # (cells,) n_gk
    clicks: Floats  # (cells,) c_gk


def coded(key: Ints) -> tuple[Ints, Ints]:
    """The distinct keys, sorted, and the place of each key among them; keys count from 0.

    Keys in a narrow range are looked up in a table, others are sorted.
    """
    size = int(key.max(initial=-1)) + 1
    if size <= SPAN * len(key):
        there = np.zeros(size, np.bool_)
        there[key] = True
        return np.flatnonzero(there), (np.cumsum(there) - 1)[key]
    order = sorted_order(key)
    values, places = np.empty(len(key), np.int64), np.empty(len(key), np.int64)
    found = _number(key, order, values, places)
    return values[:found].copy(), places


@njit(cache=True, nogil=True)
def _number(key: Ints, order: Ints, values: Ints, places: Ints) -> int:
    found = 0
    for i in order:
        if found == 0 or values[found - 1] != key[i]:
            values[found] = key[i]
            found += 1
        places[i] = found - 1
    return found


def sorted_order(key: Ints) -> Ints:
    """The stable order of keys from 0: radix sort, a digit at a time."""
    order, spare = np.arange(len(key)), np.empty(len(key), np.int64)
    for shift in range(0, int(key.max(initial=0)).bit_length(), DIGIT):
        _sort_digit(key, shift, order, spare)
        order, spare = spare, order
    return order


@njit(cache=True, nogil=True)
def _sort_digit(key: Ints, shift: int, order: Ints, into: Ints) -> None:
    size = 1 << DIGIT
    place = np.zeros(size + 1, np.int64)
    for i in range(key.size):
        place[((key[i] >> shift) & (size - 1)) + 1] += 1
    for digit in range(size):
        place[digit + 1] += place[digit]
    for i in order:
        digit = (key[i] >> shift) & (size - 1)
        into[place[digit]] = i
        place[digit] += 1


def score_and_information(cells: Cells, theta: Floats) -> tuple[Floats, Floats]:
    """The score of log θ (K,), and H (K, K)."""
    score, information = np.zeros(len(theta)), np.zeros((len(theta), len(theta)))
    _add_information(*cells, theta, score, information)
    return score, information


def score_and_information_numpy(cells: Cells, theta: Floats) -> tuple[Floats, Floats]:
    """The definition, with a dense table of groups × positions."""
    n, c = dense(cells, len(theta))
    C = c.sum(axis=1, keepdims=True)  # (G, 1)
    p = n * theta / (n @ theta)[:, None]  # (G, K)
    return (c - C * p).sum(axis=0), np.diag((C * p).sum(axis=0)) - (C * p).T @ p


@njit(cache=True, nogil=True)
def _add_information(
    start: Ints, position: Ints, shown: Floats, clicks: Floats, theta: Floats, score: Floats, information: Floats
) -> None:
    for g in range(start.size - 1):
        first, last = start[g], start[g + 1]
        clicked, total = 0.0, 0.0
        for i in range(first, last):
            clicked += clicks[i]
            total += shown[i] * theta[position[i]]
        for i in range(first, last):
            k = position[i]
            p = shown[i] * theta[k] / total
            score[k] += clicks[i] - clicked * p
            information[k, k] += clicked * p
            for j in range(first, last):
                information[k, position[j]] -= clicked * p * (shown[j] * theta[position[j]] / total)


def row_scores(cells: Cells, theta: Floats, cell: Ints, reward: Floats, cluster: Array, clusters: int) -> Floats:
    """Σ e(1_k − p_g) over the rows of each cluster, (clusters, K); e = c − r_g θ_k, r_g = C_g/Σ_j n_gj θ_j.

    `cell` is the cell of each row, which may be of any cluster: a group may cross clusters.
    """
    sums = np.zeros((clusters, len(theta)))
    group = np.repeat(np.arange(len(cells.start) - 1), np.diff(cells.start))  # (cells,)
    totals = np.add.reduceat(cells.shown * theta[cells.position], cells.start[:-1])  # (G,) Σ_j n_gj θ_j
    rate = np.add.reduceat(cells.clicks, cells.start[:-1]) / totals  # (G,) r_g
    share = cells.shown * theta[cells.position] / totals[group]  # (cells,) p_gk
    _add_rows(
        cells.start, cells.position, group, share, (rate[group] * theta[cells.position]), cell, reward, cluster, sums
    )
    return sums


@njit(cache=True, nogil=True)
def _add_rows(
    start: Ints,
    position: Ints,
    group: Ints,
    share: Floats,
    expected: Floats,
    cell: Ints,
    reward: Floats,
    cluster: Array,
    sums: Floats,
) -> None:
    for row in range(cell.size):
        own, u = cell[row], cluster[row]
        e = reward[row] - expected[own]
        sums[u, position[own]] += e
        g = group[own]
        for i in range(start[g], start[g + 1]):
            sums[u, position[i]] -= e * share[i]


def links(cells: Cells, depth: int) -> npt.NDArray[np.bool_]:
    """Whether a group that was shown at both k and j has a click at k: (K, K), row k and column j."""
    found = np.zeros((depth, depth), np.bool_)
    _add_links(cells.start, cells.position, cells.clicks, found)
    return found


def links_numpy(cells: Cells, depth: int) -> npt.NDArray[np.bool_]:
    """The definition, with a dense table of groups × positions."""
    n, c = dense(cells, depth)
    return (c > 0).T.astype(float) @ (n > 0) > 0


@njit(cache=True, nogil=True)
def _add_links(start: Ints, position: Ints, clicks: Floats, found: Array) -> None:
    for g in range(start.size - 1):
        for i in range(start[g], start[g + 1]):
            if clicks[i] > 0:
                for j in range(start[g], start[g + 1]):
                    found[position[i], position[j]] = True


def dense(cells: Cells, depth: int) -> tuple[Floats, Floats]:
    """n and c of every group and position, (G, K) each; for small logs and for tests."""
    G = len(cells.start) - 1
    group = np.repeat(np.arange(G), np.diff(cells.start))
    n, c = np.zeros((G, depth)), np.zeros((G, depth))
    n[group, cells.position], c[group, cells.position] = cells.shown, cells.clicks
    return n, c
