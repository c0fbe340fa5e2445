"""Draws of the logistic part of a joint model: levels of unobserved cells, weights ω, and blocks of effects.

A cell of level l is observed with chance σ(x), x = e_iᵀf_j + λ_{i,l} + ψ_{j,l}. Given ω ~ PG(1, x), with o = 1 where it
is observed and else 0, its likelihood is exp((o - 1/2)x - ωx²/2) up to a factor (Polson, Scott & Windle 2013). So
(e_i, λ_{i,·}) is Gaussian given all else, and so is (f_j, ψ_{j,·}). Kernels know nothing about models.
"""

from __future__ import annotations

from concurrent.futures import Executor
from dataclasses import dataclass

import numpy as np

from openloop.kernels.cholesky import dot
from openloop.kernels.compiling import SUMMING, inlined, njit
from openloop.kernels.gaussian import draw_normal
from openloop.kernels.joint_cells import (
    Codes,
    Floats,
    GridCells,
    Ints,
    Observing,
    Pointers,
    Ratings,
    cell_chances,
    plain_odds,
    plain_ratings,
)
from openloop.kernels.least_squares import by_partner
from openloop.kernels.parts import in_parts
from openloop.kernels.polya_gamma import polya_gamma
from openloop.kernels.streams import normal, row_word, uniform


@dataclass(frozen=True, slots=True, eq=False)
class Augmented:
    """Cells of one side with all that a logistic likelihood needs: 2·level + o of each, and ω."""

    ptr: Pointers
    partner: Ints
    state: Codes
    omega: Floats

    def turned(self, n_partners: int) -> Augmented:
        """The same cells by partner."""
        return Augmented(*by_partner(self.ptr, self.partner, self.state, self.omega, n_partners))


@dataclass(frozen=True, slots=True, eq=False)
class Prior:
    """(e, λ) ~ N((0, mean), diag(1, variance)): the mean of each level (L,), and one variance."""

    mean: Floats
    variance: float


# -- levels and ω --------------------------------------------------------------------------------------------


def augment(
    cells: GridCells, ratings: Ratings, observing: Observing, words: tuple[np.uint64, np.uint64], pool: Executor
) -> Augmented:
    """A level for each unobserved cell, l ∝ P(l)(1 - p_l), by the first word; ω ~ PG(1, x) for all, by the second."""
    state, omega = np.empty(len(cells.item), np.int8), np.empty(len(cells.item))
    given = (
        cells.ptr,
        cells.item,
        cells.code,
        cells.n_items,
        *plain_ratings(ratings),
        *plain_odds(observing),
        *words,
    )
    effects = (observing.by_user, observing.by_item)
    in_parts(cells.ptr, lambda first, last: _augment(first, last, *given, *effects, state, omega), pool)
    return Augmented(cells.ptr, cells.item, state, omega)


@njit(nogil=True, cache=True, fastmath=SUMMING)
def _augment(
    first: int, last: int, ptr: Pointers, item: Ints, code: Codes, n_items: int, u: Floats, v: Floats, a: Floats,
    b: Floats, cuts: Floats, e: Floats, f: Floats, user_odds: Floats, item_odds: Floats, level_word: np.uint64,
    omega_word: np.uint64, by_user: Floats, by_item: Floats, state: Codes, omega: Floats,
) -> None:  # fmt: skip
    P = np.empty(cuts.size + 1)
    for i in range(first, last):
        for c in range(ptr[i], ptr[i + 1]):
            j, level = item[c], int(code[c])
            cell, common = i * n_items + j, dot(e[i], f[j])
            if level < 0:
                cell_chances(u[i], v[j], a[i] * b[j], cuts, P)
                odds, total = np.exp(common), 0.0
                for l in range(P.size):
                    total += P[l] / (1 + odds * user_odds[i, l] * item_odds[j, l])
                    P[l] = total
                target, level = total * uniform(row_word(level_word, cell), 0), 0
                while level < P.size - 1 and P[level] <= target:
                    level += 1
            state[c] = 2 * level + (code[c] >= 0)
            omega[c] = polya_gamma(row_word(omega_word, cell), common + by_user[i, level] + by_item[j, level])


# -- blocks --------------------------------------------------------------------------------------------------
# With x_c = (f_j, 1{level = l}) the block θ = (e_i, λ_i) has precision diag(1, 1/s²) + Σ_c ω x_c x_cᵀ and the linear
# term (0, m/s²) + Σ_c (o - 1/2 - ωψ_{j,l}) x_c.


def draw_blocks(
    side: Augmented, partners: Floats, offsets: Floats, prior: Prior, word: np.uint64, pool: Executor
) -> tuple[Floats, Floats]:
    """(e, λ) of all users given (f, ψ) of their partners; the reverse with `turned` cells."""
    N, D, L = len(side.ptr) - 1, partners.shape[1], offsets.shape[1]
    out = np.empty((N, D + L))
    given = (side.ptr, side.partner, side.state, side.omega, partners, offsets)
    in_parts(side.ptr, lambda first, last: _draw(first, last, *given, prior.mean, prior.variance, word, out), pool)
    return np.ascontiguousarray(out[:, :D]), np.ascontiguousarray(out[:, D:])


@njit(nogil=True, cache=True, fastmath=SUMMING)
def _draw(
    first: int, last: int, ptr: Pointers, partner: Ints, state: Codes, omega: Floats, partners: Floats,
    offsets: Floats, mean: Floats, variance: float, word: np.uint64, out: Floats,
) -> None:  # fmt: skip
    D, K = partners.shape[1], out.shape[1]
    A, g, z = np.empty((K, K)), np.empty(K), np.empty(K)
    for i in range(first, last):
        A[:], g[:] = 0.0, 0.0
        for k in range(K):
            A[k, k] = 1.0 if k < D else 1 / variance
            g[k] = 0.0 if k < D else mean[k - D] / variance
        for c in range(ptr[i], ptr[i + 1]):
            j, level = partner[c], state[c] >> 1
            pull = (state[c] & 1) - 0.5 - omega[c] * offsets[j, level]
            _add_cell(partners[j], D + level, omega[c], pull, A, g)
        mine = row_word(word, i)
        for k in range(K):
            z[k] = normal(mine, k)
        draw_normal(A, g, z)
        out[i] = g


@inlined
def _add_cell(f: Floats, own: int, omega: float, pull: float, A: Floats, g: Floats) -> None:
    """A cell's part of the precision, its lower triangle, and of the linear term; `own` is the place of its level."""
    for k in range(f.size):
        scaled = omega * f[k]
        g[k] += pull * f[k]
        A[own, k] += scaled
        for h in range(k + 1):
            A[k, h] += scaled * f[h]
    A[own, own] += omega
    g[own] += pull
