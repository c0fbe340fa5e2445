"""What draws of a joint model say about cells: the chances of their levels, and of their being observed.

Given that a cell is unobserved its rating is level l with chance P(l)(1 - p_l)/S, S = Σ_l P(l)(1 - p_l). Of an observed
cell P(l) is what another rating of it would be. Sums over draws are made draw by draw, in their order.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from openloop.kernels.cholesky import dot
from openloop.kernels.joint_cells import (
    Array,
    Floats,
    Observing,
    Pointers,
    Ratings,
    chances_numpy,
    in_parts,
    level_chances,
    observed_numpy,
    plain_odds,
    plain_ratings,
    summing,
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Pairs:
    """Cells that are asked about: codes of users and items, and whether each was observed."""

    user: Pointers
    item: Pointers
    seen: Array

    def __len__(self) -> int:
        return len(self.user)


def add_chances(ratings: Ratings, observing: Observing, pairs: Pairs, out: Floats) -> None:
    """Add the chances of levels by one draw to `out` (n, L)."""
    given = (pairs.user, pairs.item, pairs.seen, *plain_ratings(ratings), *plain_odds(observing))
    in_parts(np.arange(len(pairs) + 1), lambda first, last: _add_chances(first, last, *given, out))


@summing
def _add_chances(
    first: int, last: int, user: Pointers, item: Pointers, seen: Array, u: Floats, v: Floats, a: Floats, b: Floats,
    cuts: Floats, e: Floats, f: Floats, user_odds: Floats, item_odds: Floats, out: Floats,
) -> None:  # fmt: skip
    chances = np.empty(cuts.size + 1)
    for r in range(first, last):
        i, j = user[r], item[r]
        level_chances(u[i], v[j], a[i] * b[j], cuts, chances)
        total = 1.0
        if not seen[r]:
            odds, total = np.exp(dot(e[i], f[j])), 0.0
            for l in range(chances.size):
                chances[l] /= 1 + odds * user_odds[i, l] * item_odds[j, l]
                total += chances[l]
        for l in range(chances.size):
            out[r, l] += chances[l] / total


def add_observed(observing: Observing, pairs: Pairs, out: Floats) -> None:
    """Add P(observed | level) by one draw to `out` (n, L)."""
    given = (pairs.user, pairs.item, *plain_odds(observing))
    in_parts(np.arange(len(pairs) + 1), lambda first, last: _add_observed(first, last, *given, out))


@summing
def _add_observed(
    first: int, last: int, user: Pointers, item: Pointers, e: Floats, f: Floats, user_odds: Floats, item_odds: Floats,
    out: Floats,
) -> None:  # fmt: skip
    for r in range(first, last):
        i, j = user[r], item[r]
        common = np.exp(dot(e[i], f[j]))
        for l in range(out.shape[1]):
            odds = common * user_odds[i, l] * item_odds[j, l]
            out[r, l] += odds / (1 + odds)


def add_chances_numpy(ratings: Ratings, observing: Observing, pairs: Pairs, out: Floats) -> None:
    """The definition."""
    missing = np.where(pairs.seen[:, None], 1.0, 1 - observed_numpy(observing, pairs.user, pairs.item))
    chances = chances_numpy(ratings, pairs.user, pairs.item) * missing
    out += chances / chances.sum(axis=1, keepdims=True)


def add_observed_numpy(observing: Observing, pairs: Pairs, out: Floats) -> None:
    """The definition."""
    out += observed_numpy(observing, pairs.user, pairs.item)
