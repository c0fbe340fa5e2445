"""`select`: the best setting of a learner, or of several, by cross-validation under propensities."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from threadpoolctl import threadpool_limits

from openloop.core.feedback import Feedback
from openloop.core.metric import Metric
from openloop.data.splitting import Parts
from openloop.data.splitting import folds as folds_of
from openloop.errors import InputError, UndefinedError
from openloop.estimators.naming import Method
from openloop.learners.crossing import for_rows
from openloop.metrics.naming import metric as metric_named
from openloop.selection.candidates import Candidate, Grid, candidates_of
from openloop.selection.fitting import Fitting, fitting, with_propensities
from openloop.selection.keeping import Checkpoint
from openloop.selection.marks import log_mark
from openloop.selection.tables import Outcome, best_of, marked, table_of
from openloop.selection.validating import Validation
from openloop.support.arguments import is_whole
from openloop.support.atomic import FilePath
from openloop.support.progress import Advance
from openloop.support.progress import progress as progress_bar
from openloop.support.wording import counted

if TYPE_CHECKING:
    import numpy as np
    import polars as pl


class Selection(NamedTuple):
    """The winner of `ol.select`, fitted on all rows, and a table with a line for each setting.

    Attributes:
        model: The learner with the best setting, fitted on the whole log.
        table: A Polars frame in the order of the grid. Columns: `learner` where several were compared; each parameter
            (null where a learner does not have it); `value`, the mean over folds of the validation estimate; `stderr`
            over users; `fold_1` …; `best`; and `problem`, why a setting has no value.

    Examples:
        >>> log = ol.simulate.movie_lovers(users=20, items=12).observe(0)
        >>> found = ol.select(ol.learners.Bias(), log, grid={"reg": [1, 10]}, folds=2)
        >>> found.best
        {'reg': 10.0}
        >>> found.table.columns
        ['reg', 'value', 'stderr', 'fold_1', 'fold_2', 'best', 'problem']
    """

    model: Any
    table: pl.DataFrame

    @property
    def best(self) -> dict[str, Any]:
        """The best setting: the learner's name where several were compared, and the parameters of the grids."""
        names, params = self.table.columns[: self.table.columns.index("value")], self.model.get_params()
        kind = self.table.filter("best").select("learner").row(0, named=True) if "learner" in names else {}
        return kind | {name: params[name] for name in names if name in params}


