"""How far weights may be off before the order of two models reverses: Γ*, ρ* and κ* with limits, from sums."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from openloop.audits.contrasts import Contrast, moves_with_weights
from openloop.audits.results import Curve
from openloop.core.comparison import Comparison
from openloop.core.feedback import Floats
from openloop.core.tilts import Against, Tilts
from openloop.estimators.sensitivity import critical_gamma
from openloop.estimators.tilting import Jackknife, differences, gamma_limit, turning

# Whose contrasts a tilt belongs to: that of ratings to weighted means, that of popularity to logs without propensities.
TILTED: Mapping[Against, str] = {"rho": "snips", "kappa": "naive"}


def with_limits(result: Comparison, found: Sequence[Contrast]) -> tuple[Contrast, ...]:
    """Contrasts with Γ*₉₅, ρ* and κ*, where the comparison has the sums for them."""
    return tuple(_with_limits(result, c) for c in found)


def _with_limits(result: Comparison, c: Contrast) -> Contrast:
    tilts = result.tilts.get(c.metric)
    if tilts is None or c.value == 0 or not math.isfinite(c.low):
        return c
    known: dict[str, Any] = {}
    parts = tilts.parts_of(c.a, c.b)
    if parts is not None and (c.low > 0 or c.high < 0) and moves_with_weights(c.estimator):
        known["gamma"] = critical_gamma(*parts.sum(axis=0)) if c.gamma is None else c.gamma
        known["gamma_low"] = gamma_limit(parts, result.level, c.df)
    for against in TILTED:
        curve = tilted_curve(result, tilts, c, against)
        if curve is not None:
            known |= {against: curve.turns, f"{against}_low": curve.turns_low}
    return replace(c, **known)


def tilted_curves(result: Comparison, found: Sequence[Contrast]) -> tuple[Curve, ...]:
    """The differences of all pairs, with their intervals, against ρ or κ."""
    known = [(c, result.tilts[c.metric]) for c in found if c.metric in result.tilts]
    made = [tilted_curve(result, tilts, c, against) for against in TILTED for c, tilts in known]
    return tuple(curve for curve in made if curve is not None)


def tilted_curve(result: Comparison, tilts: Tilts, c: Contrast, against: Against) -> Curve | None:
    """a − b of the weighted means over rows at each point of a grid, and where it turns; None without such a tilt.

    It turns at the first point where its sign is not the contrast's. Beside a mean over users κ tilts the pooled
    one, which may have the other sign from the start: then it turns there.
    """
    sums = tilts.against(against)
    if sums is None or c.estimator != TILTED[against]:
        return None
    found = differences(tilts.gains(sums, c.a, c.b))
    low, high = _limits(found, result.level)
    nearer = low if c.value > 0 else high
    return Curve(
        metric=c.metric, estimator=c.estimator, a=c.a, b=c.b, against=against, at=sums.grid,
        value=tuple(found.value.tolist()), low=tuple(low.tolist()), high=tuple(high.tolist()),
        turns=turning(sums.grid, found.value, c.value), turns_low=turning(sums.grid, nearer, c.value),
    )  # fmt: skip


def _limits(found: Jackknife, level: float) -> tuple[Floats, Floats]:
    margin = np.nan_to_num(found.margin(level), nan=np.inf)
    return found.value - margin, found.value + margin
