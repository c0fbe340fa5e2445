"""Where the families meet: models, a log and propensities to a Comparison."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from openloop.core.comparison import Comparison
from openloop.core.feedback import Feedback, Floats, check_propensities
from openloop.core.feedback import distinct as distinct_values
from openloop.core.metric import Metric, default_threshold
from openloop.core.propensities import Propensities
from openloop.errors import AlignmentError, InputError, LeakError, PredictionError, UndefinedError, listing
from openloop.estimators.naming import Method, method
from openloop.metrics.naming import metric
from openloop.sources.arrays.source import FeedbackSource
from openloop.sources.observation import Group, one_log
from openloop.sources.outcomes import predictions, predicts, prepare
from openloop.sources.plan import Source, chosen_pairs, conclude
from openloop.sources.predictions import Table
from openloop.sources.question import Question
from openloop.support.wording import reasons

MAX_GROUPS = 50  # a table of strata that a person can read


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Prepared:
    """Models and a log, checked and ready to be asked for moments."""

    source: Source
    metrics: Sequence[Metric]
    methods: Sequence[Method]
    notes: Sequence[str]
    level: float

    def compare(self, pairs: str | Iterable[tuple[str, str]] | None = None) -> Comparison:
        """Every estimate, and the own sums of the pairs."""
        found = conclude(self.source, self.metrics, self.methods, chosen_pairs(self.source.models, pairs))
        if not found.estimates:
            raise UndefinedError(" ".join(reasons(found.skipped)))
        order = [(m, x.name, e.name) for m in self.source.models for x in self.metrics for e in self.methods]
        return Comparison(
            estimates={key: found.estimates[key] for key in order if key in found.estimates},
            skipped=found.skipped, pairs=found.pairs, better={m.name: m.better for m in self.metrics},
            notes=tuple(self.notes), level=self.level,
        )  # fmt: skip


def evaluate(
    models: Mapping[str, Any],
    log: Any,
    propensities: Any = None,
    *,
    metrics: Sequence[str | Metric] = ("mae", "mse"),
    estimators: Sequence[str | Method] = ("naive", "ips", "snips", "stratified"),
    exclude: Any = None,
    threshold: float | None = None,
    missing: str = "error",
    level: float = 0.95,
    imputation: Any = None,
    pairs: str | Iterable[tuple[str, str]] | None = None,
    user: str | None = None,
    item: str | None = None,
    rating: str | None = None,
    population: tuple[int, int] | None = None,
    complete: bool = False,
    distinct: bool = False,
    max_users: int = 2_000_000,
) -> Comparison:
    """Estimate each metric of each model by each estimator.

    `models` maps names to recommenders, U × I arrays or frames (user, item, score or rank). `log` is a Feedback,
    or a frame of any engine, whose rows stay where they are; then the columns are named by `user`, `item`,
    `rating` and `propensities`, `population` is (users, items), `complete` declares that the predictions hold
    the scores of all items, `distinct` that no pair stands twice (which saves a check), and above `max_users`
    clusters of users leave the engine instead of users. A model may then also be a column of the log.

    `propensities` are Propensities, a fitted propensity model (which also gives the grid of p), a U × I array,
    or None: the log's own. `exclude` is the feedback whose items leave the ranking. `threshold` says from which
    rating on an item is relevant (4; 1 where ratings are 0 and 1). `imputation` gives the doubly robust
    estimator a recommender or U × I array of imputed ratings, or losses by (model, metric); fitted without the
    scored cells. `missing` predictions are an "error", or "drop" their rows, or count as "worst". `pairs` names
    the pairs whose own sums are taken: by default all of up to ten models.
    """
    asked = Question(
        metrics=metrics, estimators=estimators, exclude=exclude, threshold=threshold, missing=missing, level=level,
        imputation=imputation, user=user, item=item, rating=rating, population=population, complete=complete,
        distinct=distinct, max_users=max_users,
    )  # fmt: skip
    return prepared(models, log, propensities, asked).compare(pairs)


def prepared(models: Mapping[str, Any], log: Any, propensities: Any, asked: Question) -> Prepared:
    """Check the models against the log; the rows are reduced when estimates are asked for."""
    if not isinstance(models, Mapping) or not models:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InputError("evaluate: models must name at least one, as {name: recommender, array or frame}.")
    if not all(isinstance(name, str) for name in models):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InputError(f"evaluate: names of models must be text, got {list(models)}; use str(name).")
    wanted = _distinct([metric(m) for m in _listed("metrics", asked.metrics)])
    methods = _distinct([method(e) for e in _listed("estimators", asked.estimators)])
    if isinstance(log, Feedback):
        only_frames = {"rating": asked.rating, "population": asked.population}
        _refuse(only_frames, "the log is a Feedback, which knows its ratings and its population")
        ready = {name: prepare(name, model, log, asked.user, asked.item) for name, model in models.items()}
        bounded = any(m.name == "ips" for m in methods)
        source, notes = _from_feedback(ready, log, propensities, wanted, asked, bounded=bounded)
    else:
        from openloop.sources.frames.source import from_frame

        _refuse(
            {"imputation": asked.imputation, "groups": asked.groups or None},
            "the log is a frame; read it with ol.read",
        )
        source, notes = from_frame(
            models, log, propensities, wanted, exclude=asked.exclude, threshold=asked.threshold, missing=asked.missing,
            user=asked.user, item=asked.item, rating=asked.rating, population=asked.population,
            complete=asked.complete, distinct=asked.distinct, max_users=asked.max_users,
        )  # fmt: skip
    if asked.exclude is None and any(m.on == "rank" for m in wanted):
        notes.append("nothing is excluded from the rankings; pass exclude=train to leave out what models have seen")
    return Prepared(source=source, metrics=wanted, methods=methods, notes=notes, level=asked.level)


def _from_feedback(
    models: Mapping[str, Any],
    log: Feedback,
    propensities: Any,
    metrics: Sequence[Metric],
    asked: Question,
    *,
    bounded: bool,
) -> tuple[FeedbackSource, list[str]]:
    exclude, groups = asked.exclude, {name: _group(name, values, log) for name, values in asked.groups.items()}
    if log.uniform:
        raise LeakError(
            "evaluate: this log is marked as the uniform sample of a propensity model, and may not be scored; "
            "score another part, or read it without uniform=True."
        )
    if exclude is not None and not isinstance(exclude, Feedback):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InputError(f"exclude: give the Feedback whose items leave the ranking, got {type(exclude).__name__}.")
    values, grid, floored = _propensities(propensities, log)
    predicted: dict[str, Floats] = {}
    if any(m.on == "prediction" for m in metrics):
        answers = {
            name: predictions(name, model, log, partly=asked.missing != "error")
            for name, model in models.items()
            if predicts(model) or not asked.lenient
        }
        whole = {name for name, answer in answers.items() if answer is not None and not np.isnan(answer).any()}
        partly = not asked.lenient or asked.missing != "error"
        predicted = {name: a for name, a in answers.items() if a is not None and (partly or name in whole)}
    keep, notes = _resolve_missing(predicted, log, asked.missing)
    if keep is not None:
        whole = log.origin or log.fingerprint  # what is left is still a part of that log
        log, values = log.take(keep, origin=whole), None if values is None else values[keep]
        predicted = {name: array[keep] for name, array in predicted.items()}
        groups = {name: (labels, codes[keep]) for name, (labels, codes) in groups.items()}
    for check in (m.check for m in metrics if m.check is not None):
        for array in predicted.values():
            check(array)
    notes += _notes(log, exclude, propensities, weighted=values is not None)
    notes += [
        f"model {name!r} lists none of the scored rows; was it made to leave them out?"
        for name, model in models.items()
        if isinstance(model, Table) and model.lists_none(log.cell)
    ]
    remarks = [model.remarks(name, log) for name, model in models.items() if isinstance(model, Table)]
    notes += [remark for remark in remarks if remark and any(m.on == "rank" for m in metrics)]
    cut = default_threshold(distinct_values(log.rating)) if asked.threshold is None else float(asked.threshold)
    source = FeedbackSource(
        models, log, (values, grid), exclude=exclude, threshold=cut, predicted=predicted,
        imputation=_imputed_ratings(asked.imputation, log), floored=floored, bounded=bounded, groups=groups,
    )  # fmt: skip
    return source, notes


def _group(name: str, values: Any, log: Feedback) -> Group:
    """The labels of a grouping, sorted, and the code of each row."""
    given = np.asarray(values)
    if given.shape != (len(log),):
        raise AlignmentError(
            f"groups[{name!r}]: must have one label for each of {len(log):,} rows, in Feedback order, got shape "
            f"{given.shape}; feedback.align(array) brings input order there."
        )
    labels, codes = np.unique(given.astype(str), return_inverse=True)
    if len(labels) > MAX_GROUPS:
        raise InputError(
            f"groups[{name!r}]: {len(labels):,} labels are too many; merge them into at most {MAX_GROUPS}."
        )
    return tuple(labels.tolist()), codes.astype(np.int64)


def _notes(log: Feedback, exclude: Feedback | None, propensities: Any, *, weighted: bool) -> list[str]:
    """What the reader of the estimates should know about how they were made."""
    notes: list[str] = []
    if isinstance(propensities, np.ndarray) and propensities.ndim == 1 and bool(np.any(np.diff(log.row) < 0)):
        notes.append("propensities= was taken in Feedback order; an array in input order goes through log.align(array)")
    if log.share is None and weighted:
        factor = ", which under exclude= depends on p" if exclude is not None else ""
        notes.append(f"the log was split by time: its weights are 1/p, right up to an unknown factor{factor}")
    if exclude is not None and weighted and not one_log(log, exclude):
        notes.append("exclude= is no part of the scored log: it changes the candidates, not their probability")
    return notes


def _propensities(given: Any, log: Feedback) -> tuple[Floats | None, Floats | None, float | None]:
    """The probability of each row, of the whole grid where it is known, and the share that a floor raised."""
    if given is None:
        return log.propensity, None, None
    if isinstance(given, Propensities):
        return given.check(log).used, None, given.clipped if given.floor else None
    if isinstance(given, np.ndarray):
        return *_from_array(given, log), None
    if not hasattr(given, "predict"):
        raise InputError(
            f"evaluate: propensities must be Propensities, a fitted model, a U × I array or None, got "
            f"{type(given).__name__}."
        )
    found: Propensities = given.predict(log)
    try:
        grid = given.matrix()
        grid = np.maximum(grid, found.floor) if found.floor else grid  # a broadcast grid stays one
    except UndefinedError:  # p depends on the unseen rating: shares of strata are then estimated from the weights
        grid = None
    return found.check(log).used, grid, found.clipped if found.floor else None


def _from_array(given: Any, log: Feedback) -> tuple[Floats, Floats | None]:
    if given.shape == (log.n_users, log.n_items):
        grid = given.astype(np.float64)
        check_propensities("propensities", grid.ravel(), "give the probability of every cell.")
        return grid[log.user, log.item], grid
    if given.shape == (len(log),):
        return Propensities(values=given).used, None
    raise AlignmentError(
        f"evaluate: an array of propensities must be the grid {(log.n_users, log.n_items)} or one value a row, in "
        f"Feedback order ({len(log):,},), got {given.shape}; feedback.align(array) brings input order there."
    )


def _resolve_missing(
    predicted: dict[str, Floats], log: Feedback, missing: str
) -> tuple[np.ndarray[Any, np.dtype[np.bool_]] | None, list[str]]:
    """Fill or drop rows that a model does not predict; returns the rows to keep, None for all."""
    if missing not in ("error", "drop", "worst"):
        raise InputError(f'evaluate: missing must be "error", "drop" or "worst", got {missing!r}.')
    gaps = {name: np.isnan(array) for name, array in predicted.items() if np.isnan(array).any()}
    if not gaps:
        return None, []
    if missing == "error":
        name, gap = next(iter(gaps.items()))
        users = log.users.ids[np.unique(log.user[gap])].tolist()
        raise PredictionError(
            f"model {name!r}: no prediction for {int(gap.sum()):,} of {len(log):,} scored rows, of users "
            f'{listing(users)}; predict them, or pass missing="drop" or "worst".'
        )
    counts = ", ".join(f"{name} {int(gap.sum()):,}" for name, gap in gaps.items())
    if missing == "worst":
        low, high = float(log.rating.min()), float(log.rating.max())
        furthest = np.where(log.rating - low > high - log.rating, low, high)
        for name, gap in gaps.items():
            predicted[name] = np.where(gap, furthest, predicted[name])
        return None, [f"missing predictions count as the furthest rating: {counts} rows"]
    keep = ~np.any(list(gaps.values()), axis=0)
    dropped = int(len(keep) - keep.sum())
    return keep, [f"{dropped:,} rows without a prediction of every model were dropped ({counts}): mind the bias"]


def _imputed_ratings(given: Any, log: Feedback) -> Any:
    """Imputed ratings as a U × I array, or losses by (model, metric)."""
    if given is None:
        return None
    if isinstance(given, Mapping):
        return {key: _imputed_grid(losses, log) for key, losses in given.items()}  # pyright: ignore[reportUnknownVariableType]
    if isinstance(given, np.ndarray):
        return _imputed_grid(given, log)
    if not hasattr(given, "scores"):
        raise InputError(
            f"imputation: give a recommender with scores, an array or a mapping, got {type(given).__name__}."
        )
    return _imputed_grid(given.scores(np.arange(log.n_users)), log)


def _imputed_grid(values: Any, log: Feedback) -> Floats:
    grid = np.asarray(values)
    if grid.shape != (log.n_users, log.n_items) or not np.isfinite(grid).all():
        raise PredictionError(
            f"imputation: needs a finite number for every cell of {(log.n_users, log.n_items)}, got {grid.shape} with "
            f"{grid.size - int(np.isfinite(grid).sum()):,} that are not."
        )
    return grid


def _listed(name: str, values: Any) -> list[Any]:
    found = [values] if isinstance(values, str | Metric | Method) else list(values)
    if not found:
        raise InputError(f"evaluate: {name} is empty; name at least one.")
    return found


def _distinct(values: list[Any]) -> list[Any]:
    return list({value.name: value for value in values}.values())


def _refuse(given: Mapping[str, Any], why: str) -> None:
    for name, value in given.items():
        if value is not None:
            raise InputError(f"evaluate: {name}= does not apply: {why}.")
