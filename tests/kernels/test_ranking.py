"""Exact ranks: the kernel against its twin, and against worlds whose ranks are obvious."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openloop.errors import InputError
from openloop.kernels.ranking import TOTAL_BYTES, block_users, factor_ranks, ranks, ranks_numpy, workers
from tests.facts import facts


def lists(per_user):
    """Pointers and items of a list of lists."""
    return np.cumsum([0, *map(len, per_user)]), np.array([i for mine in per_user for i in mine], np.int32)


@st.composite
def worlds(draw):
    """Scores with ties, infinities and both float types; wanted and excluded lists that may overlap."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    U, I = draw(st.integers(1, 12)), draw(st.integers(1, 70))
    kind = draw(st.sampled_from([np.float32, np.float64]))
    scores = rng.choice([-np.inf, -1, -0.0, 0.0, 0.5, 2, np.inf], (U, I)).astype(kind)
    if draw(st.booleans()):
        scores = rng.normal(size=(U, I)).astype(kind)
    wanted = [rng.integers(0, I, rng.integers(0, 6)) for _ in range(U)]
    excluded = [np.flatnonzero(rng.random(I) < draw(st.sampled_from([0, 0.3, 1]))) for _ in range(U)]
    return scores, lists(wanted), lists(excluded)


# --- by hand


def test_a_row_by_hand():
    scores = np.array([[3, 1, 2, 2, 5]], np.float32)
    wanted = lists([[4, 2, 1]])
    h, e = ranks(scores.__getitem__, *wanted, 5)
    np.testing.assert_array_equal(h, [0, 2, 4])
    np.testing.assert_array_equal(e, [1, 2, 1])
    h, e = ranks(scores.__getitem__, *wanted, 5, *lists([[0, 3]]))
    np.testing.assert_array_equal(h, [0, 1, 2])
    np.testing.assert_array_equal(e, [1, 1, 1])


def test_an_excluded_item_is_a_candidate_for_its_own_rank_only():
    scores = np.array([[3, 1, 3]], np.float32)
    h, e = ranks(scores.__getitem__, *lists([[0, 1, 2]]), 3, *lists([[0]]))
    np.testing.assert_array_equal(h, [0, 1, 0])
    np.testing.assert_array_equal(e, [2, 1, 1])


# --- by law


@settings(max_examples=150, deadline=None)
@given(worlds(), st.integers(1, 5), st.integers(1, 3))
def test_the_kernel_counts_as_its_twin(world, block, threads):
    scores, wanted, excluded = world
    for gone in ((None, None), excluded):
        found = ranks(scores.__getitem__, *wanted, scores.shape[1], *gone, block=block, threads=threads)
        np.testing.assert_array_equal(found, ranks_numpy(scores, *wanted, *gone))


def test_ranks_of_all_items_are_a_permutation():
    scores = np.random.default_rng(0).permuted(np.tile(np.arange(257.0), (5, 1)), axis=1)
    h, e = ranks(scores.__getitem__, *lists([range(257)] * 5), 257)
    np.testing.assert_array_equal(np.sort(h.reshape(5, -1)), np.tile(np.arange(257), (5, 1)))
    assert (e == 1).all()
    np.testing.assert_array_equal(h, 256 - scores.ravel())


def test_a_constant_model_ties_with_every_candidate():
    constant = np.zeros((3, 40), np.float32)
    h, e = ranks(constant.__getitem__, *lists([[1], [], [39]]), 40, *lists([[], [], range(10)]))
    np.testing.assert_array_equal(h, [0, 0])
    np.testing.assert_array_equal(e, [40, 30])


def test_float64_scores_are_not_rounded_into_ties():
    scores = np.array([[1.0, 1.0 + 1e-12]])
    h, e = ranks(scores.__getitem__, *lists([[0]]), 2)
    assert (h, e) == (1, 1)


def test_only_users_who_want_something_are_scored():
    asked = []
    lock = threading.Lock()

    def scores_of(users):
        with lock:
            asked.extend(users)
        return np.zeros((len(users), 4), np.float32)

    ranks(scores_of, *lists([[], [0], [], [1, 2], []]), 4, block=1)
    assert sorted(asked) == [1, 3]


# --- factors


@pytest.fixture(scope="module")
def factors():
    rng = np.random.default_rng(3)
    P, Q = rng.integers(-3, 4, (150, 6)), rng.integers(-3, 4, (90, 6))  # products of integers are exact
    wanted = lists([rng.integers(0, 90, rng.integers(0, 5)) for _ in range(150)])
    excluded = lists([np.flatnonzero(rng.random(90) < 0.2) for _ in range(150)])
    return P, Q, rng.integers(-2, 3, 90), wanted, excluded


