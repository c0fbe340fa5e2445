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
