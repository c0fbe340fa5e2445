"""How far estimates err over draws, as points of a figure, as a table, and against each other: Figures 2 and 4."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from openloop.core.feedback import Floats
from openloop.studies.kit.results import Table
from openloop.studies.kit.statistics import half_width

LEVEL = 0.95  # of intervals
TIED = 4 / 3  # errors, or deviations, are tied where the interval of their ratio lies within 3/4 and 4/3
INTERVALS = (
    f"Claims compare estimators by the ratio of their RMSE over the same draws, with an interval of {LEVEL:.0%} for "
    "all ratios of a claim at once (Student's t, Bonferroni)."
)


def accuracy(estimates: Floats, truth: Floats) -> dict[str, float]:
    """RMSE of `estimates` (draws, models) against the truth (models,), with a 95 % interval over draws.

    Over draws the squared error, averaged over models, has mean s; with h half the width of its interval by Student's
    t, √s has the interval √s · exp(± h/2s) by the delta method on its logarithm, which keeps it above 0.
    """
    squares = _squares(estimates, truth)  # (draws,)
    s = float(squares.mean())
    if s == 0:
        return {"RMSE": 0.0, "low": 0.0, "high": 0.0}
    half = half_width(squares, LEVEL) / (2 * s)
    return {"RMSE": math.sqrt(s), "low": math.sqrt(s) * math.exp(-half), "high": math.sqrt(s) * math.exp(half)}


@dataclass(frozen=True, slots=True)
class Ratio:
    """The RMSE of one estimator by that of another, and an interval."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.3g} ({self.low:.3g} to {self.high:.3g})"


def ratio(a: Floats, b: Floats, truth: Floats, among: int = 1) -> Ratio:
    """RMSE(a) / RMSE(b), of the same draws, with a 95 % interval for `among` ratios at once (Bonferroni).

    With squared errors a_t and b_t over draws t, averaged over models, and their means A and B, the logarithm
    ½ log(A/B) has the standard error of the mean of ½ (a_t/A − b_t/B), by the delta method.
    """
    squares = [_squares(each, truth) for each in (a, b)]
    A, B = (float(each.mean()) for each in squares)
    spread = 0.5 * (squares[0] / A - squares[1] / B)  # (draws,)
    half = half_width(spread, 1 - (1 - LEVEL) / among)
    value = math.sqrt(A / B)
    return Ratio(value, value * math.exp(-half), value * math.exp(half))


def published_rmse(rows: Mapping[str, Mapping[str, Any]], estimator: str, draws: int) -> float:
    """The RMSE that printed means and deviations of models imply: √ of the mean of (mean − true)² + sd²(n − 1)/n."""
    squares = [
        (row[estimator][0] - row["true"]) ** 2 + row[estimator][1] ** 2 * (draws - 1) / draws for row in rows.values()
    ]
    return math.sqrt(sum(squares) / len(squares))


def point(estimates: Floats, truth: Floats, metric: str, estimator: str) -> dict[str, Any]:
    """A point of a figure."""
    return {"metric": metric, "estimator": estimator, **accuracy(estimates, truth)}


def rmse_table(name: str, caption: str, rows: Sequence[Mapping[str, Any]], x: str) -> Table:
    """RMSE of each metric and estimator, a column for each x."""
    places = list(dict.fromkeys(row[x] for row in rows))
    lines = list(dict.fromkeys((row["metric"], row["estimator"]) for row in rows))
    held = {(row["metric"], row["estimator"], row[x]): float(row["RMSE"]) for row in rows}
    cells = tuple(
        (f"{metric}, {estimator}", *(held[metric, estimator, p] for p in places)) for metric, estimator in lines
    )
    return Table(
        name=name, caption=caption, columns=("metric, estimator", *(f"{x} = {p:,}" for p in places)), rows=cells
    )


def _squares(estimates: Floats, truth: Floats) -> Floats:
    return np.square(estimates - truth).mean(axis=1)  # (draws,)
