"""Hash tables and sorting by counting against plain definitions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from openloop.kernels.joining import find, match, meet, order_of_pairs, slots_of

CELLS = st.lists(st.integers(-1, 12) | st.integers(2**62, 2**62 + 3), max_size=30)


@given(CELLS, CELLS)
def test_a_match_or_a_meeting_is_the_first_place_of_a_cell(table, rows):
    place, repeats = match(np.array(table, np.int64), np.array(rows, np.int64))
    assert place.tolist() == [table.index(cell) if cell >= 0 and cell in table else -1 for cell in rows]
    rising = np.sort(np.array(table, np.int64))
    places = meet(rising, np.sort(np.array(rows, np.int64)))
    assert places.tolist() == [rising.tolist().index(cell) if cell in table else -1 for cell in sorted(rows)]
    assert repeats.tolist() == [j for j, cell in enumerate(table) if cell >= 0 and cell in table[:j]]


@given(st.lists(st.integers(-(2**63), 2**63 - 1), unique=True, max_size=30), st.lists(st.integers(-3, 3)))
def test_any_integers_are_found(table, rows):
    numbers, rows = np.array(table, np.int64), [*table, *rows]
    place = find(slots_of(numbers), numbers, np.array(rows, np.int64))
    assert place.tolist() == [table.index(number) if number in table else -1 for number in rows]


@pytest.mark.parametrize("n", [0, 1, 1000])
def test_counting_sorts_as_sorting_does(n):
    rng = np.random.default_rng(n)
    user, item = (rng.integers(-1, size, n).astype(np.int32) for size in (7, 30))
    known = np.flatnonzero((user >= 0) & (item >= 0))
    expected = known[np.lexsort((item[known], user[known]))]
    assert order_of_pairs(user, item, 7, 30).tolist() == expected.tolist()
