"""`select`: the best setting of a learner, by cross-validation under propensities."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any, NamedTuple, cast

import numpy as np
import polars as pl
from threadpoolctl import threadpool_limits

from openloop.core.estimate import Estimate
from openloop.core.feedback import Feedback, check_feedback
from openloop.core.metric import Metric
from openloop.core.propensities import row_propensities
from openloop.data.splitting import folds as folds_of
from openloop.errors import InputError, OpenloopError, UndefinedError, did_you_mean, listing
from openloop.estimators.naming import Method
from openloop.evaluation import evaluate
from openloop.metrics.naming import metric as metric_named
from openloop.support.arguments import is_number, is_whole
from openloop.support.progress import progress as progress_bar

Setting = Mapping[str, Any]


class Selection(NamedTuple):
    """The winner, fitted on all rows, and a table with a line for each setting, in the order of the grid.

    The table has a column for each parameter, then `value` (the mean over folds of the validation estimate), `stderr`
    (over users), `fold_1` …, `best`, and `problem`: why a setting has no value.
    """

    model: Any
    table: pl.DataFrame

    @property
    def best(self) -> dict[str, Any]:
        """The winner's setting: the parameters of the grid."""
        names = self.table.columns[: self.table.columns.index("value")]
        return {name: self.model.get_params()[name] for name in names}


def select(
    learner: Any,
    feedback: Feedback,
    propensities: Any = None,
    *,
    grid: Mapping[str, Sequence[Any]] | Sequence[Setting],
    metric: str | Metric = "mse",
    estimator: str | Method | None = None,
    folds: int = 4,
    weighted: bool | None = None,
    threshold: float | None = None,
    threads: int | None = None,
    progress: bool = False,
    rng: int | np.random.Generator = 0,
) -> Selection:
    """Fit `learner` with every setting of the grid on every fold, and the best setting on all rows.

    `grid` maps parameters to the values to try, in all combinations, or lists settings. `propensities` are the rows'
    Propensities, a fitted propensity model, or None: the log's own. Where there are any, fits are `weighted` by 1/p
    and validated by the `estimator` "ips" (metrics of users by "snips", or "naive" where they have no other); else
    they are not, and validated by "naive". As in Schnabel et al. 2016, section 6.1, the training part of a fold
    observes a cell with probability p(k−1)/k and the validation part with p/k, and both are weighted so. There the
    rows weigh as much against λ in a fold as in the log: where a learner declares that λ stands beside a sum over rows
    (MF, Bias), a fold of n_f of n rows is fitted with λ·n_f/n. The grid, the table and the last fit have λ itself.
    Ranking metrics leave the training part out of the ranking. All settings see the same folds; `threads` fits run at
    once, each on one thread.
    """
    log = _with_propensities(feedback, propensities)
    use = log.propensity is not None if weighted is None else weighted
    if use and log.propensity is None:
        raise UndefinedError("select: weighted=True needs propensities; pass them, or read the log with their column.")
    settings, wanted = _settings(learner, grid), metric_named(metric)
    _penalties(learner)  # what is wrong about them is no problem of one setting
    how = _usual(wanted, log) if estimator is None else estimator

    def validated(train: Feedback, held_out: Feedback, setting: Setting) -> Estimate | str:
        try:
            in_fold = _for_rows(learner, setting, len(train) / len(log))
            model = _fitted(learner, {**in_fold, **_quiet(learner)}, train, weighted=use)
        except OpenloopError as error:
            return str(error)
        exclude = train if wanted.on == "rank" else None
        found = evaluate(
            {"model": model}, held_out, metrics=[wanted], estimators=[how], exclude=exclude, threshold=threshold
        )
        return next(iter(found.estimates.values()))

    found: list[Estimate | str] = []
    with (
        progress_bar("select", folds * len(settings), show=progress) as advance,
        threadpool_limits(1, "blas"),
        ThreadPoolExecutor(_workers(threads)) as pool,
    ):
        for part in folds_of(log, folds, rng):  # one fold at a time: each is a copy of the log
            for outcome in pool.map(partial(validated, *part), settings):
                found.append(outcome)
                advance(len(found), f"{len(settings)} settings × {folds} folds")
    table, best = _table(settings, [found[s :: len(settings)] for s in range(len(settings))], wanted)
    return Selection(_fitted(learner, settings[best], log, weighted=use), table)


def _usual(metric: Metric, log: Feedback) -> str:
    """The estimator by which a metric is validated if none is named."""
    if log.propensity is None:
        return "naive"
    return "ips" if metric.kind == "cell" else "snips" if metric.additive else "naive"


def _for_rows(learner: Any, setting: Setting, share: float) -> Setting:
    """The setting for a share of the rows: λ·share where the learner's penalties are beside a sum over rows."""
    # Section 6.1 does the same by dividing weights by (k−1)/k, which weights of mean 1 would undo.
    whole = {name: setting.get(name, learner.get_params(deep=False)[name]) for name in _penalties(learner)}
    scaled = {name: value * share for name, value in whole.items() if is_number(value) and value > 0}
    return {**setting, **scaled}


