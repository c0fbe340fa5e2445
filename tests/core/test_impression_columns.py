"""Columns of impressions: rows are sorted as a plain sort would, and a request has one value."""

from __future__ import annotations

import numpy as np
import pytest

from openloop.core.impression_columns import by_request, rows_in_order
from openloop.errors import InputError
from tests.facts import facts


@pytest.mark.parametrize("shift", [0, 2**31])
def test_order_is_that_of_a_plain_sort_even_of_numbers_too_large_to_pack(shift):
    rng = np.random.default_rng(0)
    request, position = rng.integers(50, size=300) + (shift << 20), rng.integers(1, 9, size=300)
    np.testing.assert_array_equal(rows_in_order(request, position), np.lexsort((position, request)))


def test_a_request_has_one_value():
    request = np.array([0, 0, 1])
    assert by_request({"request": request, "user": np.array([7, 7, 8])})["user"].tolist() == [7, 8]
    with pytest.raises(InputError, match=facts("user", "7", "9")):
        by_request({"request": request, "user": np.array([7, 9, 8])})
