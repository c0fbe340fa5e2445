"""The table of a selection: a line for each candidate with its parameters, value and folds, and the best."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce
from operator import add
from typing import Any

import numpy as np
import polars as pl

from openloop.core.estimate import Estimate
from openloop.core.metric import Metric
from openloop.errors import UndefinedError
from openloop.selection.candidates import Candidate, parameters_of
from openloop.support.wording import one_line

Outcome = Estimate | str  # a fold's value, or why there is none
WIDE = 100  # characters of a parameter that is neither a number nor text


def table_of(candidates: Sequence[Candidate], found: Sequence[Sequence[Outcome]]) -> pl.DataFrame:
    """The lines of all candidates; `found` has the folds of each."""
    kinds = [] if candidates[0].kind is None else [pl.Series("learner", [each.kind for each in candidates])]
    params = [each.learner.get_params() for each in candidates]
    settings = [
        pl.Series(name, _alike([one_line(of.get(name), WIDE) for of in params]), strict=False)
        for name in parameters_of(candidates)
    ]
    lines = [_line(folds) for folds in found]
    schema = {name: pl.String if name == "problem" else pl.Float64 for name in lines[0]}
    return pl.DataFrame([*kinds, *settings, *pl.DataFrame(lines, schema=schema)])


def best_of(table: pl.DataFrame, metric: Metric) -> int:
    """The place of the best value; the first of equals."""
    values = table["value"].to_numpy()  # null is nan
    if np.isnan(values).all():
        raise UndefinedError(f"select: no setting can be fitted; the first says: {table['problem'][0]}")
    return int(np.nanargmin(values) if metric.better == "lower" else np.nanargmax(values))


def marked(table: pl.DataFrame, best: int) -> pl.DataFrame:
    """The table with the column that says which line is the best."""
    column = pl.Series("best", np.arange(len(table)) == best)
    return table.insert_column(table.columns.index("problem"), column)


def _line(folds: Sequence[Outcome]) -> dict[str, Any]:
    values = [fold.value if isinstance(fold, Estimate) else None for fold in folds]
    problem = next((fold for fold in folds if isinstance(fold, str)), None)
    mean = None if problem is not None else _mean([fold for fold in folds if isinstance(fold, Estimate)])
    return {
        "value": None if mean is None else mean.value,
        "stderr": None if mean is None or not math.isfinite(mean.stderr) else mean.stderr,
        **{f"fold_{f}": value for f, value in enumerate(values, 1)}, "problem": problem,
    }  # fmt: skip


def _mean(folds: Sequence[Estimate]) -> Estimate:
    return reduce(add, folds) * (1 / len(folds))


# -- parameters ----------------------------------------------------------------------------------------------


def _alike(values: list[Any]) -> list[Any]:
    """Values of one type: learners may mean a number and a word by the same name."""
    types = {float if type(value) is int else type(value) for value in values if value is not None}
    return values if len(types) <= 1 else [None if value is None else str(value) for value in values]
