"""Functions of your own inside a metric: what they are given, and what is refused."""

from __future__ import annotations

import math

import numpy as np
import pytest

from openloop.core.gains import RankGain
from openloop.errors import InputError
from tests.facts import facts


def test_a_table_holds_the_function_of_ranks_from_one():
    np.testing.assert_array_equal(
        RankGain(name="inverse", function=lambda rank: 1 / rank).table(4), [1, 1 / 2, 1 / 3, 1 / 4]
    )


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


def test_a_declared_cutoff_is_checked_at_every_length():
    cut = RankGain(name="top@3", function=lambda rank: np.where(rank <= 3, 1.0, 0.0), k=3)
    assert cut.table(5).tolist() == [1, 1, 1, 0, 0]
    with pytest.raises(InputError, match=facts("'half@3'", "rank 3", "rank 4", "0.0625", "np.where(rank <= 3")):
        RankGain(name="half@3", function=lambda rank: 0.5**rank, k=3)
    late = RankGain(name="late@3", function=lambda rank: np.where((rank <= 3) | (rank > 100), 1.0, 0.0), k=3)
    with pytest.raises(InputError, match="rank 101"):
        late.table(200)
