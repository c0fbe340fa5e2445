"""Cells of a joint model: the lists of them, Φ by its table, and the chance to be unobserved."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
from numba import njit
from scipy.special import expit, ndtr

from openloop.kernels.joint_cells import (
    UNSEEN,
    GridCells,
    Observing,
    Ratings,
    chances,
    chosen_cells,
    chosen_cells_numpy,
    fast_cdf,
    missing_logs,
    missing_logs_numpy,
    observed_chances,
    sampled_cells,
    sampled_cells_numpy,
)
from openloop.kernels.streams import stream_word

WORD = stream_word(0, 1)
POOL = ThreadPoolExecutor(2)


@njit
def _cdf(x):
    out = np.empty(x.size)
    for k in range(x.size):
        out[k] = fast_cdf(x[k])
    return out


def parts(U=30, I=25, d=4, L=5, seed=0):
    rng = np.random.default_rng(seed)
    scales = 1 / rng.gamma(5, 1 / 4, U), 1 / rng.gamma(5, 1 / 4, I)
    ratings = Ratings(rng.normal(size=(U, d)), rng.normal(size=(I, d)), *scales, np.arange(1, L) - L / 2)
    effects = rng.normal(-2, 0.7, (U, L)), rng.normal(0, 0.5, (I, L))
    return ratings, Observing(rng.normal(size=(U, 2)), rng.normal(size=(I, 2)), *effects)


def observed(U=30, I=25, L=5, density=0.2, seed=1):
    rng = np.random.default_rng(seed)
    seen = rng.random((U, I)) < density
    seen[3], seen[4] = True, False  # a user who rated everything, and one who rated nothing
    ptr = np.append(0, np.cumsum(seen.sum(axis=1)))
    code = rng.integers(0, L, ptr[-1]).astype(np.int8)
    return GridCells(ptr, np.nonzero(seen)[1].astype(np.int32), code, I)


def test_the_table_gives_the_normal_distribution():
    x = np.concatenate([np.linspace(-9, 9, 20_001), [-np.inf, np.inf, -40.0, 40.0, 0.0]])
    np.testing.assert_allclose(_cdf(x), ndtr(x), rtol=0, atol=1e-13)


@pytest.mark.parametrize("share", [1.0, 0.5, 0.05])
def test_lists_are_the_plain_ones(share):
    ours, plain = sampled_cells(observed(), share, WORD, POOL), sampled_cells_numpy(observed(), share, WORD)
    for name in ("ptr", "item", "code", "weight"):
        np.testing.assert_array_equal(getattr(ours, name), getattr(plain, name))


def test_all_cells_are_the_grid():
    given = observed()
    cells = sampled_cells(given, 1.0, WORD, POOL)
    assert np.array_equal(cells.user * 25 + cells.item, np.arange(30 * 25))
    np.testing.assert_array_equal(cells.code[cells.code >= 0], given.code)
    assert cells.weight == 1


def test_sampled_cells_hold_all_observed_ones_and_their_share_of_the_others():
    given, share, draws = observed(), 0.3, 200
    unseen = np.zeros((30, 25))
    for k in range(draws):
        cells = sampled_cells(given, share, stream_word(k, 2), POOL)
        np.testing.assert_array_equal(cells.code[cells.code >= 0], given.code)
        unseen[cells.user[cells.code == UNSEEN], cells.item[cells.code == UNSEEN]] += 1
    candidates = np.ones((30, 25), bool)
    candidates[given.user, given.item] = False
    assert np.all(unseen[~candidates] == 0)
    z = (unseen[candidates] - share * draws) / np.sqrt(draws * share * (1 - share))
    assert np.abs(z).max() < 4.5  # 600 cells
    assert abs(z.mean()) < 4 / np.sqrt(z.size)


def test_chosen_cells_are_the_plain_ones():
    rng = np.random.default_rng(3)
    for users, items in ((rng.random(30) < 0.4, rng.random(25) < 0.5), (np.ones(30, bool), np.ones(25, bool))):
        ours, plain = chosen_cells(observed(), users, items, POOL), chosen_cells_numpy(observed(), users, items)
        for name in ("ptr", "item", "code", "weight"):
            np.testing.assert_array_equal(getattr(ours, name), getattr(plain, name))


def test_sums_by_user_and_item():
    cells = observed()
    values = np.random.default_rng(2).normal(size=len(cells.item))
    np.testing.assert_allclose(cells.by_user(values), np.bincount(cells.user, values, 30), atol=1e-12)
    np.testing.assert_allclose(cells.by_item(values), np.bincount(cells.item, values, 25), atol=1e-12)
    assert cells.by_user(values)[4] == 0


@pytest.mark.parametrize("share", [1.0, 0.4])
def test_chances_to_be_unobserved_are_the_plain_ones(share):
    cells = sampled_cells(observed(), share, WORD, POOL)
    ours, plain = missing_logs(cells, *parts(), POOL), missing_logs_numpy(cells, *parts())
    np.testing.assert_allclose(ours, plain, atol=1e-11)
    assert np.all(ours[cells.code >= 0] == 0)
    assert np.all(ours[cells.code < 0] < 0)


def test_by_hand():
    # P = (Φ(0), 1 - Φ(0)) = (½, ½); p = (σ(-1), σ(2)): S = ½σ(1) + ½σ(-2).
    ratings = Ratings(np.array([[2.0]]), np.array([[0.5]]), np.ones(1), np.full(1, 4.0), np.array([1.0]))
    observing = Observing(np.array([[1.0]]), np.array([[0.5]]), np.array([[-1.0, 1.0]]), np.array([[-0.5, 0.5]]))
    cells = GridCells(np.array([0, 1]), np.zeros(1, np.int32), np.full(1, UNSEEN, np.int8), 1)
    truth = np.log(0.5 * expit(1.0) + 0.5 * expit(-2.0))
    assert missing_logs(cells, ratings, observing, POOL)[0] == pytest.approx(truth, abs=1e-13)


def test_where_the_rating_does_not_matter_its_model_does_not():
    ratings, observing = parts()
    flat = replace(observing, by_user=observing.by_user[:, :1].repeat(5, 1), by_item=np.zeros((25, 5)))
    cells = sampled_cells(observed(), 1.0, WORD, POOL)
    other = replace(ratings, u=-ratings.u)
    one, two = (missing_logs(cells, given, flat, POOL) for given in (ratings, other))
    np.testing.assert_allclose(one, two, atol=1e-12)


def test_levels_have_chances_that_sum_to_1():
    ratings, observing = parts()
    user, item = np.repeat(np.arange(30), 25), np.tile(np.arange(25), 30)
    np.testing.assert_allclose(chances(ratings, user, item).sum(axis=1), 1, atol=1e-12)
    assert np.all((observed_chances(observing, user, item) > 0) & (observed_chances(observing, user, item) < 1))


def test_bits_do_not_depend_on_threads(monkeypatch):
    monkeypatch.setattr("openloop.kernels.parts.PART", 50)
    cells = sampled_cells(observed(), 1.0, WORD, POOL)
    found = []
    for threads in (1, 4):
        with ThreadPoolExecutor(threads) as pool:
            found.append(missing_logs(cells, *parts(), pool))
    np.testing.assert_array_equal(*found)
