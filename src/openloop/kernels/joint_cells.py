"""Cells of a grid, observed or not: lists of them, and their chance to be unobserved by a joint model.

The rating of cell (i, j) is level l with chance P(l) = Φ(c_l) - Φ(c_{l-1}), c_l = (b_l - u_iᵀv_j)/√(γ_i γ_j), and is
then observed with chance p_l = σ(e_iᵀf_j + λ_{i,l} + ψ_{j,l}). Summed over its levels an unobserved cell has the chance

    S_ij = Σ_l P(l) q_l,  q_l = 1 - p_l.

Kernels know nothing about models. A part of users is one thread's, and bits do not depend on threads.
"""

from __future__ import annotations

import math
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import expit, ndtr

from openloop.kernels.cholesky import dot
from openloop.kernels.compiling import SUMMING, fix, inlined, njit
from openloop.kernels.parts import in_parts
from openloop.kernels.streams import row_word, uniform

Array = npt.NDArray[Any]
Floats = npt.NDArray[np.float64]
Pointers = npt.NDArray[np.int64]
Ints = npt.NDArray[np.int32]
Codes = npt.NDArray[np.int8]

UNSEEN = -1  # the code of an unobserved cell

# Φ by Taylor's series of degree 5 around the nearest multiple of 1/32, to 1e-13; beyond ±8.5 it is 0 or 1 to 1e-16.
STEPS, EDGE = 32, 8.5
POINTS = np.arange(-EDGE * STEPS, EDGE * STEPS + 1) / STEPS
TABLE = np.stack([ndtr(POINTS), np.exp(-(POINTS**2) / 2) / np.sqrt(2 * np.pi)], axis=1)  # Φ and φ


@dataclass(frozen=True, slots=True, eq=False)
class GridCells:
    """Cells by user: those of u are ptr[u] : ptr[u + 1], each with its item and its level, or UNSEEN.

    An unobserved cell counts `weight` times: 1, or 1/share where cells were sampled.
    """

    ptr: Pointers
    item: Ints
    code: Codes
    n_items: int
    weight: float = 1.0

    def __post_init__(self) -> None:
        fix(self, "ptr", "item", "code")

    @property
    def user(self) -> Ints:
        """The user of each cell."""
        return np.repeat(np.arange(len(self.ptr) - 1, dtype=np.int32), np.diff(self.ptr))

    def by_user(self, values: Floats) -> Floats:
        """Sums of the cells' values per user."""
        sums, some = np.zeros(len(self.ptr) - 1), np.diff(self.ptr) > 0
        sums[some] = np.add.reduceat(values, self.ptr[:-1][some])
        return sums

    def by_item(self, values: Floats) -> Floats:
        """Sums of the cells' values per item."""
        return np.bincount(self.item, values, self.n_items).astype(np.float64, copy=False)


@dataclass(frozen=True, slots=True, eq=False)
class Ratings:
    """What the chances of levels are made of: u (U, d), v (I, d), γ of users and items, and the thresholds b."""

    u: Floats
    v: Floats
    user_scale: Floats
    item_scale: Floats
    thresholds: Floats  # (L - 1,)


@dataclass(frozen=True, slots=True, eq=False)
class Observing:
    """What the chances to be observed are made of: e (U, d′), f (I, d′), λ (U, L), ψ (I, L)."""

    e: Floats
    f: Floats
    by_user: Floats
    by_item: Floats


# -- lists of cells ------------------------------------------------------------------------------------------


def sampled_cells(observed: GridCells, share: float, word: np.uint64, pool: Executor) -> GridCells:
    """All observed cells, and each unobserved one with probability `share`; with 1, all."""
    rate = math.log1p(-share) if share < 1 else -math.inf
    counts, none = np.zeros(len(observed.ptr) - 1, np.int64), (np.empty(0, np.int32), np.empty(0, np.int8))
    given = (observed.ptr, observed.item, observed.code, observed.n_items, word, rate)
    in_parts(observed.ptr, lambda first, last: _merge(first, last, *given, counts, *none), pool)
    ptr = np.concatenate([[0], np.cumsum(counts)])
    item, code = np.empty(ptr[-1], np.int32), np.empty(ptr[-1], np.int8)
    in_parts(observed.ptr, lambda first, last: _merge(first, last, *given, ptr, item, code), pool)
    return GridCells(ptr, item, code, observed.n_items, 1 / share)


@njit(nogil=True, cache=True)
def _merge(
    first: int, last: int, ptr: Pointers, item: Ints, code: Codes, n_items: int, word: np.uint64, rate: float,
    to: Pointers, items: Ints, codes: Codes,
) -> None:  # fmt: skip
    """Observed and sampled cells in the order of items; without room for them they are counted in `to`."""
    counting = items.size == 0
    for u in range(first, last):
        own, k, at, n = row_word(word, u), 0, ptr[u], 0
        drawn = _gap(own, 0, rate)
        while at < ptr[u + 1] or drawn < n_items:
            seen = at < ptr[u + 1] and item[at] <= drawn
            j = item[at] if seen else drawn
            if not counting:
                items[to[u] + n], codes[to[u] + n] = j, code[at] if seen else UNSEEN
            n += 1
            at += seen
            if drawn == j:
                k += 1
                drawn += 1 + _gap(own, k, rate)
        if counting:
            to[u] = n


@njit(nogil=True, cache=True)
def _gap(word: np.uint64, k: int, rate: float) -> int:
    """How many cells are left out before the next: geometric."""
    return int(min(math.log(uniform(word, k)) / rate, 2.0**31))


