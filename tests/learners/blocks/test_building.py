from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from openloop.errors import DuplicateError, InputError, UnknownIdError
from openloop.kernels.least_squares import Rows
from openloop.learners.blocks.building import compressed, lists, taken, total_facts
from tests.facts import facts


def rows(order):
    user, item = np.array([0, 0, 1, 3, 3, 3])[order], np.array([2, 5, 1, 0, 4, 5])[order]
    y, w = np.arange(6.0)[order], np.array([0.1, 0.2, 0.3, 1e-8, 0.5, 1.0])[order]
    return user, 4, item, y, w


def test_the_order_of_arrival_changes_no_bit():
    first, known = compressed(*rows(np.arange(6)))
    for seed in range(5):
        again, same = compressed(*rows(np.random.default_rng(seed).permutation(6)))
        assert same == known
        assert all(np.array_equal(getattr(again, name), getattr(first, name)) for name in ("ptr", "partner", "y", "w"))
    assert first.ptr.tolist() == [0, 2, 3, 3, 6]
    assert first.partner.tolist() == [2, 5, 1, 0, 4, 5]


def test_facts_by_hand():
    _, known = compressed(np.array([0, 1]), 2, np.array([0, 0]), np.array([4.0, 2.0]), np.array([1.0, 0.5]))
    assert (known.rows, known.users, known.weight, known.ratings, known.squares) == (2, 2, 1.5, 5.0, 1.25)
    assert (known.scale, known.mean) == (2 / 1.5, 5 / 1.5)
    both = total_facts([known, known])
    assert (both.rows, both.scale, both.mean) == (4, known.scale, known.mean)
    assert known.effective == 1.5**2 / 1.25


def test_what_no_model_can_be_fitted_to_is_refused():
    item, y, w = np.array([1, 1, -1]), np.ones(3), np.array([1.0, 1.0, 0.0])
    _, known = compressed(np.zeros(3, int), 1, item, y, w)
    assert (known.repeats, known.unknown, known.lost) == (1, 1, 1)
    with pytest.raises(UnknownIdError, match=facts("MF", 1, 3)):  # items that are not known all have one code
        known.check("MF")
    with pytest.raises(DuplicateError, match=facts("MF", 1, 3)):
        replace(known, unknown=0).check("MF")
    with pytest.raises(InputError, match=facts("sample_weight", 1, 3)):
        replace(known, repeats=0, unknown=0).check("MF")
    replace(known, repeats=0, unknown=0, lost=0).check("MF")


def test_lists_ascend_and_repeats_are_counted():
    ptr, item, repeats = lists(np.array([2, 0, 2, 2]), 3, np.array([5, 1, 3, 5]))
    assert (ptr.tolist(), item.tolist(), repeats) == ([0, 1, 1, 4], [1, 3, 5, 5], 1)


def test_rows_of_some_users():
    whole = Rows(np.array([0, 2, 2, 5]), np.arange(5, dtype=np.int32), np.arange(5.0), np.arange(5.0))
    part = taken(whole, np.array([2, -1, 0, 1]))
    assert part.ptr.tolist() == [0, 3, 3, 5, 5]
    assert part.partner.tolist() == [2, 3, 4, 0, 1]
    assert taken(whole, np.array([], int)).ptr.tolist() == [0]
    nobody = Rows(np.array([0]), whole.partner[:0], whole.y[:0], whole.w[:0])
    assert taken(nobody, np.array([-1, -1])).ptr.tolist() == [0, 0, 0]
