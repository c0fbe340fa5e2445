"""Half a sweep of least squares over all cells of a grid: low rank plus rows, without a grid in memory.

Every cell has a target r̃_ui, a grid of low-rank blocks, and a row of the log adds v f² − 2 s f for its cell. Given the
items' vectors X, user u gets, with f = p·x_i + b_i + c,

    argmin_p  ρ[Σ_i (f − r̃_ui)² + Σ_rows (v f² − 2 s f)] + pᵀ diag(λ) p,    A_u p = g_u,
    A_u = ρ(ZᵀZ + Σ_rows v z zᵀ) + diag λ,    g_u = ρ(Σ_i (r̃_ui − b_i − c) z_i + Σ_rows (s − v(b_i + c)) z_i).

The last entry of p is the user's offset, that of z_i is 1, and X has b_i in its place. ZᵀZ is the same for all users
(Hu et al. 2008), and R̃Z costs as much as the blocks' factors. If all v are 0, all users share one Cholesky factor.

Kernels know nothing about models. One thread solves for each user, in a fixed order: bits do not depend on threads.
"""

from __future__ import annotations

from concurrent.futures import Executor
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from openloop.kernels.cholesky import factor, substitute
from openloop.kernels.compiling import SUMMING, inlined, njit
from openloop.kernels.least_squares import Ints, Pointers, Rows

Floats = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """The cells of some users and some items, as left·rightᵀ."""

    users: Codes
    items: Codes
    left: Floats  # (len(users), r)
    right: Floats  # (len(items), r)


@dataclass(frozen=True, slots=True, eq=False)
class Patchwork:
    """A grid of low-rank blocks, R̃ (U, I); cells that no block covers are 0."""

    shape: tuple[int, int]
    blocks: tuple[Block, ...] = ()

    @property
    def turned(self) -> Patchwork:
        """The same cells, items first."""
        blocks = tuple(Block(b.items, b.users, b.right, b.left) for b in self.blocks)
        return Patchwork((self.shape[1], self.shape[0]), blocks)

    def times(self, X: Floats) -> Floats:
        """R̃X."""
        out = np.zeros((self.shape[0], X.shape[1]))  # (U, K)
        for b in self.blocks:
            out[b.users] += b.left @ (b.right.T @ X[b.items])
        return out

    @property
    def row_sums(self) -> Floats:
        """Σ_i r̃_ui, (U,)."""
        return self.times(np.ones((self.shape[1], 1)))[:, 0]

    @property
    def squares(self) -> float:
        """Σ r̃² over the grid, = Σ_blocks ⟨leftᵀleft, rightᵀright⟩."""
        return float(sum(np.sum((b.left.T @ b.left) * (b.right.T @ b.right)) for b in self.blocks))

    def dense(self) -> Floats:
        """R̃ itself, (U, I), for twins and tests."""
        out = np.zeros(self.shape)
        for b in self.blocks:
            out[np.ix_(b.users, b.items)] = b.left @ b.right.T
        return out


@dataclass(frozen=True, slots=True, eq=False)
class GridSide:
    """One side's view of the grid: R̃, and the rows with s as their target and v as their weight."""

    imputed: Patchwork
    rows: Rows
    curved: bool = field(init=False)  # whether any v is not 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "curved", bool(np.any(self.rows.w)))

    @property
    def turned(self) -> GridSide:
        """The other side's."""
        return GridSide(self.imputed.turned, self.rows.turned(self.imputed.shape[1]))


def grid_half_sweep(
    side: GridSide, X: Floats, c: float, P: Floats, rho: float, penalty: Floats, pool: Executor
) -> float:
    """The best P (U, K), given X (I, K); returns Σ_u g_uᵀp_u, what it takes from the objective."""
    z, b = np.column_stack([X[:, :-1], np.ones(len(X))]), X[:, -1] + c
    A = rho * (z.T @ z) + np.diag(penalty)  # (K, K)
    P[:] = rho * (side.imputed.times(z) - b @ z)  # g_u of the grid, to which the rows add
    rows, value = side.rows, np.zeros(len(P))

    def solve(part: tuple[int, int]) -> None:
        _solve_part(*part, rows.ptr, rows.partner, rows.y, rows.w, z, b, rho, A, side.curved, P, value)

    list(pool.map(solve, rows.parts))
    return float(value.sum())


@njit(cache=True, nogil=True, fastmath=SUMMING)
def _solve_part(
    first: int, last: int, ptr: Pointers, partner: Ints, s: Floats, v: Floats, z: Floats, b: Floats,
    rho: float, A: Floats, curved: Any, P: Floats, value: Floats,
) -> None:  # fmt: skip
    shared = factor(A.copy())
    for u in range(first, last):
        g = P[u]
        for r in range(ptr[u], ptr[u + 1]):
            i = partner[r]
            t, row = rho * (s[r] - v[r] * b[i]), z[i]
            for j in range(g.size):
                g[j] += t * row[j]
        own = factor(_bent(A, ptr[u], ptr[u + 1], partner, v, z, rho)) if curved else shared
        value[u] = substitute(own, g)


@inlined
def _bent(A: Floats, start: int, end: int, partner: Ints, v: Floats, z: Floats, rho: float) -> Floats:
    """A + ρΣ v z zᵀ over the user's rows, its lower triangle."""
    bent = A.copy()
    for r in range(start, end):
        row, weight = z[partner[r]], rho * v[r]
        for j in range(row.size):
            target, scaled = bent[j], weight * row[j]
            for i in range(j + 1):
                target[i] += scaled * row[i]
    return bent
