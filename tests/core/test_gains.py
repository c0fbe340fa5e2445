"""Functions of your own inside a metric: what they are given, and what is refused."""

from __future__ import annotations

import math

import narwhals as nw
import numpy as np
import pytest

from openloop.core.gains import PairLoss, RankGain, probe_pairs
from openloop.errors import InputError
from tests.facts import facts


def test_a_table_holds_the_function_of_ranks_from_one():
    np.testing.assert_array_equal(
        RankGain(name="inverse", function=lambda rank: 1 / rank).table(4), [1, 1 / 2, 1 / 3, 1 / 4]
    )


def test_ranks_are_floats_so_that_powers_are_no_integers():
    np.testing.assert_array_equal(RankGain(name="half", function=lambda rank: 2**-rank).table(2), [0.5, 0.25])


def test_a_function_that_changes_its_argument_changes_nothing():
    def spoils(rank):
        rank *= 0
        return rank + 1

    np.testing.assert_array_equal(RankGain(name="one", function=spoils).table(3), [1, 1, 1])


@pytest.mark.parametrize(
    ("function", "says"),
    [
        (lambda rank, n: rank / n, ("(rank)", "(rank, n)", 'per="user"')),
        (lambda rank, k=10: rank / k, ("(rank, k=10)", "@10")),
        (lambda *ranks: ranks[0], ("(*ranks)",)),
        (lambda rank: 1 / (rank - 3), ("at 3", "inf")),
        (lambda rank: np.log(rank - 2), ("at 1", "nan")),
        (lambda rank: np.sqrt(rank + 0j), ("complex128",)),
        (lambda rank: rank.sum(), ("shape ()",)),
        (lambda rank: rank[:-1], ("shape (63,)",)),
        (lambda rank: 1.0 if rank <= 3 else 0.0, ("failed on arrays", "np.where(rank <= 3")),
        (math.log1p, ("failed on arrays",)),
        (lambda rank: rank.astype(str), ("one real number",)),
    ],
)
def test_a_function_of_anything_but_the_rank_is_refused(function, says):
    with pytest.raises(InputError, match=facts("'mine'", *says)):
        RankGain(name="mine", function=function)


def test_a_function_that_draws_is_refused():
    rng = np.random.default_rng(0)
    with pytest.raises(InputError, match=facts("'mine'", "called again")):
        RankGain(name="mine", function=lambda rank: rng.random(len(rank)))


def test_what_is_no_function_is_refused():
    with pytest.raises(InputError, match=facts("'mine'", "float")):
        RankGain(name="mine", function=0.5)


def test_a_declared_cutoff_is_checked_at_every_length():
    cut = RankGain(name="top@3", function=lambda rank: np.where(rank <= 3, 1.0, 0.0), k=3)
    assert cut.table(5).tolist() == [1, 1, 1, 0, 0]
    with pytest.raises(InputError, match=facts("'half@3'", "rank 3", "rank 4", "0.0625", "np.where(rank <= 3")):
        RankGain(name="half@3", function=lambda rank: 0.5**rank, k=3)
    late = RankGain(name="late@3", function=lambda rank: np.where((rank <= 3) | (rank > 100), 1.0, 0.0), k=3)
    with pytest.raises(InputError, match="rank 101"):
        late.table(200)


def test_a_loss_works_on_arrays_and_on_expressions():
    square = PairLoss(name="square", function=lambda rating, prediction: (rating - prediction) ** 2)
    np.testing.assert_array_equal(square(np.array([1.0, 2.0]), np.array([2.0, 4.0])), [1, 4])
    assert isinstance(square(nw.col("y"), nw.col("s")), nw.Expr)


def test_a_loss_that_only_arrays_know_says_so_on_a_frame():
    for function in (
        lambda rating, prediction: np.abs(rating - prediction),
        lambda rating, prediction: np.where(rating > prediction, 1.0, 0.0),
        lambda rating, prediction: np.maximum(rating - prediction, 0.0),
    ):
        loss = PairLoss(name="mine", function=function)
        assert np.isfinite(loss(*probe_pairs())).all()
        with pytest.raises(InputError, match=facts("'mine'", "columns of a frame", "ol.read", "x.where")):
            loss(nw.col("y"), nw.col("s"))


def test_a_loss_takes_a_rating_and_a_prediction():
    with pytest.raises(InputError, match=facts("'mine'", "(rating, prediction)", "(error)")):
        PairLoss(name="mine", function=lambda error: error)
    with pytest.raises(InputError, match=facts("'mine'", "inf")):
        PairLoss(name="mine", function=lambda rating, prediction: 1 / (0 * rating * prediction))
