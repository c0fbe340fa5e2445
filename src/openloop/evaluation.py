"""`evaluate`: models, a log and propensities to a Comparison."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

from openloop.comparison.lists import described
from openloop.comparison.plan import chosen_pairs, conclude
from openloop.core.comparison import Comparison
from openloop.core.impressions import Impressions
from openloop.core.lists import ListMetric
from openloop.core.metric import Metric
from openloop.data.reading import NO_RATINGS
from openloop.data.scanning import ShownLog
from openloop.errors import InputError, ThresholdWarning, UndefinedError, did_you_mean
from openloop.estimators.naming import Method
from openloop.metrics.naming import any_metric
from openloop.moments.inputs import numbers_of
from openloop.moments.preparing import block_source
from openloop.moments.question import Question, strata_of, within_lists
from openloop.moments.source import BlockSource
from openloop.support.progress import Step, progress, silent
from openloop.support.wording import reasons

ERRORS = ("mae", "mse")  # the default metrics,
RANKINGS = ("recall@10", "dcg@10")  # and where some model is a list

if TYPE_CHECKING:
    from openloop.comparison.refitting import Refitting
    from openloop.estimators.shown import ShownMethod


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Prepared:
    """Models and a log, checked and ready to give moments; a context that ends when rows are no longer needed."""

    source: BlockSource
    metrics: Sequence[Metric]
    methods: Sequence[Method]
    notes: Sequence[str]
    level: float
    asked: Question
    warnings: Sequence[str] = ()
    refitting: Refitting | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.source.close()

    def compare(
        self, pairs: str | Iterable[tuple[str, str]] | None = None, *, tilt: bool = False, step: Step = silent
    ) -> Comparison:
        """Every estimate, the own sums of the pairs and, with `tilt`, those that tell how far weights may be off."""
        chosen = chosen_pairs(self.source.models, pairs)
        found, lists = self.source.ask(
            lambda: conclude(self.source, self.metrics, self.methods, chosen, tilt=tilt), self._lists
        )
        found = _with_lists(self._over(self._refitted(found, step)), lists)
        if not found.estimates and (self.metrics or not found.lists):
            raise UndefinedError(" ".join(self._why_nothing(found.skipped)))
        order = [(m, x.name, e.name) for m in self.source.models for x in self.metrics for e in self.methods]
        return replace(
            found, estimates={key: found.estimates[key] for key in order if key in found.estimates},
            better={m.name: m.better for m in self.metrics}, level=self.level,
            own_metrics={m.name: m.about for m in self.metrics if m.about},
            own_estimators={e.name: e.about for e in self.methods if e.about},
            notes=(*self.notes, *self.source.remarks(), *found.notes),
        )  # fmt: skip

    def _why_nothing(self, skipped: Mapping[tuple[str, str], str]) -> list[str]:
        """Why there is no estimate at all: of metrics that nobody named, what is missing for ratings comes first."""
        errors = [m.name for m in self.metrics if m.on == "prediction"]
        usual = {key: why for key, why in skipped.items() if key[1] not in ("lists", "snips_user")} or skipped
        if self.asked.lenient:
            usual = dict(sorted(usual.items(), key=lambda entry: entry[0][0] not in errors))
        overlooked = [f"{note[0].upper()}{note[1:]}." for note in self.notes if note == NO_RATINGS]
        return [*reasons(usual), *overlooked]

    def _lists(self) -> Any:
        """What the lists are like, where it is asked for."""
        return described(self.source.lists(self.asked), self.asked) if self.asked.list_measures else None

    def _over(self, found: Comparison) -> Comparison:
        """Intervals over cells where those are asked for, and known."""
        if self.asked.errors != "cells":
            return found
        over = {k: e if e.cell_variance is None else replace(e, over="cells") for k, e in found.estimates.items()}
        return replace(found, estimates=over)

    def _refitted(self, found: Comparison, step: Step) -> Comparison:
        again = self.refitting
        if again is None:
            return found
        with progress("refitting", again.replicates, show=step is silent) as advance:

            def tell(done: int) -> None:
                advance(done, f"{again.replicates} draws of users")
                step("fitting the propensities again", 0.1 + 0.4 * done / again.replicates)

            return again.applied(found, [(m, e) for m in self.metrics for e in self.methods], tell)


def _with_lists(found: Comparison, lists: Any) -> Comparison:
    if lists is None:
        return found
    skipped, notes = found.skipped | lists.skipped, (*found.notes, *lists.notes)
    return replace(found, lists=lists.found, skipped=skipped, notes=notes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Refit:
    """Errors over users from a bootstrap that fits the propensity model again to each draw of users.

    Args:
        replicates: The number of draws.
        on: The log that the propensity model was fitted on, if the scored one is a part of it.
        rng: A seed or a Generator.

    Examples:
        >>> world = ol.simulate.movie_lovers()
        >>> log = world.observe(0)
        >>> p = ol.propensity.Popularity(gamma=1).fit(log)
        >>> again = ol.Refit(replicates=20)
        >>> result = ol.evaluate(world.predictions, log, p, metrics=["mae"], estimators=["snips"], errors=again)
        >>> result["Y1", "mae", "snips"].p_taken
        'refitted'
    """

    replicates: int = 200
    on: Any = None
    rng: Any = 0


def evaluate(
    models: Mapping[str, Any],
    log: Any,
    propensities: Any = None,
    *,
    metrics: Sequence[str | Metric | ListMetric] | None = None,
    estimators: Sequence[str | Method | ShownMethod] | None = None,
    exclude: Any = None,
    threshold: float | None = None,
    missing: str = "error",
    level: float = 0.95,
    pairs: str | Iterable[tuple[str, str]] | None = None,
    errors: str | Refit = "users",
    device: str | None = None,
) -> Comparison:
    """Estimate each metric of each model by each estimator.

    The log is a Feedback, a log that `ol.scan` opened, or a dataframe with columns of obvious names. Wherever it lives,
    its rows are read once and reduced in blocks of users.

    The log may also be Impressions. Then the models are rankers: tables (request or user, item, rank or score; or
    position and probability), functions of users and items, recommenders, or ranks of the shown rows. The metrics are
    clicks, ctr and dcg, and the estimators by default snpbm and sniips.

    Measures of lists, such as "coverage@10", describe what models list for users. They need no estimator, and are found
    as `result[model, metric, "lists"]`.

    Args:
        models: Models by name: recommenders, functions of ids, U × I arrays, tables with user, item and score or rank,
            or names of columns of a scanned log. `ol.wrap` makes recommenders of other libraries' models,
            `ol.predictions` names the columns of a table.
        log: The observed feedback or impressions.
        propensities: Propensities, a fitted propensity model (which also gives the grid of p), a U × I array, a column
            of a scanned log, or None: the log's own. For impressions a fitted Examination, θ as an array, or None.
        metrics: Names or Metric objects. By default mae and mse; if a model is a list, those of mae, mse, recall@10 and
            dcg@10 that all models support, cut at the length of the shortest list. "overlap@10:mf" compares lists with
            those of the model mf.
        estimators: Names or your own estimators; by default naive, ips, snips and stratified. `ol.dr(ratings)` is
            doubly robust.
        exclude: A log whose items leave the ranking, such as train.
        threshold: The rating from which an item is relevant; by default 4, or 1 where ratings are 0 and 1.
        missing: What happens to missing predictions: "error", "drop" (leave out the row) or "worst".
        level: The confidence level of printed intervals.
        pairs: The pairs of models whose own sums are taken; by default all pairs of up to ten models.
        errors: What is random in intervals: "users", "cells", or `ol.Refit`, which fits the propensities again.
        device: "cuda" counts ranks on a GPU. Models whose `scores` are tensors on a GPU are counted there anyway.

    Returns:
        The estimates by model, metric and estimator, and why some are missing.

    Raises:
        InputError: Something cannot be used; the message names it, the rule and the remedy.
        UndefinedError: No estimate that was asked for is defined.

    Examples:
        >>> world = ol.simulate.movie_lovers()
        >>> models = {name: world.predictions[name] for name in ("Y1", "Y2")}
        >>> result = ol.evaluate(models, world.observe(0), metrics=["mae"], estimators=["naive", "snips"])
        >>> {model: round(result[model, "mae", "snips"].value, 2) for model in models}
        {'Y1': 0.55, 'Y2': 1.37}
        >>> [result.ranking("mae", estimator)[0] for estimator in ("naive", "snips")]
        ['Y2', 'Y1']
    """
    _check_models(models)
    if is_shown(log):
        refuse_for_shown(
            "evaluate", exclude=exclude, threshold=threshold, missing=missing, pairs=pairs, errors=errors, device=device
        )
        return _of_impressions(models, log, propensities, metrics, estimators, level)
    named: dict[str, Any] = default_metrics(models) if metrics is None else {"metrics": metrics}
    named["estimators"] = ("naive", "ips", "snips", "stratified") if estimators is None else estimators
    question = Question(
        **named, exclude=exclude, threshold=threshold, missing=missing, level=level, errors=errors, device=device,
        item_features=getattr(log, "item_features", None),
    )  # fmt: skip
    with prepared(models, log, propensities, question) as ready:
        for text in ready.warnings:
            warnings.warn(f"evaluate: {text}.", ThresholdWarning, stacklevel=2)
        ready.source.survey(ready.metrics, strata_of(ready.methods))
        found = ready.compare(pairs)
        return replace(found, notes=(*found.notes, *ready.warnings))


def default_metrics(models: Mapping[str, Any]) -> dict[str, Any]:
    """The default metrics: errors, and where some model is a list, what all models can serve."""
    numbers = [numbers_of(model, {}) for model in models.values()]
    if not any("rank" in own for own in numbers):
        return {"metrics": ERRORS}
    served = ERRORS if all("score" in own for own in numbers) else ()
    return {"metrics": (*served, *RANKINGS), "guessed": RANKINGS, "lenient": True}


def is_shown(log: Any) -> bool:
    """Whether a log is of impressions."""
    return isinstance(log, Impressions | ShownLog)


def refuse_for_shown(verb: str, **options: Any) -> None:
    """Refuse options that impressions have no use for, where they are more than their defaults."""
    defaults = {"missing": "error", "errors": "users", "cold": "keep", "rehearse": 0}
    for name, value in options.items():
        if not (value is None or (name in defaults and value == defaults[name])):
            raise InputError(f"{verb}: {name}= does not apply: the log is one of impressions; leave it out.")


def of_shown(log: Impressions | ShownLog) -> dict[str, Any]:
    """What a log of impressions says of the question: who are candidates, and how tables may call its columns."""
    return {"candidates": log.candidates, "columns": {} if isinstance(log, Impressions) else log.columns}


def _of_impressions(
    models: Mapping[str, Any], log: Any, exam: Any, metrics: Any, estimators: Any, level: float
) -> Comparison:
    from openloop.impressions.comparing import compare_shown
    from openloop.impressions.question import ShownQuestion

    question = ShownQuestion(metrics=metrics, estimators=estimators, level=level, **of_shown(log))
    return compare_shown(models, log, exam, question)


def _check_models(models: Any) -> None:
    if not isinstance(models, Mapping) or not models:
        raise InputError("evaluate: models must name at least one, as {name: recommender, array or frame}.")
    if not all(isinstance(name, str) for name in models):  # pyright: ignore[reportUnknownVariableType]
        raise InputError(f"evaluate: names of models must be text, got {list(models)}; use str(name).")  # pyright: ignore[reportUnknownArgumentType]


def prepared(models: Mapping[str, Any], log: Any, propensities: Any, asked: Question) -> Prepared:
    """Check the models against the log; the rows are reduced when estimates are asked for."""
    _check_models(models)
    for name in dict.fromkeys(m.running for m in asked.list_measures if m.running is not None):
        if name not in models:
            raise InputError(
                f"evaluate: {name!r}, whose lists others are compared with, is not among the models."
                f"{did_you_mean(name, list(models))}"
            )
    source, notes = block_source(models, log, propensities, asked)
    try:
        asked = _served(source, asked, notes)
        if asked.exclude is None and "rank" in asked.kinds:
            notes.append("nothing is excluded from the rankings; pass exclude=train to leave out what models have seen")
        return Prepared(
            source=source, metrics=asked.measures, methods=asked.methods, notes=notes, level=asked.level,
            asked=asked, warnings=_warnings(source, asked), refitting=_refitting(source, propensities, asked),
        )  # fmt: skip
    except BaseException:
        source.close()
        raise


def _warnings(source: BlockSource, asked: Question) -> list[str]:
    """That the default threshold does not fit the ratings, where a metric that all models serve uses it."""
    served = (m for m in asked.measures if not any(source.coverage(name).refusal(m) for name in source.models))
    if asked.threshold is not None or not any(m.binary for m in served):
        return []
    text = source.relevance().warning
    return [] if text is None else [text]


def _served(source: BlockSource, asked: Question, notes: list[str]) -> Question:
    """The question with the default metrics cut where the shortest list ends, and a note on that."""
    deepest = max((any_metric(name).k or 0 for name in asked.guessed), default=0)
    lists = {name: depth for name in source.models if (depth := source.coverage(name).depth) is not None}
    if not lists or min(lists.values()) >= deepest:
        return asked
    name = min(lists, key=lambda name: lists[name])
    notes.append(
        f"model {name!r} is a top-{lists[name]} list, so rankings are judged by their first {lists[name]} items; pass "
        "metrics= to choose others"
    )
    return within_lists(asked, lists[name])


def _refitting(source: BlockSource, propensities: Any, asked: Question) -> Refitting | None:
    if isinstance(asked.errors, str):
        return None
    from openloop.comparison.refitting import Refitting

    return Refitting.of(source, propensities, asked)
