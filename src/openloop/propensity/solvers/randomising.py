"""Examination from rows whose position was drawn: click rates by position, and the two curves of trust bias."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from openloop.core.feedback import Array, Floats
from openloop.core.impressions import Impressions
from openloop.errors import ColumnError, UndefinedError
from openloop.kernels.harvesting import Cells, dense
from openloop.propensity.solvers.grouping import Grouped, by_user_item, group, per_cluster, refuse_silent, sums
from openloop.propensity.solvers.harvesting import ThetaCurve

BLOCK = 2**18  # groups whose counts are brought into a dense table at a time


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Rates:
    """Weighted reward rates at each position, and at position 1 of the requests that reach it, by the same rows.

    `at_parts` and `first_parts` are ψ_u/U of each, (U, K): their sums over clusters are zero.
    """

    at: Floats  # (K,) Σwc/Σw at k
    first: Floats  # (K,) Σwc/Σw at 1, over requests with K_n ≥ k
    at_parts: Floats
    first_parts: Floats


def shuffled_rows(log: Impressions) -> Array:
    """The rows of shuffled requests."""
    if log.shuffled is None:
        raise ColumnError(
            "Examination: the log does not say which requests were shuffled; read it with shuffled=, or with "
            'propensity= and use method="weighted".'
        )
    rows = np.flatnonzero(log.shuffled[log.request])
    if len(rows) == 0:
        raise UndefinedError("Examination: the log has no shuffled requests, so no position was drawn at random.")
    return rows


def logged_weights(log: Impressions) -> Floats:
    """w = 1/π0_k(a_k) of each row; every item must have a chance at every position."""
    if log.propensity is None:
        raise ColumnError(
            'Examination(by="randomised"): the log has no shuffled requests and no propensities π0; read it with '
            "shuffled= or propensity=, or use another by=."
        )
    sure = int(np.count_nonzero(log.propensity == 1))
    if sure:
        raise UndefinedError(
            f"Examination: {sure:,} of {len(log):,} rows have π0 = 1. Their items are never shown elsewhere, and 1/π0 "
            'cannot correct that; use by="assignment" or "user-item", or shuffle some requests.'
        )
    rows = 0 if log.exposure is None else int(np.count_nonzero(_without_chance(log, log.exposure)))
    if rows:
        raise UndefinedError(
            f"Examination: {rows:,} of {len(log):,} rows show an item that has no chance at some position (exposure "
            '0), so 1/π0 does not balance positions; use by="assignment" or "user-item", or shuffle some requests.'
        )
    return 1.0 / log.propensity


def _without_chance(log: Impressions, exposure: Floats) -> Array:
    """The rows whose item has no chance at some position of their request, (n,); there are none beyond its end."""
    inside = np.arange(1, exposure.shape[1] + 1) <= log.lengths[log.request][:, None]  # (n, K)
    return ((exposure == 0) & inside).any(axis=1)


def randomised(log: Impressions, rows: Array, weight: Floats | None = None) -> ThetaCurve:
    """θ_k = (Σwc/Σw at k)/(Σwc/Σw at 1) within requests with K_n ≥ k; ψ of its logarithm per cluster."""
    found = rates(log, rows, weight)
    influence = log.n_clusters * (found.at_parts / found.at - found.first_parts / found.first)
    theta = found.at / found.first
    theta[0], influence[:, 0] = 1.0, 0.0  # but for rounding they are
    return ThetaCurve(theta=theta, influence=influence)


def rates(log: Impressions, rows: Array, weight: Floats | None = None) -> Rates:
    """Rates at each position, and at position 1 of the same requests; w = 1 without weights."""
    K, U = log.depth, log.n_clusters
    k, c, u = log.position[rows] - 1, log.reward[rows], per_cluster(log, rows)
    w = np.ones(len(rows)) if weight is None else weight[rows]
    W, T = sums(k, w, K), sums(k, w * c, K)
    refuse_silent(T, "in the rows whose position was drawn")
    at = T / W
    at_parts = sums(u * np.int64(K) + k, w * (c - at[k]) / W[k], U * K).reshape(U, K)
    top = k == 0  # position 1
    first, first_parts, value, part = np.empty(K), np.empty((U, K)), 0.0, np.empty(U)
    reach, w, c, u = log.lengths[log.request[rows]][top], w[top], c[top], u[top]
    for j in range(K):
        if j == 0 or bool(np.any(reach == j)):  # else the same requests as above
            on = reach > j
            bottom = float(w[on].sum())
            value = float((w[on] * c[on]).sum()) / bottom if bottom > 0 else 0.0
            if value == 0:
                raise UndefinedError(
                    f"Examination: no request that reaches position {j + 1} has a click at position 1."
                )
            part = sums(u[on], w[on] * (c[on] - value) / bottom, U)
        first[j], first_parts[:, j] = value, part
    return Rates(at=at, first=first, at_parts=at_parts, first_parts=first_parts)


# -- trust: E[c | i, k] = a_k q_i + b_k -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Affine:
    """a_k with a_1 = 1 and the influence of its logarithm, b_k with b_1 = 0 and its own influence; (K,) and (U, K)."""

    slope: ThetaCurve
    offset: Floats
    offset_influence: Floats


def affine(log: Impressions) -> Affine:
    """a and b from shuffled requests.

    Over two requests that show an item to a user at k and j, cov(c, c′) = S_kj = a_k a_j v: a is the first eigenvector
    v of S by its first entry. dv = (λI − S)⁺ dS v gives its influence. b_k = m_k − a_k m_1.
    """
    rows = shuffled_rows(log)
    found = group(log, by_user_item(log), rows=rows, every=True)
    pairs, mean, S = _covariances(log, found)
    values, vectors = np.linalg.eigh(S)
    v = vectors[:, -1]
    a = v / v[0]
    if not (values[-1] > 0 and bool(np.all(a > 0))):
        raise UndefinedError(
            "Examination(method='affine'): rewards of two requests that show the same item to the same user do not "
            f"vary together as the model says (a = {np.round(a, 3).tolist()}); the log has too few such pairs, or its "
            "items are too similar."
        )
    y = _moved(log, found, Products(pairs=pairs, mean=mean, second=S + mean * mean.T), v)  # (U, K) dS v
    turned = y @ np.linalg.pinv(values[-1] * np.eye(len(v)) - S, hermitian=True)  # (U, K) dv
    a_parts = (turned - a * turned[:, :1]) / v[0]
    m = rates(log, rows)
    offset_parts = m.at_parts - a * m.first_parts - a_parts * m.first
    offset_parts[:, 0] = 0.0
    U = log.n_clusters
    return Affine(
        slope=ThetaCurve(theta=a, influence=U * a_parts / a),
        offset=m.at - a * m.first,
        offset_influence=U * offset_parts,
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Products:
    """Over pairs of rows of one user and item in two requests: how many, E[c at k] and E[c at k · c at j]; (K, K)."""

    pairs: Floats
    mean: Floats
    second: Floats


def _covariances(log: Impressions, found: Grouped) -> tuple[Floats, Floats, Floats]:
    """Pairs of rows at k and j, the mean of c_k over them, and S; (K, K) each."""
    K = log.depth
    pairs, products, crossed = np.zeros((K, K)), np.zeros((K, K)), np.zeros((K, K))
    for n, c, s, _ in _blocks(log, found):
        pairs += n.T @ n - np.diag(n.sum(axis=0))
        products += c.T @ c - np.diag(s.sum(axis=0))
        crossed += c.T @ n - np.diag(c.sum(axis=0))
    if not bool(np.all(pairs > 0)):
        k, j = np.argwhere(pairs <= 0)[0] + 1
        raise UndefinedError(
            f"Examination(method='affine'): no two shuffled requests show a user an item at positions {k} and {j}; it "
            "needs users with several shuffled requests."
        )
    mean = crossed / pairs
    return pairs, mean, products / pairs - mean * mean.T


def _moved(log: Impressions, found: Grouped, over: Products, v: Floats) -> Floats:
    """dS_u v of each cluster, (U, K): what its pairs move S by, S = Σcc′/P − M∘Mᵀ and M = Σc/P."""
    moved = np.zeros((log.n_clusters, log.depth))
    Q = v / over.pairs  # (K, K)
    by_c, by_n = Q * over.mean.T, Q * over.mean
    both = Q * (2 * over.mean * over.mean.T - over.second)
    for n, c, s, cluster in _blocks(log, found):
        part = c * (c @ Q.T - n @ by_c.T) + n * (n @ both.T - c @ by_n.T)
        # A row is no pair with itself.
        part -= s * np.diag(Q) - c * np.diag(by_c) + n * np.diag(both) - c * np.diag(by_n)
        np.add.at(moved, cluster, part)
    return moved


def _blocks(log: Impressions, found: Grouped) -> Iterator[tuple[Floats, Floats, Floats, Array]]:
    """n, c and Σc² of groups by position, (B, K) each, and their clusters."""
    cells = found.cells
    squares = sums(found.cell, np.square(log.reward[found.row]), len(cells.position))
    of_cell = np.empty(len(cells.position), np.int64)
    of_cell[found.cell] = per_cluster(log, found.row)  # a group is one user's
    cluster = of_cell[cells.start[:-1]]
    for g in range(0, found.groups, BLOCK):
        start = cells.start[g : g + BLOCK + 1]
        own = slice(start[0], start[-1])
        part = Cells(start - start[0], cells.position[own], cells.shown[own], cells.clicks[own])
        n, c = dense(part, log.depth)
        yield n, c, dense(part._replace(clicks=squares[own]), log.depth)[1], cluster[g : g + BLOCK]
