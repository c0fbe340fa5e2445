"""Positions among sorted values, by one walk and by searches."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from openloop.kernels.merging import positions, positions_plain

VALUES = st.lists(st.integers(-5, 30), max_size=20)


@given(VALUES, VALUES)
def test_a_walk_finds_what_searches_find(ordered, wanted):
    ordered, wanted = np.sort(np.array(ordered, np.int64)), np.sort(np.array(wanted, np.int64))
    np.testing.assert_array_equal(positions(ordered, wanted), positions_plain(ordered, wanted))


def test_what_is_not_sorted_is_searched_for():
    ordered, wanted = np.array([2, 4, 6]), np.array([5, 1, 9, 4])
    assert positions(ordered, wanted).tolist() == [2, 0, 3, 1]


def test_nothing_stands_nowhere():
    empty = np.empty(0, np.int64)
    assert positions(empty, np.array([1, 2])).tolist() == [0, 0]
    assert positions(np.array([1]), empty).tolist() == []
