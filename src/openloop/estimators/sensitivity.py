"""How far an estimate can move when every propensity may be off by up to Γ, either way.

A row's weight is w = a + bλ with λ ∈ [1/Γ, Γ] free per row, and w = a + b as it was estimated.
a is `certain`, the weight of a row with p = 1:
- 1: the odds of being observed are off by λ⁻¹, so p stays a probability. In a part of share s with an excluded part of
  share t, p is tilted and π = p·s/(1 − p·t) recomputed from it: a = (1 − t)/s, b = (1/p − 1)/s.
- 0: the weight is off by a factor, b = w. It is for p that have no scale.

These are the fractional programs of Zhao, Small & Bhattacharya 2019; bounds have each λ at Γ or 1/Γ. Only propensities
move: the rows, their relevance, the rankings and N stay. In nDCG's normaliser the order of the ideal stays as well;
see `user_ratio_bounds`.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from openloop.core.feedback import Array, Floats
from openloop.errors import UndefinedError
from openloop.kernels.tilting import TiltedRows, highest_means

MAX_GAMMA = 1e6  # the largest Γ that is tried: a difference that holds up to here has Γ* = ∞
TOLERANCE = 1e-6  # of Γ*, relative

Codes = npt.NDArray[np.integer]
Bounds = tuple[Floats, Floats]  # low and high, one for each Γ


class Tilt(NamedTuple):
    """The part of each row's weight that stays, a, and the part that moves, b."""

    fixed: Floats
    moving: Floats

    @classmethod
    def of(cls, weight: Floats, certain: Floats | float) -> Tilt:
        """a and b of weights; 1/π and (1 − t)/s are equal at p = 1 but for rounding."""
        fixed = np.broadcast_to(np.asarray(certain, np.float64), weight.shape)
        return cls(np.ascontiguousarray(fixed), np.maximum(weight - fixed, 0.0))


def log_gamma(parts: Any) -> Any:
    """log Γ* of D, A, B (..., 3), below 0 where the difference D + A − B is; analytic in each.

    With d = δ_A − δ_B, D = Σad, A = Σbd₊ and B = Σbd₋ the least difference is D + A/Γ − BΓ, which is 0 at
    Γ* = (D + √(D² + 4AB))/2B = 2A/(√(D² + 4AB) − D), the latter for D < 0. A negative difference has log Γ* < 0.
    """
    D, A, B = (parts[..., k] for k in range(3))
    root = np.sqrt(D * D + 4.0 * A * B)
    falling = (np.real(D) < 0) | ((np.real(D) == 0) & (np.real(A) > np.real(B)))  # at D = 0 the one without 0/0
    with np.errstate(divide="ignore", invalid="ignore"):
        log = np.log(np.where(falling, 2.0 * A, D + root)) - np.log(np.where(falling, root - D, 2.0 * B))
    return np.where(np.isnan(log), 0.0, log)  # 0/0: no difference at all


def critical_gamma(fixed: float, positive: float, negative: float) -> float:
    """Γ* of D, A, B, up to which the difference keeps its sign; ∞ where no reweighting of the rows could flip it."""
    size = abs(float(log_gamma(np.array([fixed, positive, negative]))))
    return math.exp(size) if size < math.log(MAX_GAMMA) else math.inf


