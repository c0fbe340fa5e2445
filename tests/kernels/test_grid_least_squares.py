"""Half a sweep over a whole grid: by hand, and a minimum of the objective."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from openloop.kernels.grid_least_squares import Block, GridSide, Patchwork, grid_half_sweep
from openloop.kernels.least_squares import Rows

U, I, K, R = 40, 30, 5, 3
PENALTY, RHO, C = np.linspace(0.3, 2, K), 0.2, 1.5

BENT = pytest.mark.parametrize("bent", [False, True], ids=["flat", "curved"])


@pytest.fixture
def pool():
    with ThreadPoolExecutor(2) as threads:
        yield threads


def patches(rng) -> Patchwork:
    """Two groups of users and two of items, each block with factors of its own."""
    users, items = rng.integers(2, size=U), rng.integers(2, size=I)
    blocks = []
    for g in range(2):
        for h in range(2):
            mine, theirs = np.flatnonzero(users == g), np.flatnonzero(items == h)
            left, right = rng.normal(size=(len(mine), R)), rng.normal(size=(len(theirs), R))
            blocks.append(Block(mine, theirs, left, right))
    return Patchwork((U, I), tuple(blocks))


def world(bent=True, seed=0) -> tuple[GridSide, np.ndarray]:
    """One side and X; user 3 and item 5 have no row."""
    rng = np.random.default_rng(seed)
    O = rng.random((U, I)) < 0.3
    O[3], O[:, 5] = False, False
    user, item = np.nonzero(O)
    ptr = np.searchsorted(user, np.arange(U + 1)).astype(np.int64)
    v = rng.uniform(-0.9, 8, len(user)) if bent else np.zeros(len(user))
    rows = Rows(ptr, item.astype(np.int32), rng.normal(0, 3, len(user)), v)
    return GridSide(patches(rng), rows), rng.normal(size=(I, K))


def cells(rows: Rows, values) -> np.ndarray:
    grid = np.zeros((U, I))
    grid[np.repeat(np.arange(U), np.diff(rows.ptr)), rows.partner] = values
    return grid


def objective(side: GridSide, X, P) -> float:
    f = P[:, :-1] @ X[:, :-1].T + P[:, -1:] + X[:, -1] + C
    s, v = cells(side.rows, side.rows.y), cells(side.rows, side.rows.w)
    loss = np.sum((f - side.imputed.dense()) ** 2 + v * f**2 - 2 * s * f)
    return float(RHO * loss + np.sum(P**2 * PENALTY))


# --- by hand


def test_an_offset_alone_is_a_shrunken_mean_of_all_cells(pool):
    # r̃ = (1, 2) less c = 1 is (0, 1); the row adds s = 4 at item 1. With ρ = 1/2, λ = 1: ρ(0 + 1 + 4)/(2ρ + λ) = 2.5/2.
    blocks = (Block(np.array([0]), np.array([0, 1]), np.ones((1, 1)), np.array([[1.0], [2.0]])),)
    rows = Rows(np.array([0, 1]), np.array([1], np.int32), np.array([4.0]), np.zeros(1))
    P = np.empty((1, 1))
    gain = grid_half_sweep(GridSide(Patchwork((1, 2), blocks), rows), np.zeros((2, 1)), 1.0, P, 0.5, np.ones(1), pool)
    assert P[0, 0] == pytest.approx(1.25)
    assert gain == pytest.approx(2.5 * 1.25)


# --- by law


@BENT
def test_what_it_finds_is_a_minimum_and_the_gain_is_the_objective_s(pool, bent):
    side, X = world(bent)
    P, nothing = np.empty((U, K)), np.zeros((U, K))
    gain = grid_half_sweep(side, X, C, P, RHO, PENALTY, pool)
    best = objective(side, X, P)
    assert objective(side, X, nothing) - best == pytest.approx(gain, rel=1e-10)
    step = np.random.default_rng(3).normal(size=P.shape)
    up, down = objective(side, X, P + 1e-3 * step), objective(side, X, P - 1e-3 * step)
    assert up - best == pytest.approx(down - best, rel=1e-6)  # a parabola's two sides, so its slope is 0
    assert up > best
