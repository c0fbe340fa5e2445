"""Sums in vector lanes keep the meaning of NaN and infinity, and arrays reach kernels as read-only views."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from numba import njit

from openloop.kernels.compiling import SUMMING, fix, inlined


@pytest.mark.parametrize(("values", "total"), [([1.0, np.nan], np.nan), ([np.inf, 1.0], np.inf), ([0.5, 0.25], 0.75)])
def test_sums_keep_nan_and_infinity(values, total):
    @inlined
    def twice(x):
        return 2 * x

    @njit(fastmath=SUMMING)
    def add(x):
        s = 0.0
        for v in x:
            s += twice(v)
        return s

    np.testing.assert_equal(add(np.array(values)), 2 * total)


@dataclass(frozen=True, slots=True)
class Record:
    x: np.ndarray
    y: np.ndarray


def test_fixed_arrays_are_views_that_cannot_be_written_to():
    record = Record(np.arange(3.0), np.arange(6.0).reshape(2, 3).T)
    x = record.x
    fix(record, "x", "y")
    assert np.shares_memory(record.x, x)
    assert x.flags.writeable
    assert record.y.flags.c_contiguous
    with pytest.raises(ValueError, match="read-only"):
        record.x[0] = 1
