"""The steps on pairs of items: Algorithm 1 by hand, draws by law, and the kernels step for step."""

from __future__ import annotations

import numpy as np
import pytest

from openloop.kernels.violators import (
    Likes,
    Schedule,
    adg_updates,
    adg_updates_numpy,
    alias_table,
    auc_updates,
    auc_updates_numpy,
    drawn_numpy,
    rows,
    violator_weights,
    words_numpy,
)

START = np.uint64(2**63 + 12345)
U, I, K = 7, 23, 5


def likes_of(lists: list[list[int]], weight=None) -> Likes:
    ptr = np.cumsum([0, *map(len, lists)]).astype(np.int64)
    item = np.array([i for items in lists for i in items], np.int32)
    table = alias_table(ptr, np.ones(len(item)) if weight is None else np.asarray(weight, float))
    return Likes(np.flatnonzero(np.diff(ptr)).astype(np.int32), ptr, item, *table)


@pytest.fixture
def world():
    """Random factors and likes; user 3 likes nothing, user 5 all items but the last."""
    rng = np.random.default_rng(4)
    theta = tuple(rng.normal(0, 0.5, shape).astype(np.float32) for shape in ((U, K), (I, K), (I,)))
    liked = rng.random((U, I)) < 0.3
    liked[3], liked[5] = False, np.arange(I) < I - 1
    return theta, likes_of([np.flatnonzero(row).tolist() for row in liked], rng.gamma(1.0, size=liked.sum()))


def in_rows(theta):
    V, W, b = theta
    return rows(V, 1.0), rows(W, b)


def out_of_rows(V, W):
    return V[:, :K], W[:, :K], W[:, K]


# --- by hand


def test_an_adg_step_by_hand():
    # One user who likes item 0 of two, so that every draw is known: f(0) = 0.5, f(1) = 0.25, a violator in draw 1.
    # C(1) = 1 - 1/log2(3) = 0.3690702, η = 0.5, λ = 0.1.
    V, W = rows(np.array([[1.0]]), 1.0), rows(np.array([[0.5], [0.0]]), np.array([0.0, 0.25]))
    args = likes_of([[0]]), violator_weights(2, 1.0), Schedule(0.5, 0.1, 10)
    assert adg_updates(V, W, 1, *args, START, 0, 1) == (1, 0.75)
    half = 0.5 * 0.36907025
    np.testing.assert_allclose(V[0, :2], [1 + half * 0.5 - 0.05, 1.0], rtol=1e-6)
    np.testing.assert_allclose(W[0, :2], [0.5 + half - 0.025, half], rtol=1e-6)
    np.testing.assert_allclose(W[1, :2], [-half, 0.25 - half], rtol=1e-6)


def test_an_auc_step_by_hand():
    V, W = rows(np.array([[1.0]]), 1.0), rows(np.array([[0.5], [0.0]]), np.array([0.0, 0.25]))
    assert auc_updates(V, W, 1, likes_of([[0]]), Schedule(0.5, 0.1, 10), START, 0, 1) == (1, 0.75)
    np.testing.assert_allclose(V[0, :2], [1 + 0.25 - 0.05, 1.0], rtol=1e-6)
    np.testing.assert_allclose(W[0, :2], [0.5 + 0.5 - 0.025, 0.5], rtol=1e-6)
    np.testing.assert_allclose(W[1, :2], [-0.5, -0.25], rtol=1e-6)


# --- by law


def test_an_alias_table_has_the_probabilities_of_the_weights():
    rng = np.random.default_rng(1)
    weight = rng.gamma(0.3, size=60)
    lists = [list(range(40)), [], list(range(20))]
    likes = likes_of(lists, weight)
    for u in (0, 2):
        first, last = likes.ptr[u], likes.ptr[u + 1]
        p = np.zeros(len(weight))
        np.add.at(p, np.arange(first, last), likes.keep[first:last] / (last - first))
        np.add.at(p, likes.other[first:last], (1 - likes.keep[first:last]) / (last - first))
        np.testing.assert_allclose(p[first:last], weight[first:last] / weight[first:last].sum(), atol=1e-7)


def test_draws_are_uniform_over_users_and_weighted_over_likes():
    likes, n = likes_of([[0, 5], [], [1, 2, 3]], [1, 3, 2, 2, 4]), 40_000
    counts = np.zeros((3, 6))
    for word in words_numpy(START, 0, 2 * n).reshape(n, 2):
        counts[drawn_numpy(likes, word)] += 1
    expected = np.zeros((3, 6))
    expected[0, [0, 5]], expected[2, [1, 2, 3]] = np.array([1, 3]) / 8, np.array([2, 2, 4]) / 16
    np.testing.assert_allclose(counts / n, expected, atol=4 * 0.5 / np.sqrt(n))


# --- against the twins


@pytest.mark.parametrize("n", [1, 2, 10, 400])
@pytest.mark.parametrize("gamma", [1.0, 3.3, 100.0])
def test_adg_is_its_twin_step_for_step(world, n, gamma):
    theta, likes = world
    schedule, (V, W) = Schedule(0.05, 0.1, 500), in_rows(theta)
    found, hinges = adg_updates(V, W, K, likes, violator_weights(I, gamma), schedule, START, 0, n)
    expected = adg_updates_numpy(theta, likes, gamma, schedule, START, n)
    assert (found, hinges) == (expected[0], pytest.approx(expected[1], rel=1e-4))
    for x, y in zip(out_of_rows(V, W), theta, strict=True):
        np.testing.assert_allclose(x, y, atol=1e-5)


@pytest.mark.parametrize("n", [1, 2, 10, 400])
def test_auc_is_its_twin_step_for_step(world, n):
    theta, likes = world
    schedule, (V, W) = Schedule(0.05, 0.1, 500), in_rows(theta)
    found, hinges = auc_updates(V, W, K, likes, schedule, START, 0, n)
    expected = auc_updates_numpy(theta, likes, schedule, START, n)
    assert (found, hinges) == (expected[0], pytest.approx(expected[1], rel=1e-4))
    for x, y in zip(out_of_rows(V, W), theta, strict=True):
        np.testing.assert_allclose(x, y, atol=1e-5)
