"""Where a difference changes its sign as weights are tilted: Γ* with its limit, curves against ρ and κ.

The sums come by clusters of users, T = Σ_c x_c; a jackknife leaves each cluster out in turn.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from openloop.core.feedback import Floats
from openloop.core.totals import freedom
from openloop.estimators.sensitivity import MAX_GAMMA, log_gamma

UNSEEN = -math.log(0.025)  # 3.69: with fewer such clusters expected, one in forty samples has none


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Jackknife:
    """Values with their standard errors and degrees of freedom, each (...,)."""

    value: Floats
    stderr: Floats
    df: Floats

    @classmethod
    def of(cls, value: Any, without: Floats, mass: Floats) -> Jackknife:
        """From the values without each of m clusters (m, ...), whose weights are `mass` (m, ...).

        se² = (m−1)/m · Σ(f(T − x_c) − f(T))²; df are those of `Estimate`, with f(T − x_c) − f(T) in the place of ψ.
        """
        m, off = len(without), without - value
        squares, fourths = np.square(off).sum(axis=0), (off**4).sum(axis=0)
        with np.errstate(divide="ignore", invalid="ignore"):
            effective = np.where(fourths > 0, squares**2 / fourths, np.inf)
        df = freedom(m, effective, mass.sum(axis=0) ** 2 / np.square(mass).sum(axis=0))
        return cls(value=np.asarray(value), stderr=np.sqrt((m - 1) / m * squares), df=df)

    def margin(self, level: float) -> Floats:
        """How far the interval reaches to either side."""
        from scipy.special import stdtrit

        return stdtrit(self.df, (1 + level) / 2) * self.stderr


def gamma_limit(parts: Floats, level: float = 0.95, df: float = math.inf) -> float:
    """Γ*₉₅ = Γ*·exp(−t·se(log Γ*)), at least 1; `parts` are D, A and B by cluster (m, 3), t has at most `df`.

    The error of log Γ* is the jackknife's: with few negative rows it is the better one (the truth at Γ₀ = 66, 40 users:
    P(Γ*₉₅ > Γ₀) was .022, with the influence .054, by inverting the interval of the least difference .20). Where some
    cluster has all rows of one sign, Γ* without it is infinite. Then B counts as if 3.69 more clusters had A's mean
    in it: fewer would go unseen in one sample of forty.
    """
    scored = parts[np.any(parts != 0, axis=1)]
    if len(scored) < 2:
        return 1.0
    total = scored.sum(axis=0)
    total, scored = _leading(total, scored)
    without = log_gamma(total - scored)
    if not np.isfinite(without).all() or log_gamma(total) > math.log(MAX_GAMMA):
        unseen = total + np.array([0.0, 0.0, UNSEEN * total[1] / len(scored)])
        return _at_least_one(float(log_gamma(unseen)))
    log = Jackknife.of(log_gamma(total), without, np.abs(scored).sum(axis=1))
    margin = replace(log, df=np.minimum(log.df, df)).margin(level)
    return _at_least_one(float(log.value - margin))


def _leading(total: Floats, parts: Floats) -> tuple[Floats, Floats]:
    """D, A and B of the difference that is positive."""
    if total[0] + total[1] - total[2] >= 0:
        return total, parts
    swapped = np.array([-1.0, 1.0, 1.0])
    return total[[0, 2, 1]] * swapped, parts[:, [0, 2, 1]] * swapped


def _at_least_one(log: float) -> float:
    return math.exp(max(0.0, log)) if log < math.log(MAX_GAMMA) else math.inf


def differences(sums: Floats) -> Jackknife:
    """Σwδ_a/Σw − Σwδ_b/Σw at each grid point, from Σw, Σwδ_a and Σwδ_b by cluster (m, 3, G)."""
    scored = sums[np.any(sums[:, 0] > 0, axis=1)]
    total = scored.sum(axis=0)
    if len(scored) < 2:
        none = np.full(total.shape[1], np.nan)
        return Jackknife(value=_difference(total), stderr=none, df=np.ones_like(none))
    return Jackknife.of(_difference(total), _difference(total - scored), scored[:, 0])


def _difference(totals: Any) -> Any:
    return (totals[..., 1, :] - totals[..., 2, :]) / totals[..., 0, :]


def turning(grid: npt.ArrayLike, values: npt.ArrayLike, sign: float) -> float:
    """Where values first lose that sign, on a cubic spline through the grid; ∞ where they keep it at every point.

    A straight line between points of a curve that flattens turns too late: by 2 % of ρ*, a spline by 0.1 %.
    """
    from scipy.interpolate import CubicSpline

    points, ahead = np.asarray(grid, np.float64), np.asarray(values, np.float64) * np.sign(sign)
    beyond = np.flatnonzero(~(ahead > 0))
    if not len(beyond):
        return math.inf
    k = int(beyond[0])
    if k == 0:
        return float(points[0])
    if ahead[k] == 0:
        return float(points[k])
    roots: Floats = CubicSpline(points, ahead).roots(extrapolate=False)
    return float(roots[(roots >= points[k - 1]) & (roots <= points[k])][0])
