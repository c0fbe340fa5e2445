"""The best few of each row: what a whole stable sort says, ties and short rows included."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from openloop.errors import InputError, UndefinedError
from openloop.kernels.selecting import best, best_lists, best_numpy
from tests.facts import facts


def test_by_hand():
    scores = np.array([[1.0, 3.0, 2.0, 3.0], [-np.inf, 0.0, -np.inf, -np.inf]])
    chosen, candidates = best(scores, 3)
    assert chosen.tolist() == [[1, 3, 2], [1, -1, -1]]  # of the two threes the first column comes first
    assert candidates.tolist() == [4, 1]


@settings(max_examples=200, deadline=None)
@given(
    scores=hnp.arrays(
        st.sampled_from([np.float32, np.float64]),
        hnp.array_shapes(min_dims=2, max_dims=2, max_side=12),
        elements=st.sampled_from([-np.inf, -1.0, -0.0, 0.0, 0.5, 2.0]),
    ),
    k=st.integers(1, 14),
)
def test_the_kernel_is_its_definition(scores, k):
    for found, wanted in zip(best(scores, k), best_numpy(scores, k), strict=True):
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("order", ["random", "rising", "falling", "equal"])
def test_long_rows_in_any_order(order):
    scores = np.random.default_rng(0).normal(size=(3, 1000)).round(2)
    scores = {"random": scores, "rising": np.sort(scores), "falling": -np.sort(-scores), "equal": 0 * scores}[order]
    for k in (1, 7, 100, 999, 1000, 2000):
        for found, wanted in zip(best(scores, k), best_numpy(scores, k), strict=True):
            np.testing.assert_array_equal(found, wanted, err_msg=f"k = {k}")


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_rows_without_an_order_are_marked(bad):
    scores = np.zeros((3, 4))
    scores[1, 2] = bad
    assert best(scores, 2)[1].tolist() == best_numpy(scores, 2)[1].tolist() == [4, -1, 4]


def test_rows_of_a_view_are_read_right():
    scores = np.random.default_rng(0).normal(size=(8, 5))
    np.testing.assert_array_equal(best(scores.T, 3)[0], best_numpy(scores.T, 3)[0])


@settings(max_examples=50, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), k=st.integers(1, 9), threads=st.integers(1, 3))
def test_lists_of_all_users_are_the_best_of_their_rows_without_what_is_excluded(seed, k, threads):
    rng = np.random.default_rng(seed)
    scores = rng.integers(0, 4, (300, 7)).astype(rng.choice([np.float32, np.float64, np.int64]))
    gone = rng.random(scores.shape) < 0.3
    ptr = np.concatenate([[0], np.cumsum(gone.sum(axis=1))])
    lists, tied = best_lists(lambda users: scores[users], scores.shape, k, ptr, np.nonzero(gone)[1], threads=threads)
    left = np.where(gone, -np.inf, scores)
    np.testing.assert_array_equal(lists, best_numpy(left, k)[0])
    ordered = -np.sort(-left, axis=1)
    cut = (ordered[:, k - 1] == ordered[:, k]) & np.isfinite(ordered[:, k]) if k < 7 else np.zeros(300, bool)
    assert tied == cut.sum()


def nothing(users):
    return np.zeros(users + 1, np.int64), np.empty(0, np.int32)


def test_scores_are_not_written_to():
    scores = np.zeros((3, 4))
    scores.flags.writeable = False
    assert best_lists(lambda users: scores[users[0] : users[-1] + 1], (3, 4), 2, np.array([0, 1, 1, 1]), np.array([0]))[
        0
    ].tolist() == [[1, 2], [0, 1], [0, 1]]


def test_a_user_whose_scores_have_no_order_is_named():
    scores = np.zeros((3, 4))
    scores[2, 1] = np.nan
    with pytest.raises(UndefinedError, match=facts("user 2", "NaN")):
        best_lists(lambda users: scores[users], (3, 4), 2, *nothing(3))


def test_scores_of_another_shape_are_refused():
    with pytest.raises(InputError, match=facts("(3, 5)")):
        best_lists(lambda users: np.zeros((len(users), 5)), (3, 4), 2, *nothing(3))