def least_gamma(mass: Floats, effective: float, drawn: Floats, level: float = 0.95) -> float:
    """Γ_min: by how much weights must at least be off, as the weighted log lacks the ratings of a uniform sample.

    `mass` is Σw and `drawn` the sample's number of each rating (L,), rising; `effective` is the log's effective size.
    With s_r and π_r the shares of Y ≥ r in both, and se² = 1/(n₀π_r(1 − π_r)) + 1/(n_eff s_r(1 − s_r)),
    Γ_min = exp(½·max_r(|logit s_r − logit π_r| − z·se)₊): a factor Γ on each weight moves a share's odds by Γ² at most.
    z is two-sided, divided by the number of ratings.
    """
    from scipy.special import logit, ndtri

    n0 = float(drawn.sum())
    sizes = np.array([[effective], [n0]])
    at_least = np.stack([values[::-1].cumsum()[::-1][1:] / values.sum() for values in (mass, drawn)])  # (2, L − 1)
    share = (at_least * sizes + 0.5) / (sizes + 1)  # no share is 0 or 1
    error = np.sqrt((1 / (sizes * share * (1 - share))).sum(axis=0))
    z = float(ndtri(1 - (1 - level) / 2 / len(mass)))
    excess = np.abs(np.subtract(*logit(share))) - z * error
    return math.exp(max(0.0, float(excess.max(initial=0.0))) / 2)


