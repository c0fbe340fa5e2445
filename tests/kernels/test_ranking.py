"""Exact ranks: by hand, by law, of factors, and what has none."""

from __future__ import annotations

import numpy as np
import pytest

from openloop.errors import InputError
from openloop.kernels.ranking import factor_ranks, ranks, ranks_numpy
from tests.facts import facts


def lists(per_user):
    """Pointers and items of a list of lists."""
    return np.cumsum([0, *map(len, per_user)]), np.array([i for mine in per_user for i in mine], np.int32)


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


def test_ranks_of_all_items_are_a_permutation():
    scores = np.random.default_rng(0).permuted(np.tile(np.arange(257.0), (5, 1)), axis=1)
    h, e = ranks(scores.__getitem__, *lists([range(257)] * 5), 257)
    np.testing.assert_array_equal(np.sort(h.reshape(5, -1)), np.tile(np.arange(257), (5, 1)))
    assert (e == 1).all()
    np.testing.assert_array_equal(h, 256 - scores.ravel())


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


# --- bounds and the door


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
        pytest.param((np.array([0, 2]), np.zeros(1, int)), (None, None), "wanted_ptr", id="wanted too short"),
        pytest.param(lists([[0]]), lists([[1, 1]]), facts("excluded", "ascend"), id="excluded twice"),
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
