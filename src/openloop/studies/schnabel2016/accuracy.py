"""How far estimates err over draws, as points of a figure and as a table: Figures 2 and 4."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from openloop.core.feedback import Floats
from openloop.studies.kit.results import Table

Z = 1.959964  # of a 95 % interval


def accuracy(estimates: Floats, truth: Floats) -> dict[str, float]:
    """RMSE of `estimates` (draws, models) against the truth (models,), with a 95 % interval over draws.

    Over draws t the squared error s_t, averaged over models, has mean s and standard error e; √s has the
    interval √s · exp(± z·e/2s) by the delta method on its logarithm, which keeps it above 0.
    """
    squares = np.square(estimates - truth).mean(axis=1)  # (draws,)
    s = float(squares.mean())
    if s == 0:
        return {"RMSE": 0.0, "low": 0.0, "high": 0.0}
    half = Z * float(squares.std(ddof=1)) / math.sqrt(len(squares)) / (2 * s)
    return {"RMSE": math.sqrt(s), "low": math.sqrt(s) * math.exp(-half), "high": math.sqrt(s) * math.exp(half)}


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
