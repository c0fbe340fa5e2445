"""Discrete power law of counts: exponent by maximum likelihood, start of the tail by Kolmogorov-Smirnov.

Letters as in Clauset, Shalizi & Newman (2009), "Power-law distributions in empirical data": α, x_min, ζ.
"""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt

from openloop.core.feedback import Floats
from openloop.errors import InputError, UndefinedError

ALPHA_RANGE = (1.01, 20.0)
HALVINGS = 50  # of that range: α to 2e-14
EXACT_BELOW = 100  # from here on five terms of Euler-Maclaurin are exact to double precision for α ≤ 20

# B_2j / (2j)!, j = 1 … 5
_BERNOULLI = (1 / 12, -1 / 720, 1 / 30240, -1 / 1209600, 1 / 47900160)


@dataclass(frozen=True, slots=True, kw_only=True)
class PowerLaw:
    """P(x) = x^−α / ζ(α, x_min) for whole x ≥ x_min: `tail` counts, at `distance` (Kolmogorov-Smirnov)."""

    alpha: float
    x_min: int
    distance: float
    tail: int


def fit_power_law(counts: npt.ArrayLike, x_min: int | None = None) -> PowerLaw:
    """The discrete power law of the positive counts; counts that are not whole are rounded to at least 1.

    α maximises the likelihood of the counts ≥ x_min in [1.01, 20]; without `x_min` each distinct count but the
    largest is tried, and the one whose fit is nearest to the data is taken, the smallest of several.
    """
    x, n = _distinct(counts)  # (D,) each
    if x_min is not None:
        check_x_min("fit_power_law", x_min)
        n, x = n[x >= x_min], x[x >= x_min]
    if len(x) < 2:
        raise UndefinedError(
            f"fit_power_law: needs two different counts{'' if x_min is None else f' from x_min={x_min} on'}, got "
            f"{n.sum():,.0f} counts with {len(x)} different values; pass gamma= to set the exponent."
        )
    starts = x[:-1] if x_min is None else np.array([float(x_min)])  # (S,)
    tail = np.cumsum(n[::-1])[::-1]  # (D,): how many counts are ≥ x
    logs = np.cumsum((n * np.log(x))[::-1])[::-1]  # (D,): Σ log of them
    alpha = _maximum_likelihood((logs / tail)[: len(starts)] - np.log(starts), starts)  # (S,)
    distance = [_distance(x[s:], tail[s:], alpha[s], start) for s, start in enumerate(starts)]
    best = int(np.argmin(distance))
    return PowerLaw(
        alpha=float(alpha[best]), x_min=int(starts[best]), distance=float(distance[best]), tail=int(tail[best])
    )


def check_x_min(name: str, x_min: Any) -> None:
    """Refuse anything but a whole number from 1."""
    if isinstance(x_min, bool) or not isinstance(x_min, Real) or x_min < 1 or not float(x_min).is_integer():
        raise InputError(f"{name}: x_min must be a whole number from 1, got {x_min!r}; leave it out to estimate it.")


def _distinct(counts: npt.ArrayLike) -> tuple[Floats, Floats]:
    """The distinct positive counts, ascending, and how often each occurs."""
    values = np.asarray(counts, np.float64)
    if values.ndim != 1 or not bool(np.all(np.isfinite(values) & (values >= 0))):
        raise InputError(
            f"fit_power_law: counts must be a list of finite numbers from 0, got shape {values.shape} with "
            f"{np.sum(~np.isfinite(values) | (values < 0)):,} others; count rows per item."
        )
    x, n = np.unique(np.maximum(np.rint(values[values > 0]), 1.0), return_counts=True)
    return x, n.astype(np.float64)


def _maximum_likelihood(excess: Floats, x_min: Floats) -> Floats:
    """The α of each tail (S,), from the mean of log(x/x_min) in it."""

    # Eq. 3.5, as a loss per count: log ζ(α, x_min) + α·mean(log x), both relative to x_min^α
    def loss(alpha: Floats) -> Floats:
        return np.log(_scaled_zeta(alpha, x_min)) + alpha * excess

    low, high = (np.full(len(x_min), end) for end in ALPHA_RANGE)
    for _ in range(HALVINGS):
        alpha = (low + high) / 2
        # The loss is convex, so its slope says on which side the minimum lies. The step is small enough for its
        # curvature and large enough for rounding: α comes out right to about 1e-10.
        step = 1e-5 * (alpha - 1)
        rising = loss(alpha + step) > loss(alpha - step)
        low, high = np.where(rising, low, alpha), np.where(rising, alpha, high)
    return (low + high) / 2


def _distance(x: Floats, tail: Floats, alpha: float, x_min: float) -> float:
    """Kolmogorov-Smirnov: the largest difference between P(X ≥ x) of law and counts over all whole x ≥ x_min."""
    # P(X ≥ x) = ζ(α, x)/ζ(α, x_min); counts are constant between two distinct ones, where the law falls, so the
    # largest difference is at one of them or right after it.
    power = np.exp(-alpha * np.log(x / x_min))  # (T,)
    scale = _scaled_zeta(np.array([alpha]), np.array([x_min]))
    from_x, beyond_x = tail / tail[0], np.append(tail[1:], 0.0) / tail[0]
    law = power * _scaled_zeta(alpha, x) / scale
    return float(max(np.abs(law - from_x).max(), np.abs(law - power / scale - beyond_x).max()))


def _scaled_zeta(alpha: Floats | float, x: Floats) -> Floats:
    """x^α · ζ(α, x), with Hurwitz's ζ(α, x) = Σ_{k ≥ 0} (x + k)^−α; scaled it neither under- nor overflows."""
    from scipy.special import zeta

    # Euler-Maclaurin: x/(α−1) + 1/2 + Σ_j B_2j/(2j)! · α(α+1)…(α+2j−2) / x^(2j−1); ten times as fast as zeta.
    inverse = 1 / x
    square, series = inverse * inverse, np.zeros(1)
    for j in range(len(_BERNOULLI), 0, -1):
        factors = 1.0 if j == 1 else (alpha + 2 * j - 3) * (alpha + 2 * j - 2)
        series = factors * (_BERNOULLI[j - 1] + square * series)
    scaled = x / (alpha - 1) + 0.5 + alpha * inverse * series
    near = x < EXACT_BELOW
    a = np.broadcast_to(alpha, x.shape)[near]
    scaled[near] = x[near] ** a * zeta(a, x[near])
    return scaled