def ratio_bounds(delta: Floats, weight: Floats, gammas: npt.ArrayLike, *, certain: Floats | float = 1.0) -> Bounds:
    """The least and the greatest Σwδ/Σw, exact; δ may be a difference.

    One sort of δ and its cumulated sums serve all Γ: the greatest has λ = Γ where δ exceeds it, 1/Γ elsewhere.
    """
    gamma, order = _gammas(gammas), np.argsort(delta)
    delta, tilt = delta[order], Tilt(*(part[order] for part in Tilt.of(weight, certain)))
    least, centre, greatest = delta[[0, len(delta) // 2, -1]]
    delta = delta - centre  # a constant becomes 0, whose bounds have no width
    reversed_tilt = Tilt(*(part[::-1] for part in tilt))
    low, high = -_highest(-delta[::-1], reversed_tilt, gamma), _highest(delta, tilt, gamma)
    # A mean of δ leaves its range by rounding only, and mse's must not be negative.
    return np.maximum(centre + low, least), np.minimum(centre + high, greatest)


def _highest(delta: Floats, tilt: Tilt, gamma: Floats) -> Floats:
    """max_λ Σwδ/Σw for rising δ, by Dinkelbach's iteration: θ rises until no threshold on δ betters it."""
    columns = [column for part in tilt for column in (part * delta, part)]
    # Sums from either end: as differences from the total, the few rows above a high threshold would drown in it.
    below = np.stack([np.append(0.0, np.cumsum(c)) for c in columns])  # (4, n + 1): aδ, a, bδ, b of the first j rows
    above = np.stack([np.append(0.0, np.cumsum(c[::-1]))[::-1] for c in columns])  # of the others
    theta = np.full(len(gamma), (above[0, 0] + above[2, 0]) / (above[1, 0] + above[3, 0]))
    while True:
        j = np.searchsorted(delta, theta, side="right")
        fixed = above[:2, j] + below[:2, j]
        top, bottom = fixed + gamma * above[2:, j] + below[2:, j] / gamma
        value = top / bottom
        if not bool(np.any(value > theta)):
            return theta
        theta = np.maximum(theta, value)


def ips_bounds(
    delta: Floats, weight: Floats, population: float, gammas: npt.ArrayLike, *, certain: Floats | float = 1.0
) -> Bounds:
    """The least and the greatest Σwδ/N, exact: (D + A/Γ − ΓB)/N and (D + ΓA − B/Γ)/N."""
    gamma, tilt = _gammas(gammas), Tilt.of(weight, certain)
    D, product = float(tilt.fixed @ delta) / population, tilt.moving * delta
    A, B = float(product[product > 0].sum()) / population, -float(product[product < 0].sum()) / population
    return D + A / gamma - gamma * B, D + gamma * A - B / gamma


def user_ratio_bounds(
    delta: Floats, weight: Floats, norm: Floats, user: Codes, gammas: npt.ArrayLike, *,
    most: float = math.inf, certain: Floats | float = 1.0,
) -> Bounds:  # fmt: skip
    """The mean over users of the least and of the greatest Σwδ/Σwn over S_u; rows sorted by user, n = `norm` ≥ 0.

    Exact for a held n: λ is free per row and no row has two users, so each user's linear-fractional program is
    solved alone, to the end. n = 1 is snips_user, where nothing is held. For nDCG n_i is the discount of the row's
    place in the falling order of w, while the ideal of the tilted weights has an order of its own, and is at least Σwn
    for every λ. So for one model both bounds are too high, if anything, and `most` = 1, which no nDCG and no difference
    of two exceeds, caps each user's. Against all vertices with the ideal recomputed (200 users of 1 to 8 rows, p
    from 0.25 to 1, nDCG@10, by ratio, Γ = 1.25, 1.5 and 2; in shares of the width): of one model the lower bound is
    4, 6 and 8 % too high, the upper 8, 16 and 25 %; of a difference the lower 0 and then 1 and 4 % too low, the upper
    3, 7 and 14 % too high. Γ* is then 1.504 where the vertices give 1.513; in six settings it was 0.6 to 2.8 % low.

    Users whose Σwn is 0 have no ratio and are left out.
    """
    gamma, (rows, start) = _gammas(gammas), _by_user(delta, Tilt.of(weight, certain), norm, user)
    lowest = -highest_means(rows._replace(delta=-rows.delta), start, gamma, most)
    return lowest, highest_means(rows, start, gamma, most)


def critical_gamma_users(
    delta: Floats, weight: Floats, norm: Floats, user: Codes, *,
    most: float = math.inf, certain: Floats | float = 1.0,
) -> float:  # fmt: skip
    """Γ*, up to which the mean over users of Σwδ/Σwn keeps its sign, by bisection of log Γ to 1e-6.

    The least mean falls as Γ grows (for a negative difference the greatest rises), so there is one crossing. 1 where
    the difference is 0; infinite where it holds at Γ = 1e6. The end of the last bracket at which the sign still holds
    is returned.
    """
    rows, start = _by_user(delta, Tilt.of(weight, certain), norm, user)
    # A user whose δ are all 0 has the ratio 0 under all weights, and there may be many.
    rows, start = _of_users(rows, start, np.logical_or.reduceat(rows.delta != 0, start[:-1]))
    value = float(highest_means(rows, start, np.ones(1))[0]) if len(start) > 1 else 0.0
    if value == 0:
        return 1.0
    against = rows._replace(delta=-rows.delta) if value > 0 else rows

    def holds(log_gamma: float) -> bool:
        return float(highest_means(against, start, np.exp([log_gamma]), most)[0]) < 0

    low, high = 0.0, math.log(MAX_GAMMA)
    if holds(high):
        return math.inf
    while high - low > TOLERANCE:
        middle = (low + high) / 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return math.exp(low)


def _by_user(delta: Floats, tilt: Tilt, norm: Floats, user: Codes) -> tuple[TiltedRows, Array]:
    """The rows for the kernel, sorted by user, and where each user's begin; users with Σwn = 0 are left out."""
    start = np.concatenate([[0], np.flatnonzero(np.diff(user)) + 1, [len(user)]])
    has_ratio = np.add.reduceat((tilt.fixed + tilt.moving) * norm, start[:-1]) > 0
    if not has_ratio.any():
        raise UndefinedError("bounds over users: no user has a norm above 0, so no ratio is defined.")
    rows = TiltedRows(*(np.ascontiguousarray(c, np.float64) for c in (delta, norm, *tilt)))
    return (rows, start) if has_ratio.all() else _of_users(rows, start, has_ratio)


def _of_users(rows: TiltedRows, start: Array, chosen: npt.NDArray[np.bool_]) -> tuple[TiltedRows, Array]:
    """The rows of some users, and where those of each begin."""
    sizes = np.diff(start)
    rows_chosen = np.repeat(chosen, sizes)
    return TiltedRows(*(column[rows_chosen] for column in rows)), np.append(0, np.cumsum(sizes[chosen]))


def _gammas(gammas: npt.ArrayLike) -> Floats:
    return np.atleast_1d(np.asarray(gammas, np.float64))
