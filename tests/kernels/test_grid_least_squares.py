"""Half a sweep over a whole grid: by hand, against its dense twin and the objective, for any number of threads."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from openloop.kernels import least_squares
from openloop.kernels.grid_least_squares import Block, GridSide, Patchwork, grid_half_sweep, grid_half_sweep_numpy
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


def test_rows_that_weigh_more_bend_the_mean(pool):
    # Weight 1 + v = 4 and target 3 at item 1, as s = v·3: (1·0 + 4·3)/(5 + λ/ρ) with λ = ρ = 1 is 2, around c = 0.
    blocks = (Block(np.array([0]), np.array([0, 1]), np.ones((1, 1)), np.array([[0.0], [3.0]])),)
    rows = Rows(np.array([0, 1]), np.array([1], np.int32), np.array([9.0]), np.array([3.0]))
    P = np.empty((1, 1))
    grid_half_sweep(GridSide(Patchwork((1, 2), blocks), rows), np.zeros((2, 1)), 0.0, P, 1.0, np.ones(1), pool)
    assert P[0, 0] == pytest.approx(2)


# --- the patchwork


def test_a_patchwork_multiplies_as_the_grid_does():
    grid = world()[0].imputed
    X = np.random.default_rng(1).normal(size=(I, 4))
    np.testing.assert_allclose(grid.times(X), grid.dense() @ X, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(grid.row_sums, grid.dense().sum(axis=1), rtol=1e-12, atol=1e-12)
    assert grid.squares == pytest.approx(np.sum(grid.dense() ** 2), rel=1e-12)
    np.testing.assert_array_equal(grid.turned.dense(), grid.dense().T)


def test_without_blocks_all_is_0():
    empty = Patchwork((U, I))
    assert not empty.times(np.ones((I, 2))).any()
    assert empty.squares == 0
    assert empty.turned.shape == (I, U)


# --- by law


@BENT
def test_it_is_its_dense_twin(pool, bent):
    side, X = world(bent)
    for one, given in ((side, X), (side.turned, np.random.default_rng(2).normal(size=(U, K)))):
        P, Q = np.empty((len(one.rows), K)), np.empty((len(one.rows), K))
        gain = grid_half_sweep(one, given, C, P, RHO, PENALTY, pool)
        twin = grid_half_sweep_numpy(one, given, C, Q, RHO, PENALTY)
        np.testing.assert_allclose(P, Q, rtol=1e-8, atol=1e-10)
        assert gain == pytest.approx(twin, rel=1e-10)


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


def test_flat_rows_are_curved_rows_of_weight_0(pool):
    side, X = world(bent=False)
    assert not side.curved
    tiny = GridSide(
        side.imputed, Rows(side.rows.ptr, side.rows.partner, side.rows.y, np.full(len(side.rows.y), 1e-300))
    )
    assert tiny.curved
    P, Q = np.empty((U, K)), np.empty((U, K))
    grid_half_sweep(side, X, C, P, RHO, PENALTY, pool)
    grid_half_sweep(tiny, X, C, Q, RHO, PENALTY, pool)
    np.testing.assert_allclose(P, Q, rtol=1e-12)


@BENT
def test_bits_do_not_depend_on_threads(monkeypatch, bent):
    monkeypatch.setattr(least_squares, "PART_ROWS", 20)
    side, X = world(bent)
    assert len(side.rows.parts) > 3
    found = []
    for threads in (1, 3):
        with ThreadPoolExecutor(threads) as pool:
            found.append(np.empty((U, K)))
            grid_half_sweep(side, X, C, found[-1], RHO, PENALTY, pool)
    np.testing.assert_array_equal(*found)


def test_without_a_single_solution_the_gain_is_no_number(pool):
    side, X = world(bent=False)
    X[:, 0] = 0
    assert np.isnan(grid_half_sweep(side, X, C, np.empty((U, K)), RHO, 0 * PENALTY, pool))
