"""An interval contains the numbers between its limits."""

from __future__ import annotations

import numpy as np
import pytest

from openloop.core.interval import Interval


@pytest.mark.parametrize(("value", "inside"), [(1, True), (1.5, True), (np.float32(2), True), (np.int64(3), False),
                                               (np.int64(2), True), (0.9, False), ("1", False)])  # fmt: skip
def test_an_interval_contains_what_lies_between_its_limits(value, inside):
    assert (value in Interval(1, 2)) is inside