@pytest.mark.parametrize("biased", [False, True])
@pytest.mark.parametrize(("block", "threads"), [(None, None), (7, 2), (150, 1)])
def test_factors_rank_as_their_product(factors, biased, block, threads):
    P, Q, bias, wanted, excluded = factors
    scores = P @ Q.T + bias * biased
    found = factor_ranks(P, Q, bias if biased else None, *wanted, *excluded, block=block, threads=threads)
    np.testing.assert_array_equal(found, ranks_numpy(scores, *wanted, *excluded))


@pytest.mark.parametrize("size", [1e-40, 1e-22])
def test_factors_that_shrank_far_below_the_bias_leave_its_order(size):
    P, Q = (np.full((shape, 2), size, np.float32) for shape in (3, 60))
    bias = np.linspace(0.1, 0.2, 60, dtype=np.float32)
    wanted = lists([[0, 30, 59]] * 3)
    for small in (np.float32(1.0), np.float32(1e-33)):
        found = factor_ranks(P, Q, bias * small, *wanted)
        np.testing.assert_array_equal(found, factor_ranks(0 * P, 0 * Q, bias, *wanted))


def test_same_bits_whatever_the_thread_count():
    rng = np.random.default_rng(4)
    P, Q = rng.normal(size=(300, 8)), rng.normal(size=(5000, 8))
    wanted = lists([rng.integers(0, 5000, 3) for _ in range(300)])
    one = factor_ranks(P, Q, None, *wanted, threads=1, block=32)
    for threads in (2, 5):
        np.testing.assert_array_equal(factor_ranks(P, Q, None, *wanted, threads=threads, block=32), one)


# --- bounds and the door


@pytest.mark.parametrize("n_items", [1, 100, 20_000, 3_000_000, 200_000_000])
def test_blocks_fit_in_memory(n_items):
    block = block_users(n_items, 10**9)
    threads = workers(64, block, n_items)
    assert min(block, threads) >= 1
    assert block == threads == 1 or threads * block * n_items * 4 <= TOTAL_BYTES


def test_a_block_of_very_many_items_has_users_enough_for_a_fast_product():
    assert block_users(1_000_000, 10**9) == 16
    assert block_users(20_000_000, 10**9) == 1  # 80 MB each


def test_nan_is_refused_by_user():
    scores = np.zeros((3, 50), np.float32)
    scores[2, 17] = np.nan
    with pytest.raises(InputError, match=facts("user 2", "NaN")):
        ranks(scores.__getitem__, *lists([[0], [0], [0]]), 50)
    assert ranks(scores.__getitem__, *lists([[0], [0], []]), 50)[1].tolist() == [50, 50]


@pytest.mark.parametrize(
    ("wanted", "excluded", "refusal"),
    [
        pytest.param(lists([[5]]), (None, None), facts("wanted", 3, 5), id="wanted too large"),
        pytest.param(lists([[-1]]), (None, None), facts("wanted", 3, -1), id="wanted negative"),
        pytest.param((np.array([0, 2]), np.zeros(1, int)), (None, None), "wanted_ptr", id="wanted too short"),
        pytest.param(lists([[0]]), lists([[0], [1]]), "excluded_ptr", id="excluded too long"),
        pytest.param(lists([[0]]), lists([[1, 1]]), facts("excluded", "ascend"), id="excluded twice"),
        pytest.param(lists([[0]]), lists([[2, 1]]), facts("excluded", "ascend"), id="excluded unsorted"),
    ],
)
def test_lists_that_cannot_be_used_are_refused(wanted, excluded, refusal):
    with pytest.raises(InputError, match=refusal):
        ranks(np.zeros((1, 4)).__getitem__, *wanted, 4, *excluded)


def test_scores_of_another_shape_are_refused():
    with pytest.raises(InputError, match=facts("scores", "2 users", "4 items", (2, 5))):
        ranks(np.zeros((2, 5)).__getitem__, *lists([[0], [0]]), 4)
    with pytest.raises(InputError, match=facts("factor_ranks", "factors", (2, 3), (4, 2))):
        factor_ranks(np.zeros((2, 3)), np.zeros((4, 2)), None, *lists([[0], [0]]))


def test_nobody_wants_anything():
    h, e = ranks(np.zeros((2, 3)).__getitem__, *lists([[], []]), 3)
    assert h.size == e.size == 0
