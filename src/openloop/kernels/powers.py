"""Sums of a column over runs of rows; and of products of weights and gains, which variances and bounds are made of.

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
    """Rows with weights w, of each the part a that propensities cannot move, factors c and strata."""

    factor: Floats  # (n,)
    weight: Floats  # (n,)
    certain: Floats  # (n,)
    stratum: npt.NDArray[np.int64]  # (n,)


@njit(cache=True, nogil=True)
def _add_runs(column: Floats, start: Ints, sums: Floats) -> None:
    for run in range(sums.size):
        total = 0.0
        for i in range(start[run], start[run + 1]):
            total += column[i]
        sums[run] = total


def run_sums(column: Floats, start: Ints) -> Floats:
    """Σ of a column over the rows start[k] : start[k + 1] of each run k."""
    sums = np.empty(len(start) - 1)
    _add_runs(*fixed(column, start), sums)
    return sums


def power_sums(rows: Weighted, delta: Floats, cap: float, strata: int, start: Ints) -> Floats:
    """Sums of each part and stratum, (parts, strata, 6, 3); rows of part k are start[k] : start[k + 1].

    Σ c·v·δ^b with v = 1, w, w² and min(w, cap)²; fifth Σ w·δ^b; and sixth Σ aδ, Σ bδ₊ and Σ bδ₋ with b = w − a.
    """
    sums = np.zeros((len(start) - 1, strata, 6, 3))
    _add_powers(*fixed(*rows, delta), cap, *fixed(start), sums)
    return sums


@njit(cache=True, nogil=True)
def _add_powers(
    factor: Floats, weight: Floats, certain: Floats, stratum: Ints, delta: Floats, cap: float, start: Ints, sums: Floats
) -> None:
    few = np.zeros(sums.shape[1:])  # of few rows at a time: a long sum loses digits
    for part in range(len(start) - 1):
        for i in range(start[part], start[part + 1]):
            c, w, a, d, into = factor[i], weight[i], certain[i], delta[i], few[stratum[i]]
            cut, moving = min(w, cap), max(w - a, 0.0)
            for k, v in enumerate((c, c * w, c * w * w, c * cut * cut, w)):
                into[k, 0] += v
                into[k, 1] += v * d
                into[k, 2] += v * d * d
            into[5, 0] += a * d
            into[5, 1] += moving * max(d, 0.0)
            into[5, 2] += moving * max(-d, 0.0)
            if (i + 1 - start[part]) % FEW == 0 or i + 1 == start[part + 1]:
                sums[part] += few
                few[:] = 0.0
