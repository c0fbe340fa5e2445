"""Sums of products of weights and gains by stratum, which variances over cells are made of: one pass over rows.

Kernels know nothing about metrics or propensities: rows have a weight w, a factor c, a stratum and a gain δ.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from openloop.kernels.compiling import njit
from openloop.kernels.reweighting import summed

Floats = npt.NDArray[np.float64]
Array = npt.NDArray[Any]

FEW = 1024  # rows


class Weighted(NamedTuple):
    """Rows with weights w, factors c and strata."""

    factor: Floats  # (n,)
    weight: Floats  # (n,)
    stratum: npt.NDArray[np.int64]  # (n,)


def power_sums(rows: Weighted, delta: Floats, cap: float, strata: int) -> Floats:
    """Σ c·v·δ^b of each stratum, v = 1, w, w², min(w, cap)², and as the fifth Σ w·δ^b: (strata, 5, 3)."""

    def add(part: slice, sums: Floats) -> None:
        _add_powers(rows.factor[part], rows.weight[part], rows.stratum[part], delta[part], cap, sums)

    return summed(add, len(delta), (strata, 5, 3))


def power_sums_numpy(rows: Weighted, delta: Floats, cap: float, strata: int) -> Floats:
    """The definition."""
    c, w, stratum = rows
    columns = np.stack([c, c * w, c * w**2, c * np.minimum(w, cap) ** 2, w], axis=1)  # (n, 5)
    sums = np.zeros((strata, 5, 3))
    np.add.at(sums, stratum, columns[:, :, None] * delta[:, None, None] ** np.arange(3))
    return sums


@njit(cache=True, nogil=True)
def _add_powers(factor: Floats, weight: Floats, stratum: Array, delta: Floats, cap: float, sums: Floats) -> None:
    own = np.zeros_like(sums)  # of few rows at a time: a long sum loses digits
    for i in range(delta.size):
        c, w, d, into = factor[i], weight[i], delta[i], own[stratum[i]]
        cut = min(w, cap)
        for k, v in enumerate((c, c * w, c * w * w, c * cut * cut, w)):
            into[k, 0] += v
            into[k, 1] += v * d
            into[k, 2] += v * d * d
        if (i + 1) % FEW == 0 or i + 1 == delta.size:
            sums += own
            own[:] = 0.0
