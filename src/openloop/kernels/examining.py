"""Weights of impressions under examination θ, and how their sums move with it: one pass over rows each.

The weight of a row is top/below. top is Σ_j θ_j π_j(a) of the model, θ_σ if its list is deterministic, or any function
of the rank. below belongs to the log: Σ_j θ_j π0_j(a) ("exposure"), π0_k(a)·Σ_j θ_j ("propensity"), or θ_k ("shown").
Sums run over the positions j ≤ K_n of the row's request.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from openloop.kernels.compiling import fixed, njit

Array = npt.NDArray[Any]
Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int32]

BELOW = ("exposure", "propensity", "shown")
NONE = np.empty((0, 0))


class ExaminedRows(NamedTuple):
    """Rows as the kernels take them; an array without rows means that there is none."""

    request: Ints  # (n,)
    position: Ints  # (n,) from 1
    depth: Ints  # (N,) K_n
    rank: Ints  # (n,) the model's rank of the item, 0: not in its list
    probability: Floats = NONE  # (n, K) π_j(a), of a random model
    propensity: Floats = np.empty(0)  # (n,) π0_k(a)
    exposure: Floats = NONE  # (n, K) π0_j(a)
    below: int = 2  # which of BELOW


def _read_only(rows: ExaminedRows) -> ExaminedRows:
    return ExaminedRows(*fixed(*rows[:-1]), below=rows.below)


def examined_weights(theta: Floats, rows: ExaminedRows, tops: Floats | None = None) -> Floats:
    """top/below of each row; `tops` (L,) are those of each rank, whatever K_n, in place of θ_σ."""
    w = np.zeros(len(rows.position))
    theta, by_rank = fixed(theta, np.empty(0) if tops is None else tops)
    _weigh(theta, by_rank, _read_only(rows), w)
    return w


@njit(cache=True, nogil=True)
def _weigh(theta: Floats, tops: Floats, rows: ExaminedRows, w: Floats) -> None:
    total = np.append(0.0, np.cumsum(theta))
    for row in range(len(w)):
        d = rows.depth[rows.request[row]]
        top = 0.0
        if len(rows.probability):
            for j in range(d):
                top += theta[j] * rows.probability[row, j]
        elif len(tops):
            top = tops[rows.rank[row] - 1] if rows.rank[row] > 0 else 0.0
        elif 1 <= rows.rank[row] <= d:
            top = theta[rows.rank[row] - 1]
        if top == 0:
            continue
        if rows.below == 0:
            below = 0.0
            for j in range(d):
                below += theta[j] * rows.exposure[row, j]
        elif rows.below == 1:
            below = rows.propensity[row] * total[d]
        else:
            below = theta[rows.position[row] - 1]
        w[row] = top / below


def examined_weights_plain(theta: Floats, rows: ExaminedRows, tops: Floats | None = None) -> Floats:
    """As `examined_weights`."""
    inside = _inside(theta, rows)  # (n, K)
    return _tops(theta, rows, tops, inside) / _below(theta, rows, inside)


def examined_slopes(
    x: Floats, theta: Floats, rows: ExaminedRows, group: Array, size: int, *, moving: bool = True
) -> Floats:
    """Σ x·∂log w/∂log θ_l over the rows of each group 0 … size − 1 of requests, (size, K).

    `x` is w·gain of each row, `group` (N,) that of each request. `moving`: the top depends on θ, not on the rank alone.
    """
    slopes, by_depth = np.zeros((size, len(theta))), np.zeros((size, len(theta) + 1))
    (x, theta, group), rows = fixed(x, theta, group), _read_only(rows)
    if moving:
        _add_tops(x, theta, rows, group, slopes)
    _subtract_belows(x, theta, rows, group, slopes, by_depth)
    # ∂log(π0·Σθ)/∂log θ_l = θ_l/Σ_{j≤d}θ_j for l ≤ d, the same for all rows of a depth
    share = np.cumsum((by_depth[:, 1:] / np.cumsum(theta))[:, ::-1], axis=1)[:, ::-1]
    return slopes - theta * share


@njit(cache=True, nogil=True)
def _add_tops(x: Floats, theta: Floats, rows: ExaminedRows, group: Array, slopes: Floats) -> None:
    for row in range(len(x)):
        if x[row] == 0:
            continue
        request = rows.request[row]
        g = group[request]
        if len(rows.probability):
            d, top = rows.depth[request], 0.0
            for j in range(d):
                top += theta[j] * rows.probability[row, j]
            for j in range(d):
                slopes[g, j] += x[row] * theta[j] * rows.probability[row, j] / top
        else:
            slopes[g, rows.rank[row] - 1] += x[row]


@njit(cache=True, nogil=True)
def _subtract_belows(
    x: Floats, theta: Floats, rows: ExaminedRows, group: Array, slopes: Floats, by_depth: Floats
) -> None:
    for row in range(len(x)):
        if x[row] == 0:
            continue
        request = rows.request[row]
        g = group[request]
        if rows.below == 0:
            d, below = rows.depth[request], 0.0
            for j in range(d):
                below += theta[j] * rows.exposure[row, j]
            for j in range(d):
                slopes[g, j] -= x[row] * theta[j] * rows.exposure[row, j] / below
        elif rows.below == 1:
            by_depth[g, rows.depth[request]] += x[row]
        else:
            slopes[g, rows.position[row] - 1] -= x[row]


def examined_slopes_plain(
    x: Floats, theta: Floats, rows: ExaminedRows, group: Array, size: int, *, moving: bool = True
) -> Floats:
    """As `examined_slopes`."""
    inside = _inside(theta, rows)
    of_group = x * (group[rows.request] == np.arange(size)[:, None])  # (size, n)
    slopes = np.zeros((size, len(theta)))
    if moving:
        parts = rows.probability if len(rows.probability) else _at(rows.rank, len(theta))
        tops = parts * theta * inside  # (n, K)
        shares = np.divide(tops, tops.sum(axis=1, keepdims=True), out=np.zeros_like(tops), where=tops > 0)
        slopes += of_group @ shares
    if rows.below == 1:
        parts = inside.astype(np.float64)
    else:
        parts = rows.exposure if rows.below == 0 else _at(rows.position, len(theta))
    belows = parts * theta * inside
    return slopes - of_group @ (belows / belows.sum(axis=1, keepdims=True))


def _inside(theta: Floats, rows: ExaminedRows) -> Array:
    return np.arange(len(theta)) < rows.depth[rows.request][:, None]


def _at(place: Ints, depth: int) -> Floats:
    """1 at each row's place, counted from 1; (n, K)."""
    return (np.arange(1, depth + 1) == place[:, None]).astype(np.float64)


def _tops(theta: Floats, rows: ExaminedRows, tops: Floats | None, inside: Array) -> Floats:
    if len(rows.probability):
        return (rows.probability * inside) @ theta
    if tops is None:
        return (_at(rows.rank, len(theta)) * inside) @ theta
    return _at(rows.rank, len(tops)) @ tops


def _below(theta: Floats, rows: ExaminedRows, inside: Array) -> Floats:
    if rows.below == 0:
        return (rows.exposure * inside) @ theta
    if rows.below == 1:
        return rows.propensity * (inside @ theta)
    return theta[rows.position - 1]