def select(
    learner: Any,
    feedback: Feedback,
    propensities: Any = None,
    *,
    grid: Grid | Mapping[str, Grid] = None,
    metric: str | Metric = "mse",
    estimator: str | Method | None = None,
    folds: int = 4,
    weighted: bool | None = None,
    threshold: float | None = None,
    checkpoint: FilePath | None = None,
    threads: int | None = None,
    progress: bool = False,
    rng: int | np.random.Generator = 0,
) -> Selection:
    """Fit a learner with every setting of a grid on every fold, and the best setting on all rows.

    Where there are propensities, fits are weighted by 1/p, and learners that need p itself get it. As in Schnabel et
    al. (2016), section 6.1, the training part of a fold observes a cell with probability p(k−1)/k and the validation
    part with p/k, and both are weighted accordingly. Where a learner adds λ to a sum over rows (MF, Bias), a fold of
    n_f of n rows is fitted with λ·n_f/n; the grid, the table and the last fit have λ itself. Ranking metrics leave the
    training part out of the ranking.

    Args:
        learner: The learner, unfitted, or several: {name: learner}.
        feedback: The log.
        propensities: The rows' Propensities, a fitted propensity model, an array, or None: the log's own.
        grid: Values to try by parameter, in all combinations, or a list of settings. A learner inside another one is
            set by scikit-learn's names, such as "model__reg". For several learners {name: grid}. None is the learner as
            it is.
        metric: The metric of validation.
        estimator: The estimator of validation. By default "ips" with propensities ("snips" for metrics of users, or
            "naive" where they have no other), else "naive".
        folds: The number of folds.
        weighted: Whether fits are weighted by 1/p; by default where there are propensities.
        threshold: The rating from which an item is relevant.
        checkpoint: A folder that keeps every finished fold. A call that was stopped continues from there, with the same
            result. A fold is recognised by the log, p, `folds`, `rng`, metric, estimator, the learner's class and
            parameters, and the version of openloop.
        threads: The number of fits at once, each on one thread; by default the number of cores.
        progress: Whether to show a bar.
        rng: A seed or a Generator for the folds, which are the same for all settings.

    Returns:
        The winner, fitted on all rows, and the table. If values are equal, the first wins.

    Raises:
        UndefinedError: The metric has no meaning for this log.

    Examples:
        >>> log = ol.simulate.movie_lovers(users=20, items=12).observe(0)
        >>> found = ol.select(ol.learners.Bias(), log, grid={"reg": [1, 10]}, folds=2)
        >>> found.model
        Bias()
    """
    log, wanted = with_propensities(feedback, propensities), metric_named(metric)
    if log.positives and wanted.on == "prediction":
        raise UndefinedError(
            f"select: every row of this log is a positive, so {wanted.name} is best for a model that predicts the "
            'same for all cells; pass a metric of rankings, as metric="recall@10".'
        )
    candidates = candidates_of(learner, grid)
    for each in candidates:
        for_rows(each.learner, 1.0)  # wrong penalties are not a problem of one setting
    fits = fitting(log, propensities, [each.learner for each in candidates], weighted=weighted)
    how = usual_estimator(wanted, log) if estimator is None else estimator
    asked = {"metric": metric, "estimator": how, "threshold": threshold, "folds": folds, "rng": rng}
    validation = Validation(
        rows=len(log), fitting=fits, metric=wanted, estimator=how, threshold=threshold,
        checkpoint=None if checkpoint is None else _checkpoint(checkpoint, log, fits, asked),
    )  # fmt: skip
    workers, parts = _workers(threads), folds_of(log, folds, rng)
    with progress_bar("select", folds * len(candidates), show=progress) as advance:
        found = _outcomes(validation, parts, candidates, workers, advance)
    table = table_of(candidates, [found[at :: len(candidates)] for at in range(len(candidates))])
    best = best_of(table, wanted)
    return Selection(fits.fit(for_rows(candidates[best].learner, 1.0), log), marked(table, best))


def _outcomes(
    validation: Validation, parts: Iterator[Parts], candidates: Sequence[Candidate], workers: int, advance: Advance
) -> list[Outcome]:
    """What came of every candidate on the first fold, then on the second, and so on."""
    found: list[Outcome] = []
    with threadpool_limits(1, "blas"), ThreadPoolExecutor(workers) as pool:
        for fold, part in enumerate(parts, 1):  # one at a time: each is a copy of the log
            for outcome in pool.map(partial(validation.outcome, fold, *part), candidates):
                found.append(outcome)
                advance(len(found), f"fold {fold}, {counted(len(candidates), 'setting')}")
    return found


def _checkpoint(folder: FilePath, log: Feedback, fits: Fitting, asked: Mapping[str, Any]) -> Checkpoint:
    """The folder of finished folds of this question; what a later call could not recognise is refused."""
    for name in ("metric", "estimator"):
        if not isinstance(asked[name], str):
            raise InputError(
                f"select: checkpoint= must recognise the {name} in a later call, and {asked[name]!r} is code; pass its "
                "name, or leave checkpoint= out."
            )
    if not is_whole(asked["rng"]):
        raise InputError(
            f"select: checkpoint= needs folds that a later call draws again, and rng= is a "
            f"{type(asked['rng']).__name__}, which it cannot recognise; pass a seed, as rng=0."
        )
    return Checkpoint.of(folder, log=log_mark(log), matrix=fits.matrix, weighted=fits.weighted, **asked)


def usual_estimator(metric: Metric, log: Feedback) -> str:
    """The estimator by which a metric is validated if none is named."""
    if log.propensity is None:
        return "naive"
    return "ips" if metric.kind == "cell" else "snips" if metric.pooled or metric.ideal else "naive"


def _workers(threads: Any) -> int:
    if threads is None:
        return os.cpu_count() or 1
    if not is_whole(threads) or threads < 1:
        raise InputError(f"select: threads must be a whole number from 1, got {threads!r}.")
    return int(threads)
