"""The best few of each row, ties and short rows included."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openloop.errors import UndefinedError
from openloop.kernels.selecting import best, best_lists, best_numpy
from tests.facts import facts


def test_by_hand():
    scores = np.array([[1.0, 3.0, 2.0, 3.0], [-np.inf, 0.0, -np.inf, -np.inf]])
    chosen, candidates = best(scores, 3)
    assert chosen.tolist() == [[1, 3, 2], [1, -1, -1]]  # of the two threes the first column comes first
    assert candidates.tolist() == [4, 1]


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


def test_a_user_whose_scores_have_no_order_is_named():
    scores = np.zeros((3, 4))
    scores[2, 1] = np.nan
    with pytest.raises(UndefinedError, match=facts("user 2", "NaN")):
        best_lists(lambda users: scores[users], (3, 4), 2, *nothing(3))