def _penalties(learner: Any) -> Sequence[str]:
    """The learner's parameters that are λ beside a sum over rows."""
    named, known = getattr(learner, "penalties_beside_row_sum", ()), learner.get_params(deep=False)
    if isinstance(named, str) or not set(named) <= set(known):
        raise InputError(
            f"select: {type(learner).__name__}.penalties_beside_row_sum must be a tuple of its parameters "
            f"{listing(list(known))}, got {named!r}; name some of these."
        )
    return named


def _fitted(learner: Any, setting: Setting, part: Feedback, *, weighted: bool) -> Any:
    """A fresh copy, fitted; the part observes a cell with probability p·s."""
    from sklearn.base import clone

    fresh: Any = clone(learner)
    fresh.set_params(**setting)
    if not weighted or part.propensity is None:
        return fresh.fit(part)
    return fresh.fit(part, sample_weight=1 / (part.propensity * (1.0 if part.share is None else part.share)))


def _quiet(learner: Any) -> dict[str, Any]:
    """One thread a fit, and no bar of its own."""
    return {name: value for name, value in (("threads", 1), ("progress", False)) if name in learner.get_params()}


def _workers(threads: Any) -> int:
    if threads is None:
        return os.cpu_count() or 1
    if not is_whole(threads) or threads < 1:
        raise InputError(f"select: threads must be a whole number from 1, got {threads!r}.")
    return int(threads)


def _table(settings: list[Setting], found: list[list[Estimate | str]], metric: Metric) -> tuple[pl.DataFrame, int]:
    """The lines of all settings, and the place of the best; the first of equals."""
    lines = [_line(setting, folds) for setting, folds in zip(settings, found, strict=True)]
    values = np.array([np.nan if line["value"] is None else line["value"] for line in lines])
    if np.isnan(values).all():
        raise UndefinedError(f"select: no setting can be fitted; the first says: {lines[0]['problem']}")
    best = int(np.nanargmin(values) if metric.better == "lower" else np.nanargmax(values))
    for place, line in enumerate(lines):
        line["best"] = place == best
    return pl.DataFrame(lines, infer_schema_length=None, schema_overrides={"problem": pl.String}), best


def _line(setting: Setting, folds: list[Estimate | str]) -> dict[str, Any]:
    values = [fold.value if isinstance(fold, Estimate) else None for fold in folds]
    problem = next((fold for fold in folds if isinstance(fold, str)), None)
    mean = None if problem is not None else _mean([fold for fold in folds if isinstance(fold, Estimate)])
    shown: dict[str, Any] = {
        name: value if isinstance(value, bool | int | float | str | None) else repr(value)
        for name, value in setting.items()
    }
    return {
        **shown, "value": None if mean is None else mean.value,
        "stderr": None if mean is None or not math.isfinite(mean.stderr) else mean.stderr,
        **{f"fold_{f}": value for f, value in enumerate(values, 1)}, "best": False, "problem": problem,
    }  # fmt: skip


def _mean(folds: list[Estimate]) -> Estimate:
    total = folds[0]
    for fold in folds[1:]:
        total = total + fold
    return total * (1 / len(folds))


# -- the door ------------------------------------------------------------------------------------------------


def _with_propensities(feedback: Any, given: Any) -> Feedback:
    """The log with the p of its rows as a column, which its folds then carry."""
    check_feedback("select", feedback)
    return feedback if given is None else replace(feedback, propensity=row_propensities("select", given, feedback).used)


def _settings(learner: Any, grid: Any) -> list[Setting]:
    """Every combination of the values, or the settings as listed; names that the learner does not have are refused."""
    if not hasattr(learner, "get_params") or isinstance(learner, type):
        raise InputError(f"select: takes a learner such as ol.learners.MF(), got {learner!r}.")
    if isinstance(grid, Mapping):
        lists = {str(name): _values(str(name), values) for name, values in cast("Mapping[Any, Any]", grid).items()}
        settings: list[Setting] = [dict(zip(lists, chosen, strict=True)) for chosen in product(*lists.values())]
    else:
        settings = [_setting(setting) for setting in grid]
    known = list(learner.get_params(deep=False))
    for name in dict.fromkeys(name for setting in settings for name in setting):
        if name not in known:
            raise InputError(f"select: {type(learner).__name__} has no parameter {name!r}.{did_you_mean(name, known)}")
    if not settings:
        raise InputError("select: grid is empty; name at least one setting.")
    names = dict.fromkeys(name for setting in settings for name in setting)
    return [{name: setting.get(name, learner.get_params()[name]) for name in names} for setting in settings]


def _setting(given: Any) -> Setting:
    if not isinstance(given, Mapping):
        raise InputError(f"select: a list of settings has mappings such as {{'reg': 5.0}}, got {given!r}.")
    return dict(cast("Mapping[str, Any]", given))


def _values(name: str, values: Any) -> list[Any]:
    if isinstance(values, str) or not hasattr(values, "__iter__"):
        raise InputError(f"select: grid[{name!r}] must list the values to try, got {values!r}; write [{values!r}].")
    return [value.item() if isinstance(value, np.generic) else value for value in values]