def chosen_cells(observed: GridCells, users: Array, items: Array, pool: Executor) -> GridCells:
    """All cells of users and items for which the masks are true, observed or not."""
    wanted = np.flatnonzero(items).astype(np.int32)
    ptr = np.append(0, np.cumsum(np.where(users, len(wanted), 0)))
    item, code = np.empty(ptr[-1], np.int32), np.empty(ptr[-1], np.int8)
    given = (observed.ptr, observed.item, observed.code, ptr, wanted, item, code)
    in_parts(ptr, lambda first, last: _choose(first, last, *given), pool)
    return GridCells(ptr, item, code, observed.n_items)


@njit(nogil=True, cache=True)
def _choose(
    first: int, last: int, ptr: Pointers, item: Ints, code: Codes, to: Pointers, wanted: Ints, items: Ints,
    codes: Codes,
) -> None:  # fmt: skip
    for u in range(first, last):
        at = ptr[u]
        for k in range(to[u + 1] - to[u]):
            while at < ptr[u + 1] and item[at] < wanted[k]:
                at += 1
            seen = at < ptr[u + 1] and item[at] == wanted[k]
            items[to[u] + k], codes[to[u] + k] = wanted[k], code[at] if seen else UNSEEN


# -- the chance to be unobserved -----------------------------------------------------------------------------


@inlined
def fast_cdf(x: float) -> float:
    """Φ(x), to 1e-13."""
    x = min(max(x, -EDGE), EDGE)
    k = int(x * STEPS + EDGE * STEPS + 0.5)
    z = k / STEPS - EDGE
    d = x - z
    slope = 1 + d * (-z / 2 + d * ((z * z - 1) / 6 + d * (z * (3 - z * z) / 24 + d * (z * z * (z * z - 6) + 3) / 120)))
    return TABLE[k, 0] + TABLE[k, 1] * d * slope


def missing_logs(cells: GridCells, ratings: Ratings, observing: Observing, pool: Executor) -> Floats:
    """log S of each unobserved cell, and 0 of each observed one."""
    out = np.empty(len(cells.item))
    given = (*plain_ratings(ratings), *plain_odds(observing))

    def work(first: int, last: int) -> None:
        _missing(first, last, cells.ptr, cells.item, cells.code, *given, out)
        mine = out[cells.ptr[first] : cells.ptr[last]]
        np.log(mine, out=mine)

    in_parts(cells.ptr, work, pool)
    return out


def plain_ratings(ratings: Ratings) -> tuple[Floats, Floats, Floats, Floats, Floats]:
    """u, v, 1/√γ of both sides, and b, in the order of the kernels."""
    scales = (1 / np.sqrt(ratings.user_scale), 1 / np.sqrt(ratings.item_scale))
    return (np.ascontiguousarray(ratings.u), np.ascontiguousarray(ratings.v), *scales, ratings.thresholds)


def plain_odds(observing: Observing) -> tuple[Floats, Floats, Floats, Floats]:
    """e and f, and the odds exp λ and exp ψ: a cell's are exp(eᵀf) times both, which saves exponentials."""
    return observing.e, observing.f, np.exp(observing.by_user), np.exp(observing.by_item)


@njit(nogil=True, cache=True, fastmath=SUMMING)
def _missing(
    first: int, last: int, ptr: Pointers, item: Ints, code: Codes, u: Floats, v: Floats, a: Floats, b: Floats,
    cuts: Floats, e: Floats, f: Floats, user_odds: Floats, item_odds: Floats, out: Floats,
) -> None:  # fmt: skip
    P = np.empty(cuts.size + 1)
    for i in range(first, last):
        for c in range(ptr[i], ptr[i + 1]):
            if code[c] >= 0:
                out[c] = 1.0
                continue
            j = item[c]
            cell_chances(u[i], v[j], a[i] * b[j], cuts, P)
            odds, total = math.exp(dot(e[i], f[j])), 0.0
            for l in range(P.size):
                total += P[l] / (1 + odds * user_odds[i, l] * item_odds[j, l])
            out[c] = total


@inlined
def cell_chances(u: Floats, v: Floats, scale: float, cuts: Floats, out: Floats) -> None:
    """P(l) of a cell, with 1/√(γ_i γ_j) as `scale`."""
    mean, below = dot(u, v), 0.0
    for l in range(cuts.size):
        upto = fast_cdf((cuts[l] - mean) * scale)
        out[l], below = upto - below, upto
    out[cuts.size] = 1 - below


# -- the chances of pairs ------------------------------------------------------------------------------------


def standardised(ratings: Ratings, user: Array, item: Array) -> tuple[Floats, Floats]:
    """c_l = (b_l - u_iᵀv_j)/√(γ_i γ_j) of pairs of codes, (n, L - 1), and 1/√(γ_i γ_j), (n, 1)."""
    scale = 1 / np.sqrt(ratings.user_scale[user] * ratings.item_scale[item])[:, None]
    mean = np.sum(ratings.u[user] * ratings.v[item], axis=1)[:, None]
    return (ratings.thresholds - mean) * scale, scale


def between(c: Floats) -> Floats:
    """P(l) = Φ(c_l) - Φ(c_{l-1}), (n, L)."""
    return np.diff(ndtr(c), axis=1, prepend=0, append=1)


def chances(ratings: Ratings, user: Array, item: Array) -> Floats:
    """P(l) of pairs of codes, (n, L)."""
    return between(standardised(ratings, user, item)[0])


def observed_chances(observing: Observing, user: Array, item: Array) -> Floats:
    """p_l of pairs of codes, (n, L)."""
    common = np.sum(observing.e[user] * observing.f[item], axis=1)[:, None]
    return expit(common + observing.by_user[user] + observing.by_item[item])


# -- plain twins ---------------------------------------------------------------------------------------------
