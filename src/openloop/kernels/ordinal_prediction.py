"""Chances of levels under the ordinal factor model, averaged over draws of its parameters.

Kernels know nothing about chains: draws are arrays, those of a user or item side by side in memory.
"""

from __future__ import annotations

import math
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from openloop.kernels.compiling import fix, njit
from openloop.kernels.parts import each_part, row_parts
from openloop.kernels.streams import normal_cdf

Array = npt.NDArray[Any]
Floats = npt.NDArray[np.float64]
Singles = npt.NDArray[np.float32]

PART = 256  # cells of a thread at a time: with hundreds of draws, milliseconds


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OrdinalDraws:
    """S draws of everything that the chance of a level depends on."""

    u: Singles  # (U, S, d)
    v: Singles  # (I, S, d)
    user_scale: Singles  # (U, S)
    item_scale: Singles  # (I, S)
    b: Singles  # (S, L - 1)

    def __post_init__(self) -> None:
        fix(self, "u", "v", "user_scale", "item_scale", "b")


def level_chances(draws: OrdinalDraws, user: Array, item: Array, pool: Executor) -> Floats:
    """P(level l) of each cell, (n, L): the mean of Φ((b_{l+1} - m)/s) - Φ((b_l - m)/s) over the draws."""
    below = np.empty((len(user), draws.b.shape[1]))  # P(level ≤ l)
    given = (draws.u, draws.v, draws.user_scale, draws.item_scale, draws.b)
    parts = row_parts(len(user), PART)
    each_part(lambda first, last: _chances_below(first, last, user, item, *given, below), parts, pool)
    return _differences(below)


def _differences(below: Floats) -> Floats:
    return np.diff(below, axis=1, prepend=0.0, append=1.0)


@njit(cache=True, nogil=True)
def _chances_below(
    first: int, last: int, user: Array, item: Array, u: Singles, v: Singles, user_scale: Singles, item_scale: Singles,
    b: Singles, out: Floats,
) -> None:  # fmt: skip
    S, d = u.shape[1], u.shape[2]
    for r in range(first, last):
        i, j = user[r], item[r]
        out[r] = 0.0
        for k in range(S):
            m = 0.0
            for f in range(d):
                m += np.float64(u[i, k, f]) * np.float64(v[j, k, f])
            s = math.sqrt(np.float64(user_scale[i, k]) * np.float64(item_scale[j, k]))
            for l in range(b.shape[1]):
                out[r, l] += normal_cdf((b[k, l] - m) / s)
        for l in range(b.shape[1]):
            out[r, l] /= S
