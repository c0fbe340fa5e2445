"""Latin folds: every cell has one, of equal size; copies for a part of the rows have smaller penalties."""

from __future__ import annotations

import numpy as np
import pytest

from openloop.core.feedback import Feedback
from openloop.data.simulate import movie_lovers
from openloop.errors import InputError
from openloop.learners import MF, WMF, Exposure, Recalibrated, Stack
from openloop.learners.crossing import for_rows, latin_folds, penalties, quiet, within
from tests.facts import facts

LOG = movie_lovers(users=30, items=20).observe(1)


@pytest.mark.parametrize("K", [2, 4, 7])
def test_every_cell_has_a_fold_and_folds_are_of_equal_size(K):
    folds = latin_folds("it", LOG, K, 0)
    u, i = np.indices((30, 20)).reshape(2, -1)
    counts = np.bincount(folds.of(u, i), minlength=K)
    assert counts.sum() == 600
    assert counts.max() - counts.min() <= 30 // K + 20 // K + 1


def test_the_items_of_a_fold_are_one_group_for_each_group_of_users():
    folds = latin_folds("it", LOG, 4, 0)
    u, i = np.indices((30, 20)).reshape(2, -1)
    for k in range(4):
        mine = folds.of(u, i) == k
        for group in range(4):
            items = folds.of_item[i[mine & (folds.of_user[u] == group)]]
            assert set(items.tolist()) == {folds.item_group(k, group)}


def test_the_seed_decides():
    one, same, other = (latin_folds("it", LOG, 4, seed) for seed in (0, 0, 1))
    np.testing.assert_array_equal(one.of_user, same.of_user)
    assert not np.array_equal(one.of_user, other.of_user)


@pytest.mark.parametrize("folds", [1, 0, -1, 2.5, "4", None, True, 101])
def test_a_number_of_folds_that_makes_no_sense_is_refused(folds):
    with pytest.raises(InputError, match=facts("it", "folds", repr(folds))):
        latin_folds("it", LOG, folds, 0)


def test_rows_of_a_single_cell_leave_nothing_to_learn_from():
    lonely = Feedback.from_arrays([0], [0], [3.0], users=1, items=1)
    with pytest.raises(InputError, match=facts("it", "1 rows", "4 folds")):
        latin_folds("it", lonely, 4, 0)


def test_penalties_beside_a_row_sum_are_scaled_at_every_depth():
    stack = Stack([MF(reg=4.0), (Recalibrated(MF(reg=2.0, bias_reg=0.0)), 0.5), WMF(reg=3.0)], reg=8.0)
    half = for_rows(stack, 0.5, final="folds")
    assert (half.reg, half.final) == (4.0, "folds")
    assert half.bases[0].reg == 2.0
    inner = half.bases[1][0].model
    assert (inner.reg, inner.bias_reg) == (1.0, 0.0)
    assert half.bases[2].reg == 3.0  # beside a sum over all cells
    assert (stack.reg, stack.bases[0].reg) == (8.0, 4.0)  # the original stays


def test_quiet_reaches_the_learners_within():
    loud = Stack([MF(progress=True, threads=2), Exposure()], progress=True)
    still = quiet(loud)
    assert not still.progress
    assert (still.bases[0].progress, still.bases[0].threads) == (False, 1)
    assert loud.bases[0].progress


def test_within_finds_all():
    kinds = [type(one).__name__ for one in within(Stack([MF(), (Recalibrated(WMF()), 0.5)]))]
    assert kinds == ["MF", "Recalibrated", "WMF"]


def test_names_that_are_no_parameters_are_refused():
    class Odd(MF):
        penalties_beside_row_sum = ("regg",)

    with pytest.raises(InputError, match=facts("Odd.penalties_beside_row_sum", "regg")):
        penalties(Odd())
