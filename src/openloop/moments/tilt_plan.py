"""By how much rows are reweighted at each point of a grid: ρ for ratings, κ for popularity."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from openloop.core.feedback import Array, Floats
from openloop.core.metric import Metric
from openloop.core.tilts import Against
from openloop.propensity.solvers.calibration import FEWEST

RHOS = (1.0, 1.25, 1.5, 1.75, 2.0, 2.5, 3.0)
KAPPAS = (0.0, 0.25, 0.5, 0.75, 1.0)
GRIDS: dict[Against, tuple[float, ...]] = {"rho": RHOS, "kappa": KAPPAS}
STARS = 4.0  # ρ is per step of a scale of five stars, on any scale of the log
FEW = 10  # rows of the item below which n^−κ is shrunk


def tilted(metric: Metric) -> bool:
    """Whether the weighted mean of a metric is Σwδ/Σw over rows, so its sums under other weights are too."""
    return (metric.kind == "cell" and not metric.root) or metric.pooled


@dataclass(frozen=True, slots=True, kw_only=True)
class TiltPlan:
    """Which tilts a log can have, and what the reader should know about them."""

    against: tuple[Against, ...]
    raked: bool
    notes: tuple[str, ...] = ()


def planned(*, weighted: bool, span: tuple[float, float], positives: bool, by_items: bool, typical: float) -> TiltPlan:
    """ρ where rows are weighted and ratings differ, κ for unweighted positives; `typical`: rows of the median item.

    Propensities that were fitted to each item's rows have taken in what the mean rating does to them: only what differs
    within items is tilted then, so each item's Σw stays.
    """
    notes: list[str] = []
    if weighted:
        raked = by_items and typical >= FEWEST
        differ = span[0] < span[1]
        if by_items and differ and not raked:
            notes.append(f"ρ does not keep each item's Σw: {_few(typical, FEWEST)}")
        return TiltPlan(against=("rho",) if differ else (), raked=raked, notes=tuple(notes))
    if positives and typical < FEW:
        notes.append(f"κ is shrunk, so κ = 1 acts like less: {_few(typical, FEW)}")
    return TiltPlan(against=("kappa",) if positives else (), raked=False, notes=tuple(notes))


def _few(typical: float, enough: int) -> str:
    return f"the median row's item has {typical:g} rows in the whole log, under {enough}"


def place(rating: Any, span: tuple[float, float]) -> Any:
    """r = 4(Y − min)/(max − min): ρ is per star of five, on any scale."""
    return STARS * (rating - span[0]) / (span[1] - span[0])


def rating_factors(r: Floats) -> Floats:
    """ρ^−r of each r, (n, G)."""
    return np.exp(-r[:, None] * np.log(RHOS))


def popularity_factors(rows: Array) -> Floats:
    """n^−κ of items with n rows, (I, G)."""
    return np.exp(-np.log(np.maximum(rows, 1.0))[:, None] * np.array(KAPPAS))
