from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from openloop.data.cells import first_of_each, mean_of_each, one_of_each, repeated, sort_cells, sum_of_each

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
    values = np.array([1, 2, 3, 7, 5, 1, 2], np.float32)
    assert mean_of_each(RUNS, values).tolist() == [1, 4, 5, 1.5]
    assert sum_of_each(RUNS, values).tolist() == [1, 12, 5, 3]


def test_one_of_each_by_hand():
    row = np.arange(7)[::-1]
    assert one_of_each(RUNS, row, None, last=False).tolist() == [0, 1, 4, 5]
    assert one_of_each(RUNS, row, None, last=True).tolist() == [0, 3, 4, 6]
    time = np.array([9, 3, 5, 1, 2, 3, 0])  # of rows 0 to 6; the cells' times are 0, 3 2 1, 5, 3 9
    assert one_of_each(RUNS, row, time, last=False).tolist() == [0, 3, 4, 5]
    assert one_of_each(RUNS, row, time, last=True).tolist() == [0, 1, 4, 6]


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2)), min_size=1, max_size=20), st.booleans())
def test_one_of_each_is_the_earliest_or_latest_row_of_its_cell(pairs, last):
    cells, time = np.array(pairs).T
    cell, row = sort_cells(cells)
    found = row[one_of_each(cell, row, time, last=last)]
    by = [(c, t, at) for at, (c, t) in enumerate(zip(cells.tolist(), time.tolist(), strict=True))]
    expected = [(max if last else min)(x for x in by if x[0] == c)[2] for c in sorted(set(cells.tolist()))]
    assert found.tolist() == expected


def test_one_cell():
    one = np.array([3])
    assert repeated(one).tolist() == []
    assert first_of_each(one).tolist() == one_of_each(one, np.array([0]), one, last=True).tolist() == [0]


@given(cells)
def test_runs_follow_unique(cell):
    ordered = np.sort(cell)
    unique, first, count = np.unique(ordered, return_index=True, return_counts=True)
    np.testing.assert_array_equal(first_of_each(ordered), first)
    np.testing.assert_array_equal(one_of_each(ordered, ordered, None, last=True), first + count - 1)
    np.testing.assert_array_equal(ordered[repeated(ordered)], unique[count > 1])
