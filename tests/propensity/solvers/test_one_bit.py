"""The likelihood over the grid and its maximum: by hand, by finite differences, by laws of projections."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest

from openloop.core.feedback import Feedback
from openloop.propensity.solvers import one_bit
from openloop.propensity.solvers.one_bit import (
    PROJECTIONS,
    GridPart,
    LogitFactors,
    ObservedGrid,
    descend,
    maximise,
    nudged,
    project_max,
    project_nuclear,
    settled,
)

U, I, K = 9, 7, 3


@pytest.fixture
def cells() -> ObservedGrid:
    rng = np.random.default_rng(0)
    user, item = np.nonzero(rng.random((U, I)) < 0.4)
    share = rng.choice([0.5, 0.8, 1.0], len(user))
    log = Feedback.from_arrays(user, item, np.ones(len(user)), users=U, items=I, share=share)
    return ObservedGrid.of(log, 1 / log.share)


@pytest.fixture
def at() -> LogitFactors:
    rng = np.random.default_rng(1)
    return LogitFactors(mu=-0.7, L=rng.standard_normal((U, K)), R=rng.standard_normal((I, K)))


def grid(cells: ObservedGrid) -> np.ndarray:
    O = np.zeros((U, I))
    O[cells.user, cells.item] = cells.O
    return O


def likelihood(O, at: LogitFactors, counted=True) -> float:
    A = at.mu + at.L @ at.R.T
    return np.sum(counted * (O * A - np.logaddexp(0, A)))


def test_the_loss_is_the_likelihood_of_every_cell(cells, at):
    assert np.isclose(cells.loss(at), -likelihood(grid(cells), at), rtol=1e-12)


def test_blocks_and_threads_change_nothing_but_rounding(cells, at, monkeypatch):
    loss, (_, slope) = cells.loss(at), cells.slope(at)
    monkeypatch.setattr(one_bit, "BLOCK", 2 * I)
    with ThreadPoolExecutor(3) as pool:
        threaded = replace(cells, walk=pool.map)
        assert np.isclose(threaded.loss(at), loss, rtol=1e-12)
        assert threaded.slope(at)[0] == cells.slope(at)[0]  # the same blocks: the same bits
        for side in "LR":
            np.testing.assert_allclose(getattr(threaded.slope(at)[1], side), getattr(slope, side), atol=1e-12)


@pytest.mark.parametrize("held_out", [False, True])
def test_the_slope_is_that_of_finite_differences(cells, at, held_out):
    if held_out:
        cells = cells.without(GridPart.draw(U, I, 3, np.random.default_rng(5))[1])
    loss, by = cells.slope(at)
    assert np.isclose(loss, cells.loss(at), rtol=1e-12)
    step = 1e-5
    for u, k in ((0, 0), (4, 2)):
        move = np.zeros((U, K))
        move[u, k] = step
        ends = [cells.loss(replace(at, L=at.L + sign * move)) for sign in (1, -1)]
        assert np.isclose(by.L[u, k], (ends[0] - ends[1]) / (2 * step), rtol=1e-6)
    for i, k in ((6, 1), (2, 0)):
        move = np.zeros((I, K))
        move[i, k] = step
        ends = [cells.loss(replace(at, R=at.R + sign * move)) for sign in (1, -1)]
        assert np.isclose(by.R[i, k], (ends[0] - ends[1]) / (2 * step), rtol=1e-6)
    ends = [cells.loss(replace(at, mu=at.mu + sign * step)) for sign in (1, -1)]
    assert np.isclose(by.mu, (ends[0] - ends[1]) / (2 * step), rtol=1e-6)


def test_large_logits_do_not_overflow(cells, at):
    far = replace(at, mu=-2000.0)
    assert np.isclose(cells.loss(far), -likelihood(grid(cells), far), rtol=1e-12)
    assert np.isfinite(cells.slope(replace(at, mu=2000.0))[1].mu)


def test_parts_cover_the_grid_once_and_evenly():
    users, items = np.arange(400)[:, None], np.arange(300)
    held = np.array([part.holds(users, items) for part in GridPart.draw(400, 300, 5, np.random.default_rng(0))])
    np.testing.assert_array_equal(held.sum(axis=0), 1)
    # 120,000 cells in fifths, and 300 of each user: 5 standard deviations.
    assert np.abs(held.mean(axis=(1, 2)) - 0.2).max() < 5 * np.sqrt(0.16 / 120_000)
    assert np.abs(held.mean(axis=2) - 0.2).max() < 5 * np.sqrt(0.16 / 300)


def test_cells_of_a_part_are_as_good_as_independent():
    # Agreement of two users' parts over 20,000 items: 1/2 each, whichever the pair.
    part = GridPart.draw(40, 20_000, 2, np.random.default_rng(0))[0]
    held = part.holds(np.arange(40)[:, None], np.arange(20_000)) * 2.0 - 1
    products = held @ held.T / 20_000
    assert np.abs(products[~np.eye(40, dtype=bool)]).max() < 5 / np.sqrt(20_000)


def test_a_held_out_part_leaves_the_sum(cells, at):
    part = GridPart.draw(U, I, 3, np.random.default_rng(5))[2]
    held = part.holds(np.arange(U)[:, None], np.arange(I))
    assert 0 < held.sum() < U * I
    rest = cells.without(part)
    assert np.isclose(cells.loss(at) - rest.loss(at), -likelihood(grid(cells), at, held), rtol=1e-10)


@pytest.mark.parametrize("name", PROJECTIONS)
def test_a_projection_is_the_nearest_point_that_meets_the_bound(name, at):
    rng, project = np.random.default_rng(2), PROJECTIONS[name]
    L, R = project(at.L, at.R, 0.5)

    def distance(L, R):
        return np.sum((L - at.L) ** 2) + np.sum((R - at.R) ** 2)

    np.testing.assert_allclose(project(L, R, 0.5)[0], L, rtol=1e-12)  # what meets it, stays
    for _ in range(200):
        other = project(L + 0.1 * rng.standard_normal(L.shape), R + 0.1 * rng.standard_normal(R.shape), 0.5)
        assert distance(*other) >= distance(L, R) - 1e-12


def test_projections_bound_the_norms(at):
    L, R = project_nuclear(10 * at.L, 10 * at.R, 0.5)
    assert np.isclose((np.sum(L**2) + np.sum(R**2)) / 2, 0.5 * np.sqrt(U * I))
    assert np.linalg.svd(L @ R.T, compute_uv=False).sum() <= 0.5 * np.sqrt(U * I) * (1 + 1e-12)
    L, R = project_max(10 * at.L, 10 * at.R, 0.5)
    assert np.abs(L @ R.T).max() <= 0.5 * (1 + 1e-12)


def test_factors_of_zeros_are_projected_to_themselves():
    for project in PROJECTIONS.values():
        L, R = project(np.zeros((U, K)), np.zeros((I, K)), 0.5)
        assert not L.any()
        assert not R.any()


def test_widened_factors_are_the_same_logits(at):
    wide = at.widened(K + 2)
    assert wide.L.shape == (U, K + 2)
    for new, old in ((wide.L, at.L), (wide.R, at.R)):
        np.testing.assert_array_equal(new[:, :K], old)
        assert not new[:, K:].any()


@pytest.mark.parametrize("name", PROJECTIONS)
def test_the_loss_never_rises_and_the_end_is_stationary(name, cells):
    start = nudged(cells.start(K), 0.5, np.random.default_rng(0))
    found = maximise(cells, start, PROJECTIONS[name], 0.5, tol=1e-12, max_iter=5000)
    assert found.converged
    assert np.all(np.diff(found.path) >= 0)
    # A projected gradient step from the end leads back to it.
    by = cells.slope(found.at)[1]
    L, R = PROJECTIONS[name](found.at.L - 0.1 * by.L, found.at.R - 0.1 * by.R, 0.5)
    np.testing.assert_allclose(L, found.at.L, atol=1e-4)
    np.testing.assert_allclose(R, found.at.R, atol=1e-4)
    assert abs(by.mu) < 1e-4


def test_descent_finds_the_corner_of_a_box():
    # min (x − 3)² + 10 (y + 1)² over [0, 1]²: (1, 0), where it is 4 + 10.
    def loss(x):
        return float((x[0] - 3) ** 2 + 10 * (x[1] + 1) ** 2)

    def slope(x):
        return loss(x), np.array([2 * (x[0] - 3), 20 * (x[1] + 1)])

    x, losses, converged = descend(loss, slope, lambda x: np.clip(x, 0, 1), np.full(2, 0.5), 1.0, 1e-10, 100)
    np.testing.assert_allclose(x, [1, 0], atol=1e-9)
    assert converged
    assert np.isclose(losses[-1], 14)


def test_descent_that_is_cut_short_says_so(cells):
    start = nudged(cells.start(K), 0.5, np.random.default_rng(0))
    assert not maximise(cells, start, project_nuclear, 0.5, tol=1e-12, max_iter=3).converged


def test_settling_meets_the_log_from_far_away(cells, at):
    for mu in (-8.0, 0.0, 8.0):
        found = settled(cells, replace(at, mu=mu))
        P = 1 / (1 + np.exp(-(found.mu + at.L @ at.R.T)))
        assert np.isclose(P.sum(), cells.O.sum(), rtol=1e-10)
