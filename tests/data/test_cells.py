from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from openloop.data.cells import first_of_each, last_of_each, mean_of_each, repeated, sort_cells

cells = st.lists(st.integers(0, 9) | st.integers(0, 2**62), min_size=1, max_size=40).map(np.array)

RUNS = np.array([2, 4, 4, 4, 7, 8, 8])


@given(cells)
def test_sorting_is_the_stable_one(cell):
    ordered, rows = sort_cells(cell)
    np.testing.assert_array_equal(rows, np.argsort(cell, kind="stable"))
    np.testing.assert_array_equal(ordered, np.sort(cell))


def test_runs_by_hand():
    assert repeated(RUNS).tolist() == [1, 5]
    assert first_of_each(RUNS).tolist() == [0, 1, 4, 5]
    assert last_of_each(RUNS).tolist() == [0, 3, 4, 6]
    values = np.array([1, 2, 3, 7, 5, 1, 2], np.float32)
    assert mean_of_each(RUNS, values).tolist() == [1, 4, 5, 1.5]


def test_one_cell():
    one = np.array([3])
    assert repeated(one).tolist() == []
    assert first_of_each(one).tolist() == last_of_each(one).tolist() == [0]


@given(cells)
def test_runs_follow_unique(cell):
    ordered = np.sort(cell)
    unique, first, count = np.unique(ordered, return_index=True, return_counts=True)
    np.testing.assert_array_equal(first_of_each(ordered), first)
    np.testing.assert_array_equal(last_of_each(ordered), first + count - 1)
    np.testing.assert_array_equal(ordered[repeated(ordered)], unique[count > 1])
