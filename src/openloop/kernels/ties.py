"""Ranking gains in expectation over the random order of tied items, in closed form.

h candidates rank strictly above an item and e tie with it, itself included, so its rank is any of h+1 … h+e
with equal probability (McSherry & Najork 2008). Rows with one group id are one list's relevant items.

Kernels know nothing about metrics: a gain by position is all that they average.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Array = npt.NDArray[Any]
Ints = npt.NDArray[np.int64]


def expected_discount(h: Array, e: Array, k: int | None = None) -> Floats:
    """E[1/log2(1 + rank)], counting nothing below rank k: (D[min(h+e, k)] - D[min(h, k)]) / e."""
    low, high = _span(h, e, k)
    return _averaged(1 / np.log2(np.arange(2, high.max(initial=0) + 3)), low, high, e)  # gain[r - 1] = 1/log2(1 + r)


def expected_gain(gain: Floats, h: Array, e: Array) -> Floats:
    """E[gain[rank - 1]] of any gain by rank, down to the largest h + e: (D[h+e] - D[h]) / e, D the cumulated gain."""
    return _averaged(gain, *_span(h, e, None), e)


def expected_hits(h: Array, e: Array, k: int) -> Floats:
    """P(rank ≤ k) = (min(h+e, k) - min(h, k)) / e."""
    low, high = _span(h, e, k)
    return (high - low) / e


def average_precision(h: Array, e: Array, group: Array, n_groups: int) -> Floats:
    """Per group, the sum over its rows of the expected precision at their rank.

    A tied block of e items holds r of the group's rows, and c stand above it. One of the r, at place j of the
    block, expects (j-1)(r-1)/(e-1) of the others before it, so with S = Σ_{j≤e} 1/(h+j) the block sums to

        (r/e) Σ_{j≤e} (c + 1 + (j-1)(r-1)/(e-1)) / (h+j)
            = (r/e) [(c+1) S + (r-1)/(e-1) (e - (h+1) S)].
    """
    block, r, c = _blocks(h, group)
    h, e, group = h[block].astype(np.int64), e[block].astype(np.int64), group[block]
    S = harmonic(h, e)
    others = (r - 1) / np.maximum(e - 1, 1)
    total = r / e * ((c + 1) * S + others * (e - (h + 1) * S))
    return np.bincount(group, total, minlength=n_groups).astype(np.float64)


def harmonic(h: Ints, e: Ints) -> Floats:
    """S = Σ_{j≤e} 1/(h+j)."""
    S = 1 / (h + 1.0)
    many = e > 1
    S[many] = _between(1 / np.arange(1.0, (h + e).max(initial=0) + 1), h[many], h[many] + e[many])
    return S


def first_block(h: Array, e: Array, group: Array, n_groups: int) -> tuple[Ints, Ints, Ints]:
    """Per group, h and e of its first tied block, and r, its rows in there; zeros for an empty group."""
    first = np.full(n_groups, np.iinfo(np.int64).max)
    np.minimum.at(first, group, h)
    inside = h == first[group]
    r = np.bincount(group[inside], minlength=n_groups)
    size = np.zeros(n_groups, np.int64)
    size[group[inside]] = e[inside]
    return np.where(r > 0, first, 0), size, r


def expected_hit(h: Array, e: Array, r: Array, k: int) -> Floats:
    """P(one of the r is among the first k): 1 - C(e-r, n)/C(e, n) with n = min(h+e, k) - min(h, k) places.

    The quotient is Π_{i<n} (e-r-i)/(e-i), and the same with r and n exchanged; the shorter product is taken.
    """
    low, high = _span(h, e, k)
    n = high - low
    short, long = np.minimum(n, r), np.maximum(n, r).astype(np.int64)
    miss = np.ones(len(n))
    for i in range(short.max(initial=0)):
        live = np.flatnonzero(short > i)
        miss[live] *= np.maximum(e[live] - long[live] - i, 0) / (e[live] - i)
    return 1 - miss


def expected_reciprocal_rank(h: Array, e: Array, r: Array) -> Floats:
    """E[1/rank of the first of the r]: Σ_{j ≤ e-r+1} p_j/(h+j), p_j = C(e-j, r-1)/C(e, r); 0 where r = 0.

    p_1 = r/e and p_{j+1} = p_j (e-j-r+1)/(e-j), which cannot overflow.
    """
    value = np.where(r > 0, 1 / (h + 1.0), 0.0)
    mixed = np.flatnonzero((r > 0) & (e > r))
    # Users of one model share few distinct blocks. The longest come first, so the unfinished blocks form a prefix.
    blocks = np.stack([r - e, h, e, r])[:, mixed].astype(np.int64)
    kinds, which = np.unique(blocks, axis=1, return_inverse=True)
    value[mixed] = _first_of_block(kinds)[which]
    return value


def _first_of_block(kinds: Ints) -> Floats:
    shortage, h, e, r = kinds  # each (blocks,), the first ascending
    p = r / e
    value = p / (h + 1)
    for j in range(1, 1 - shortage.min(initial=0)):
        live = np.searchsorted(shortage, -j, side="right")
        p = p[:live] * (e[:live] - j - r[:live] + 1) / (e[:live] - j)
        value[:live] += p / (h[:live] + j + 1)
    return value


def _span(h: Array, e: Array, k: int | None) -> tuple[Ints, Ints]:
    """The positions of a block that count: low+1 … high."""
    low, high = h.astype(np.int64), h.astype(np.int64) + e
    return (low, high) if k is None else (np.minimum(low, k), np.minimum(high, k))


def _averaged(gain: Floats, low: Ints, high: Ints, e: Array) -> Floats:
    """Σ_{low < r ≤ high} gain[r - 1] / e; a single item has its own gain, to the last digit."""
    value = np.where(high > low, gain[low], 0.0)
    many = e > 1
    value[many] = _between(gain, low[many], high[many]) / e[many]
    return value


def _between(gain: Floats, low: Ints, high: Ints) -> Floats:
    """Σ_{low < r ≤ high} gain[r - 1]."""
    D = np.zeros(len(gain) + 1, np.longdouble)  # a difference of long sums loses digits: start with more
    np.cumsum(gain, out=D[1:])
    return (D[high] - D[low]).astype(np.float64)


def _blocks(h: Array, group: Array) -> tuple[Ints, Ints, Ints]:
    """Tied blocks by group: a row of each, r = its rows, c = its group's rows in blocks above."""
    order = np.argsort(group.astype(np.int64) * (int(h.max(initial=0)) + 1) + h)  # a block's rows in any order
    new_group = np.diff(group[order], prepend=-1) != 0
    start = np.flatnonzero(new_group | (np.diff(h[order], prepend=-1) != 0))
    r = np.diff(start, append=len(order))
    group_start = np.maximum.accumulate(np.where(new_group, np.arange(len(order)), 0))
    return order[start], r, start - group_start[start]
