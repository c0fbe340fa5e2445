"""The steps on pairs of items: Algorithm 1 by hand, draws by law, and the kernels against their twins."""

from __future__ import annotations

import numpy as np
import pytest

from openloop.kernels.violators import (
    LANES,
    Likes,
    Schedule,
    adg_updates,
    adg_updates_numpy,
    alias_table,
    auc_updates,
    auc_updates_numpy,
    drawn_numpy,
    rows,
    step_numpy,
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


def test_a_violators_weight_falls_with_the_draws_it_took():
    # |I| - 1 = 10, γ = 4: at most 2.5 draws, so a third one is the last. k = 10, 5, 3; C = 1 - 1/log2(12, 7, 5)
    np.testing.assert_allclose(violator_weights(11, 4.0), [0.7210571, 0.6437928, 0.5693234], rtol=1e-6)


def test_a_large_gamma_leaves_one_draw():
    assert len(violator_weights(11, 1e9)) == 1
    assert len(violator_weights(2, 1.0)) == 1


def test_rows_hold_factors_then_the_bias_then_nothing():
    found = rows(np.array([[1, 2], [3, 4]], np.float32), np.array([5, 6]))
    assert found.shape == (2, LANES)
    np.testing.assert_array_equal(found[:, :3], [[1, 2, 5], [3, 4, 6]])
    assert not found[:, 3:].any()


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


def test_the_rate_falls_in_a_straight_line():
    # Update 5 of 10 steps half as far as update 0.
    moved = []
    for t in (0, 5):
        V, W = rows(np.array([[1.0]]), 1.0), rows(np.array([[0.5], [0.0]]), np.array([0.0, 0.25]))
        auc_updates(V, W, 1, likes_of([[0]]), Schedule(0.5, 0.0, 10), START, t, t + 1)
        moved.append(W[0, 1])
    assert moved == [0.5, 0.25]


def test_without_a_violator_nothing_moves():
    for bias in (1.0, 7.0):  # a margin of exactly 1 is no violation
        V, W = rows(np.array([[0.0]]), 1.0), rows(np.zeros((2, 1)), np.array([bias, 0.0]))
        before = V.copy(), W.copy()
        schedule = Schedule(0.5, 0.1, 10)
        assert adg_updates(V, W, 1, likes_of([[0]]), violator_weights(2, 1.0), schedule, START, 0, 10) == (0, 0.0)
        assert auc_updates(V, W, 1, likes_of([[0]]), schedule, START, 0, 10) == (0, 0.0)
        np.testing.assert_array_equal(V, before[0])
        np.testing.assert_array_equal(W, before[1])


def test_what_is_no_number_shows_in_the_sum():
    V, W = rows(np.array([[np.nan]]), 1.0), rows(np.zeros((2, 1)), np.zeros(2))
    schedule = Schedule(0.5, 0.1, 10)
    assert np.isnan(adg_updates(V, W, 1, likes_of([[0]]), violator_weights(2, 1.0), schedule, START, 0, 3)[1])
    assert np.isnan(auc_updates(V, W, 1, likes_of([[0]]), schedule, START, 0, 3)[1])


# --- by law


def test_a_step_goes_down_the_gradient():
    rng = np.random.default_rng(0)
    theta = tuple(rng.normal(size=shape) for shape in ((1, 3), (2, 3), (2,)))
    C, reg, eps = 0.7, 0.3, 1e-6

    def loss(V, W, b):
        hinge = V[0] @ (W[1] - W[0]) + b[1] - b[0] + 1
        return C * hinge + reg / 2 * sum((x**2).sum() for x in (V, W))

    after = tuple(x.copy() for x in theta)
    step_numpy(after, 0, 0, 1, C, 1.0, reg)
    for part, (x, y) in enumerate(zip(theta, after, strict=True)):
        for at in np.ndindex(x.shape):
            ahead, behind = (tuple(z.copy() for z in theta) for _ in range(2))
            ahead[part][at] += eps
            behind[part][at] -= eps
            assert y[at] - x[at] == pytest.approx(-(loss(*ahead) - loss(*behind)) / (2 * eps), abs=1e-8)


def test_equal_weights_keep_every_place():
    likes = likes_of([[0, 3, 4], [], [1, 2]])
    np.testing.assert_array_equal(likes.keep, 1)
    np.testing.assert_array_equal(likes.other, np.arange(5))


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


def test_updates_in_parts_are_updates_at_once(world):
    theta, likes = world
    C, schedule = violator_weights(I, 2.0), Schedule(0.1, 0.05, 300)
    at_once, in_parts = in_rows(theta), in_rows(theta)
    adg_updates(*at_once, K, likes, C, schedule, START, 0, 300)
    for first, last in ((0, 1), (1, 117), (117, 300)):
        adg_updates(*in_parts, K, likes, C, schedule, START, first, last)
    for x, y in zip(at_once, in_parts, strict=True):
        np.testing.assert_array_equal(x, y)


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


def test_the_column_of_ones_and_the_filling_stay_as_they_are(world):
    theta, likes = world
    V, W = in_rows(theta)
    adg_updates(V, W, K, likes, violator_weights(I, 2.0), Schedule(0.05, 0.1, 500), START, 0, 500)
    auc_updates(V, W, K, likes, Schedule(0.05, 0.1, 500), START, 0, 500)
    np.testing.assert_array_equal(V[:, K], 1)
    assert not V[:, K + 1 :].any()
    assert not W[:, K + 1 :].any()


def test_more_draws_than_items_are_never_made():
    assert len(violator_weights(25, 1e-9)) == 24
    assert violator_weights(25, 1.0)[-1] == 1 - 1 / np.float32(np.log2(3))
