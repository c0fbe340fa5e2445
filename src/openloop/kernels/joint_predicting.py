"""What draws of a joint model say about cells: the chances of their levels, and of their being observed.

Given that a cell is unobserved its rating is level l with chance P(l)(1 - p_l)/S, S = Σ_l P(l)(1 - p_l), in the letters
of `joint_cells`. Of an observed cell P(l) is the chance of another rating. Draws of a user or item lie side by side.
p_l is used as a weight 1/p_l, so its harmonic mean over draws is returned, whose inverse is the mean weight: the
inverse of the mean of p_l is too small a weight, the more so the less sure the draws are.
"""

from __future__ import annotations

import math
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from openloop.kernels.compiling import SUMMING, fixed, njit
from openloop.kernels.joint_cells import Array, Floats, fast_cdf
from openloop.kernels.parts import in_parts

Singles = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ObservingDraws:
    """S draws of what the chances to be observed are made of."""

    e: Singles  # (U, S, d′)
    f: Singles  # (I, S, d′)
    by_user: Singles  # λ, (U, S, L)
    by_item: Singles  # ψ, (I, S, L)

    @property
    def arrays(self) -> Any:
        """In the order of kernels, not to be written to."""
        return fixed(self.e, self.f, self.by_user, self.by_item)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Pairs:
    """Cells that are asked about: codes of users and items, and whether each was observed."""

    user: Array
    item: Array
    seen: Array


def posterior_chances(ratings: Any, observing: ObservingDraws, pairs: Pairs, pool: Executor) -> Floats:
    """The mean chance of each level of each cell, (n, L); `ratings` are `OrdinalDraws`."""
    out = np.zeros((len(pairs.user), ratings.b.shape[1] + 1))
    given = fixed(pairs.user, pairs.item, pairs.seen, ratings.u, ratings.v, ratings.user_scale, ratings.item_scale)
    b = fixed(ratings.b.astype(np.float64))
    _spread(
        out, lambda first, last: _chances(first, last, out, *given, *b, *observing.arrays), pool, ratings.u.shape[1]
    )
    return out / ratings.u.shape[1]


def posterior_observed(observing: ObservingDraws, pairs: Pairs, pool: Executor) -> Floats:
    """The harmonic mean of P(observed | level) of each cell, (n, L): 1/p_l = 1 + exp(-x) with the logit x."""
    out = np.zeros((len(pairs.user), observing.by_user.shape[2]))
    given = fixed(pairs.user, pairs.item)
    S = observing.e.shape[1]
    _spread(out, lambda first, last: _inverse_odds(first, last, out, *given, *observing.arrays), pool, S)
    return 1 / (1 + out / S)


def _spread(out: Floats, work: Any, pool: Executor, draws: int) -> None:
    """Rows in parts of about equally much work."""
    in_parts(np.arange(len(out) + 1) * draws, work, pool)


@njit(nogil=True, cache=True, fastmath=SUMMING)
def _chances(
    first: int, last: int, out: Floats, user: Array, item: Array, seen: Array, u: Singles, v: Singles,
    user_scale: Singles, item_scale: Singles, b: Floats, e: Singles, f: Singles, by_user: Singles, by_item: Singles,
) -> None:  # fmt: skip
    chances = np.empty(b.shape[1] + 1)
    for r in range(first, last):
        i, j = user[r], item[r]
        for s in range(u.shape[1]):
            mean, common, below, total = 0.0, 0.0, 0.0, 1.0
            for k in range(u.shape[2]):
                mean += np.float64(u[i, s, k]) * np.float64(v[j, s, k])
            scale = 1 / math.sqrt(np.float64(user_scale[i, s]) * np.float64(item_scale[j, s]))
            for l in range(b.shape[1]):
                upto = fast_cdf((b[s, l] - mean) * scale)
                chances[l], below = upto - below, upto
            chances[-1] = 1 - below
            if not seen[r]:
                for k in range(e.shape[2]):
                    common += np.float64(e[i, s, k]) * np.float64(f[j, s, k])
                total = 0.0
                for l in range(chances.size):
                    chances[l] /= 1 + math.exp(common + by_user[i, s, l] + by_item[j, s, l])
                    total += chances[l]
            for l in range(chances.size):
                out[r, l] += chances[l] / total


@njit(nogil=True, cache=True, fastmath=SUMMING)
def _inverse_odds(
    first: int, last: int, out: Floats, user: Array, item: Array, e: Singles, f: Singles, by_user: Singles,
    by_item: Singles,
) -> None:  # fmt: skip
    for r in range(first, last):
        i, j = user[r], item[r]
        for s in range(e.shape[1]):
            common = 0.0
            for k in range(e.shape[2]):
                common += np.float64(e[i, s, k]) * np.float64(f[j, s, k])
            for l in range(out.shape[1]):
                out[r, l] += math.exp(-common - by_user[i, s, l] - by_item[j, s, l])
