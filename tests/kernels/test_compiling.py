"""Sums in vector lanes keep the meaning of NaN and infinity."""

from __future__ import annotations

import numpy as np
import pytest
from numba import njit

from openloop.kernels.compiling import SUMMING, inlined


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
