"""Logits γ_u + β_i + x_uᵀ W z_i over a grid of classes: gradient, Hessian and Newton, without a design matrix.

Users with equal covariates and equal count share γ_u, because the likelihood depends on nothing else; items likewise.
So the grid has one row per class of users and one column per class of items, counted m_u and n_i times. Rows are
eliminated by a Schur complement, so the larger side should be the rows.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.linalg import cho_factor, cho_solve
from threadpoolctl import ThreadpoolController

from openloop.core.feedback import Floats
from openloop.errors import UndefinedError

BLOCK = 2**18  # cells at a time: small enough for the processor's cache
ROWS = 1024  # rows of the grid that enter the Schur complement at a time
PANEL = 384  # columns of it that are subtracted at a time
MAX_STEPS = 200
MAX_CUTS = 60  # of one step
TIGHT = 1e-8
STALE = 0.04  # a step that leaves more than this of gᵀH⁻¹g asks for a fresh Hessian
THREADS = min(os.cpu_count() or 1, 8)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Grid:
    """Classes of users (rows) and items (columns), and what the likelihood knows of the observations.

    X and Z are covariates, centred over all users and items (offsets take up the rest, so the optimum stays).
    """

    m: Floats  # (G,) users in each class
    n: Floats  # (H,) items in each class
    a: Floats  # (G,) Σ_i O of one user of the class
    b: Floats  # (H,) Σ_u O of one item of the class
    X: Floats  # (G, k)
    Z: Floats  # (H, l)
    S: Floats  # (k, l) Σ_O x_u z_iᵀ

    @property
    def swapped(self) -> Grid:
        """The same with items in rows."""
        return Grid(m=self.n, n=self.m, a=self.b, b=self.a, X=self.Z, Z=self.X, S=self.S.T)

    def blocks(self) -> list[slice]:
        """Rows, a block at a time."""
        size = max(1, BLOCK // len(self.n))
        return [slice(start, start + size) for start in range(0, len(self.m), size)]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Logits:
    """The parameters φ = (W, β, γ), or a step of them."""

    gamma: Floats  # (G,)
    beta: Floats  # (H,)
    W: Floats  # (k, l)

    def plus(self, t: float, step: Logits) -> Logits:
        """φ + t·step."""
        return Logits(gamma=self.gamma + t * step.gamma, beta=self.beta + t * step.beta, W=self.W + t * step.W)

    def dot(self, other: Logits) -> float:
        """The inner product."""
        return float(self.gamma @ other.gamma + self.beta @ other.beta + np.sum(self.W * other.W))

    @property
    def swapped(self) -> Logits:
        """The same with items in rows."""
        return Logits(gamma=self.beta, beta=self.gamma, W=self.W.T)

    def values(self, grid: Grid, rows: slice) -> Floats:
        """γ_u + β_i + x_uᵀ W z_i of some rows, (B, H)."""
        z = self.gamma[rows, None] + self.beta  # (B, H)
        if self.W.size:
            z += (grid.X[rows] @ self.W) @ grid.Z.T
        return z

    def probabilities(self, grid: Grid, rows: slice) -> Floats:
        """Their σ, (B, H)."""
        return sigmoid(self.values(grid, rows))


def sigmoid(z: Floats) -> Floats:
    """1/(1 + e⁻ᶻ), in place; 0 where e⁻ᶻ is too large for a number."""
    np.negative(z, out=z)
    with np.errstate(over="ignore"):
        np.exp(z, out=z)
    z += 1.0
    return np.reciprocal(z, out=z)


def mapped(work: Callable[[slice], Any], grid: Grid) -> Iterator[Any]:
    """The work on each block, in the order of blocks whatever the number of threads."""
    blocks = grid.blocks()
    if len(blocks) == 1:
        yield work(blocks[0])
        return
    with one_blas_thread(), ThreadPoolExecutor(THREADS) as pool:
        yield from pool.map(work, blocks)


def one_blas_thread() -> Any:
    """A context in which BLAS starts no threads: blocks of the grid share them."""
    return _libraries().limit(limits=1, user_api="blas")


@cache
def _libraries() -> ThreadpoolController:
    return ThreadpoolController()  # finding them takes as long as a small fit


def gradient(grid: Grid, at: Logits, reg: float) -> Logits:
    """∂ℓ/∂φ of the penalised log-likelihood ℓ = Σ_O z − Σ log(1 + eᶻ) − reg/2 ‖W‖².

    ∂ℓ/∂γ_u = Σ_i O − Σ_i P, and so for β_i (appendix of Schnabel et al. 2016); ∂ℓ/∂W = Xᵀ(O − P)Z − reg·W.
    """
    by_user, by_item, products = sums(grid, at)
    return Logits(gamma=grid.m * (grid.a - by_user), beta=grid.n * (grid.b - by_item), W=grid.S - products - reg * at.W)


def sums(grid: Grid, at: Logits) -> tuple[Floats, Floats, Floats]:
    """Σ_i P of one user (G,), Σ_u P of one item (H,), and XᵀPZ (k, l)."""
    nZ = grid.n[:, None] * grid.Z  # (H, l)

    def block(rows: slice) -> tuple[Floats, Floats, Floats]:
        P = at.probabilities(grid, rows)  # (B, H)
        m = grid.m[rows]
        return P @ grid.n, m @ P, (grid.X[rows].T * m) @ (P @ nZ)

    by_user, by_item, products = zip(*mapped(block, grid), strict=True)
    return np.concatenate(by_user), np.sum(by_item, axis=0), np.sum(products, axis=0)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Curvature:
    """−∂²ℓ/∂φ² at one point, without the penalty: γγ is the diagonal D, and the rest its Schur complement.

    V = m_u n_i p(1 − p) is all that the cells contribute. It is kept in single precision, which bends a step by
    about 1e-6 and not where the steps end.
    """

    grid: Grid
    V: npt.NDArray[np.float32]  # (G, H)
    D: Floats  # (G,)
    rest: Floats  # (K + H, K + H) of W and β, K = k·l; lower triangle

    def solver(self, reg: float) -> Callable[[Logits], Logits]:
        """The step H⁻¹g for any gradient g, under any penalty."""
        K, shape = self.grid.S.size, self.grid.S.shape
        rest = self.rest.copy(order="F")
        rest[range(K), range(K)] += reg
        # γ + c with β − c is the same model: some curvature along that line keeps steps off it.
        rest[K:, K:] += self.D.sum() / len(self.grid.n) ** 2
        try:
            factor = cho_factor(rest, lower=True, overwrite_a=True, check_finite=False)
        except np.linalg.LinAlgError as error:
            msg = f"Logistic: the Hessian is not positive definite under reg={reg:g}; raise reg=."
            raise UndefinedError(msg) from error

        def solve(g: Logits) -> Logits:
            top = g.gamma / self.D  # (G,)
            right = np.concatenate([g.W.ravel(), g.beta]) - self._down(top)  # (K + H,)
            found = cho_solve(factor, right)
            beta, W = found[K:], found[:K].reshape(shape)
            return Logits(gamma=top - self._across(beta, W) / self.D, beta=beta, W=W)

        return solve

    def _down(self, x: Floats) -> Floats:
        """Hᵀx of the block of γ against (W, β), (K + H,)."""
        X, Z = self.grid.X, self.grid.Z
        left = np.concatenate([x[None], X.T * x]).astype(np.float32)  # (1 + k, G)
        sums = (left @ self.V).astype(np.float64)  # (1 + k, H)
        return np.concatenate([(sums[1:] @ Z).ravel(), sums[0]])

    def _across(self, beta: Floats, W: Floats) -> Floats:
        """The same block times (W, β), (G,)."""
        out = self.V @ beta.astype(np.float32)  # (G,)
        if W.size:
            out += np.einsum("gk,gk->g", self.grid.X, self.V @ (self.grid.Z @ W.T).astype(np.float32))
        return out.astype(np.float64)


def curvature(grid: Grid, at: Logits) -> Curvature:
    """The Hessian at a point: for each block of rows a few small matrix products."""
    V = np.empty((len(grid.m), len(grid.n)), np.float32)

    def fill(rows: slice) -> None:
        p = at.probabilities(grid, rows)  # (B, H)
        p *= 1.0 - p
        p *= grid.m[rows, None]
        np.multiply(p, grid.n, out=V[rows], casting="same_kind")

    for _ in mapped(fill, grid):
        pass
    D = np.maximum(V.sum(axis=1, dtype=np.float64), np.finfo(np.float32).tiny)
    return Curvature(grid=grid, V=V, D=D, rest=_schur(grid, V, D))


def _subtract_square(rest: Floats, F: Floats) -> None:
    """rest −= FᵀF, its lower triangle, in place; a panel of columns in each thread."""
    edges = range(0, len(rest) + PANEL, PANEL)

    def panel(ends: tuple[int, int]) -> None:
        first, last = ends
        rest[first:, first:last] -= F[:, first:].T @ F[:, first:last]

    if len(edges) <= THREADS + 1:  # the threads would cost more than they save
        for ends in pairwise(edges):
            panel(ends)
        return
    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(panel, pairwise(edges)))


def _schur(grid: Grid, V: npt.NDArray[np.float32], D: Floats) -> Floats:
    """(W, β) against itself, less what γ takes up: H₂₂ − H₂₁ D⁻¹ H₁₂, lower triangle."""
    (k, l), H = grid.S.shape, len(grid.n)
    K = k * l
    rest = np.zeros((K + H, K + H), order="F")
    first, second = np.triu_indices(k)
    squares, crossed = np.zeros((len(first), H)), np.zeros((k, H))
    for start in range(0, len(grid.m), ROWS):
        rows = slice(start, start + ROWS)
        v, X = V[rows].astype(np.float64), grid.X[rows]  # (B, H), (B, k)
        squares += (X[:, first] * X[:, second]).T @ v
        crossed += X.T @ v
        XVZ = X[:, :, None] * (v @ grid.Z)[:, None, :]  # (B, k, l)
        F = np.concatenate([XVZ.reshape(len(X), K), v], axis=1)  # (B, K + H)
        _subtract_square(rest, F / np.sqrt(D[rows, None]))
    rest[range(K, K + H), range(K, K + H)] += V.sum(axis=0, dtype=np.float64)
    if K:
        # Σ v x_a z_c x_b z_d = Σ_i (Σ_u v x_a x_b) z_c z_d, and so for W against β
        by_pair = squares @ (grid.Z[:, :, None] * grid.Z[:, None, :]).reshape(H, l * l)
        full = np.empty((k, k, l, l))
        full[first, second] = full[second, first] = by_pair.reshape(-1, l, l)
        rest[:K, :K] += full.transpose(0, 2, 1, 3).reshape(K, K)
        rest[K:, :K] += (crossed.T[:, :, None] * grid.Z[:, None, :]).reshape(H, K)
    return rest


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Optimum:
    """Where the penalised log-likelihood is largest, the last Hessian on the way, and how many it took."""

    at: Logits
    curvature: Curvature
    hessians: int


def maximise(
    grid: Grid, reg: float, start: Logits | None = None, known: Curvature | None = None, tol: float = TIGHT
) -> Optimum:
    """The optimum: ℓ lacks at most `tol` and each Σp at most `tol` of its count; `known` is a Hessian near `start`.

    A Hessian serves as long as its steps converge; a step too long is cut where the slope along it vanishes.
    """
    if len(grid.m) < len(grid.n):  # rows are eliminated at little cost, so the larger side should be there
        found = maximise(grid.swapped, reg, start and start.swapped, known, tol)
        return Optimum(at=found.at.swapped, curvature=found.curvature, hessians=found.hessians)
    with one_blas_thread():
        return _newton(grid, reg, start, known, tol)


def _newton(grid: Grid, reg: float, start: Logits | None, known: Curvature | None, tol: float) -> Optimum:
    at, hessians, before = start or independent(grid), 0, np.inf
    g, solve = gradient(grid, at, reg), known and known.solver(reg)
    for _ in range(MAX_STEPS):
        fresh = solve is None
        if known is None or solve is None:
            known, hessians = curvature(grid, at), hessians + 1
            solve = known.solver(reg)
        step = solve(g)
        slope = g.dot(step)  # gᵀH⁻¹g, twice what ℓ still lacks
        if slope <= 2 * tol and _misfit(grid, g) <= tol:
            return Optimum(at=at, curvature=known, hessians=hessians)
        if not fresh and slope > STALE * before:
            solve = known = None
            continue
        at, g = _along(grid, reg, at, step, slope)
        before = slope
    raise UndefinedError(
        f"Logistic: no optimum after {MAX_STEPS} steps; the largest relative misfit of a count is "
        f"{_misfit(grid, g):.2g}; raise reg=, or drop users and items with hardly any row."
    )


def _along(grid: Grid, reg: float, at: Logits, step: Logits, slope: float) -> tuple[Logits, Logits]:
    """The first point along the step where the slope is no longer much below 0, and the gradient there."""
    t, there, g = 1.0, at, step
    for _ in range(MAX_CUTS):
        there = at.plus(t, step)
        g = gradient(grid, there, reg)
        steep = g.dot(step)
        if steep >= -0.5 * slope:
            break
        # Where the slope stays what it was, the curve has no turn to aim at.
        t *= 0.5 if slope == steep else min(max(slope / (slope - steep), 0.1), 0.7)
    return there, g


def _misfit(grid: Grid, g: Logits) -> float:
    """The largest relative difference between Σp and a count."""
    return max(float(np.max(np.abs(g.gamma) / (grid.m * grid.a))), float(np.max(np.abs(g.beta) / (grid.n * grid.b))))


def independent(grid: Grid) -> Logits:
    """Where to begin: p ≈ a_u b_i / Σ O."""
    users, items, total = grid.m.sum(), grid.n.sum(), float(grid.m @ grid.a)
    share = np.clip(grid.a / items, 1e-12, 1 - 1e-9)
    beta = np.log(grid.b * items / total)
    return Logits(gamma=np.log(share / (1 - share)), beta=np.clip(beta, -8.0, np.log(users)), W=np.zeros(grid.S.shape))
