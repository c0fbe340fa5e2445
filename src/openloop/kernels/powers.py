"""Sums of products of weights and gains by part and stratum, which variances over cells are made of: one pass.

Kernels know nothing about metrics or propensities: rows have a weight w, a factor c, a stratum and a gain δ.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from openloop.kernels.compiling import fixed, njit

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

FEW = 1024  # rows


class Weighted(NamedTuple):
    """Rows with weights w, factors c and strata."""

    factor: Floats  # (n,)
    weight: Floats  # (n,)
    stratum: npt.NDArray[np.int64]  # (n,)


def power_sums(rows: Weighted, delta: Floats, cap: float, strata: int, start: Ints) -> Floats:
    """Σ c·v·δ^b of each part and stratum, v = 1, w, w², min(w, cap)², and as the fifth Σ w·δ^b: (parts, strata, 5, 3).

    Rows of part k are start[k] : start[k + 1].
    """
    sums = np.zeros((len(start) - 1, strata, 5, 3))
    _add_powers(*fixed(*rows, delta), cap, *fixed(start), sums)
    return sums


@njit(cache=True, nogil=True)
def _add_powers(
    factor: Floats, weight: Floats, stratum: Ints, delta: Floats, cap: float, start: Ints, sums: Floats
) -> None:
    few = np.zeros(sums.shape[1:])  # of few rows at a time: a long sum loses digits
    for part in range(len(start) - 1):
        for i in range(start[part], start[part + 1]):
            c, w, d, into = factor[i], weight[i], delta[i], few[stratum[i]]
            cut = min(w, cap)
            for k, v in enumerate((c, c * w, c * w * w, c * cut * cut, w)):
                into[k, 0] += v
                into[k, 1] += v * d
                into[k, 2] += v * d * d
            if (i + 1 - start[part]) % FEW == 0 or i + 1 == start[part + 1]:
                sums[part] += few
                few[:] = 0.0
