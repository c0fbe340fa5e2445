"""`audit`: a biased log and candidate models to a verdict, with everything that it rests on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

from openloop.audits.basis import Basis, granted
from openloop.audits.checks import benchmarks_of, check_of, counted_check
from openloop.audits.cold import WARM, parted
from openloop.audits.contrasts import contrasts, estimators_of
from openloop.audits.curves import curves, too_many, with_gamma
from openloop.audits.evidence import Evidence, stem
from openloop.audits.gathering import (
    all_rows,
    doubts_about,
    gains_of_ends,
    listed_scores,
    rare_share,
    setting_of,
    survey,
    trained_on,
)
from openloop.audits.narrowing import narrowed
from openloop.audits.open_loop import open_loop_of, with_open_loop
from openloop.audits.question import POOLED, STRATA, AuditQuestion, Cold, check_models, for_clicks
from openloop.audits.rankings import ranks_within_users
from openloop.audits.rehearsal import Rehearsal
from openloop.audits.results import Audit, Family
from openloop.audits.sensitivity import tilted_curves, with_limits
from openloop.audits.settling import settling_of
from openloop.audits.strata import paradoxes, strata_tables
from openloop.audits.suspicions import copies, off_scale, suspicions
from openloop.audits.verdict import decide
from openloop.core.comparison import Comparison
from openloop.core.feedback import Feedback
from openloop.core.lists import ListMetric
from openloop.core.metric import Metric, reaches
from openloop.estimators.estimands import PLAIN
from openloop.estimators.naming import Method
from openloop.estimators.resampling import probability_of_being_best
from openloop.estimators.shown import ShownMethod
from openloop.evaluation import Prepared, Refit, is_shown, of_shown, prepared, refuse_for_shown
from openloop.propensity.checks.by_item import CountModel
from openloop.support.clock import start
from openloop.support.progress import Step, silent, steps
from openloop.support.wording import joined

SEVERAL = 3  # models: from here on Friedman's test says more than a pair does


def audit(
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
    errors: str | Refit = "users",
    sample: Any = None,
    device: str | None = None,
    strata: Sequence[int | str] = STRATA,
    groups: Mapping[str, Any] | None = None,
    check: bool | Feedback = True,
    baseline: str | None = None,
    running: str | None = None,
    trained_on: Any = None,
    cold: Cold = "keep",
    rehearse: int = 0,
    rng: Any = 0,
    progress: bool = False,
) -> Audit:
    """Which of the models is better for users, how certain that is, and whether the log can tell at all.

    The verdict is about the first metric and the first of the library's estimators that is not a plain average. By
    default rankings are judged where models rank all items, and ratings where models predict them. What the models list
    for users is shown beside rankings, and decides nothing. For a log of positives only, without propensities, every
    row counts once, and the verdict must hold for every share of popularity that is exposure. For Impressions the
    models are rankers and the verdict is about expected clicks.

    Args:
        models: Models by name, as in `evaluate`.
        log: The observed feedback or impressions, as in `evaluate`.
        propensities: As in `evaluate`; for impressions a fitted Examination.
        metrics: Names or Metric objects.
        estimators: Names or your own estimators.
        exclude: A log whose items leave the ranking, such as train.
        threshold: The rating from which an item is relevant.
        missing: What happens to missing predictions: "error", "drop" or "worst".
        level: The confidence level.
        errors: What is random in intervals: "users", "cells", or `ol.Refit`, which fits the propensities again.
        sample: A uniformly collected test set, which every estimator is scored against.
        device: "cuda" counts ranks on a GPU.
        strata: Numbers of strata of propensity, such as 5 or "2:width".
        groups: Groupings of the rows by name, with one label per row in Feedback order.
        check: Whether to check a fitted propensity model by refitting it, or the log to refit it on, of which this one
            may be a part.
        baseline: The model that the others are compared with, and with no other. With fewer pairs a difference is
            significant more easily.
        running: The model in production. Lists are compared with its lists, and clicks on these cannot make it win.
        trained_on: The training log; by default `exclude`.
        cold: What happens to rows whose user or item has no row in `trained_on`: "keep", "drop", or "report" them
            apart. The verdict is then about the others.
        rehearse: The number of logs to draw from the propensities, to count how often they give a verdict on equal
            models and on models that differ.
        rng: A seed or a Generator.
        progress: Whether to show a bar on a terminal or in Jupyter.

    Returns:
        The verdict and everything that it rests on.

    Raises:
        InputError: Something cannot be used; the message names it, the rule and the remedy.
        UndefinedError: No estimate that was asked for is defined.

    Examples:
        >>> world = ol.simulate.movie_lovers()
        >>> found = ol.audit(world.predictions, world.observe(0), metrics=["mae"])
        >>> found.verdict.level, found.verdict.winner
        ('verdict', 'Y1')
        >>> print(found.verdict.headline)
        Y1 beats Y2 and Y3 on mae, per cell.
    """
    with steps("audit", show=progress) as step:
        # Either question has estimators of its own by default, and refuses those of other logs.
        named: dict[str, Any] = {"metrics": metrics} | ({} if estimators is None else {"estimators": estimators})
        if is_shown(log):
            from openloop.audits.shown import ShownAuditQuestion, conduct_shown

            refuse_for_shown(
                "audit", exclude=exclude, threshold=threshold, missing=missing, errors=errors, sample=sample,
                device=device, groups=groups, running=running, trained_on=trained_on, cold=cold, rehearse=rehearse,
            )  # fmt: skip
            about = ShownAuditQuestion(**named, level=level, baseline=baseline, rng=rng, **of_shown(log))
            return conduct_shown(models, log, propensities, about, step)
        asked = AuditQuestion(
            **named | {"metrics": metrics or ()}, exclude=exclude, threshold=threshold, missing=missing, level=level,
            errors=errors, sample=sample, device=device,
            strata=strata, groups=groups or {}, check=check, baseline=baseline, running=running,
            trained_on=trained_on, cold=cold, rehearse=rehearse, rng=rng,
            item_features=getattr(log, "item_features", None), min_item_rows=getattr(log, "min_item_rows", 0),
            **granted(getattr(log, "propensity_model", None)),
        )  # fmt: skip
        return conduct(models, log, propensities, asked, step)


def conduct(models: Mapping[str, Any], log: Any, propensities: Any, asked: AuditQuestion, step: Step = silent) -> Audit:
    """The audit that answers the question; at its end, what an engine holds for it is released."""
    with ExitStack() as until:
        return _conducted(models, log, propensities, asked, step, until)


def _conducted(
    models: Mapping[str, Any], log: Any, propensities: Any, asked: AuditQuestion, step: Step, until: ExitStack
) -> Audit:
    began = start()
    check_models(models, asked.baseline)
    step("reading the models", 0.0)
    basis = Basis.of(propensities, log, blind=asked.blind, sampled=asked.sampled, modelled=asked.modelled)
    seen, whole, population, cold = propensities, log, "", None
    if asked.cold != "keep":
        apart = parted(models, log, propensities, for_clicks(asked) if basis.clicks else asked)
        log, seen, asked, cold = apart.log, apart.propensities, apart.asked, apart.cold
        population = "" if cold is None else WARM
    if asked.min_item_rows:
        few = narrowed(models, log, seen, asked)
        models, log, seen, asked = few.models, few.log, few.propensities, few.asked
        population = f"{population}, {few.population}" if population else few.population
    asked = for_clicks(asked) if basis.clicks else asked
    ready = until.enter_context(prepared(models, log, seen, asked))
    survey(ready, [*asked.stratifications, *asked.groupings.values()])
    if not isinstance(log, Feedback):  # which says so itself
        basis = basis.with_span(*ready.source.about().span, asked)
    if asked.rehearse:
        from openloop.audits.rehearsing import rehearsable  # it loads learners, which no other audit needs

        rehearsable(ready, seen, asked.rehearse)
    warnings = [*ready.warnings, *suspicions(ready.source, {m.on for m in ready.metrics}, chosen=not asked.lenient)]
    ready = _fitting(ready) if asked.lenient and not basis.clicks else ready
    with ThreadPoolExecutor(1) as pool:  # the check refits a model, which need not wait for the estimates
        fitted = whole if asked.check is True else asked.check  # the log that a model was fitted on
        if isinstance(propensities, CountModel) and asked.check is True:
            checking = pool.submit(counted_check, ready.source, propensities, asked.rng)
        else:
            checking = pool.submit(check_of, propensities, fitted, asked.rng)
        likening = pool.submit(benchmarks_of, propensities, fitted)
        step("estimating", 0.1)
        result = _shown(ready.compare("all", tilt=True, step=step))
        if any(tilts.against("kappa") is not None for tilts in result.tilts.values()):
            basis, result = replace(basis, positives=True, clicks=True), as_liking(result, ready.metrics)
        sample = None if asked.sample is None else open_loop_of(models, asked.sample, result, asked, ready.source)
        step("testing what could change the verdict", 0.5)
        sentence = getattr(propensities, "assumes", "") if asked.assumes is None else asked.assumes
        evidence = _evidence(
            ready, result, asked, basis, open_loop=sample, assumes=sentence, population=population,
            rare=rare_share(ready.source), trained=trained_on(whole, models),
        )  # fmt: skip
        step("checking the propensities", 0.8)
        checked, likened = checking.result(), likening.result()
    warnings += [] if checked is None else [f"propensities: {flag}" for flag in checked.flags]
    evidence = replace(evidence, doubts=tuple(doubts_about(ready, checked)))
    verdict = decide(evidence)
    step("how far propensities may be off", 0.9)
    tables = evidence.strata if sample is None else tuple(with_open_loop(t, sample) for t in evidence.strata)
    metric = next(m for m in ready.metrics if m.name == evidence.metric)
    return Audit(
        verdict=verdict, metric=evidence.metric, estimator=evidence.estimator, result=result,
        contrasts=evidence.contrasts, best=evidence.best, strata=tables, paradoxes=evidence.paradoxes,
        curves=(
            *curves(ready.source, metric, evidence.own, verdict.leader or result.ranking(*evidence.family)[0]),
            *tilted_curves(result, evidence.own),
        ),
        benchmarks=likened, friedman=ranks_within_users(result, evidence.family) if len(models) >= SEVERAL else None,
        open_loop=sample, weights=ready.source.summary(all_rows(metric.on)), check=checked, warnings=tuple(warnings),
        setting=setting_of(ready.source, propensities, whole, began),
        rehearsal=_rehearsal(ready, evidence, seen, asked, step),
        notes=(
            *result.notes, *(sample.result.notes if sample else ()), *([str(cold)] if cold else []),
            *([left_out] if (left_out := too_many(ready.source)) else []),
        ),
        cold=cold, settling=settling_of(result, evidence, ready.source.about(), cold.rows if cold else 0),
    )  # fmt: skip


def _rehearsal(ready: Prepared, found: Evidence, seen: Any, asked: AuditQuestion, step: Step) -> Rehearsal | None:
    if not asked.rehearse:
        return None
    from openloop.audits.rehearsing import rehearse

    return rehearse(ready, found, seen, asked, step)


def _shown(result: Comparison) -> Comparison:
    """Without reasons about `snips_user`, where it was added by default and has no meaning."""
    beside = {stem(name) for name in (*result.estimators, *(estimator for _, estimator in result.skipped))}
    hidden = "snips_user" if beside & {*POOLED} else None
    kept = {key: why for key, why in result.skipped.items() if key[1] != hidden}
    return replace(result, skipped=kept)


def as_liking(result: Comparison, metrics: Sequence[Metric]) -> Comparison:
    """Positives without exposure, with all of popularity treated as liking, κ = 0.

    Then the plain averages of adg, atop and recall@k are unbiased, per user. No others are: a cell metric also counts
    what was not liked.
    """
    unbiased = {m.name for m in metrics if m.pooled}
    estimates = {
        key: replace(e, estimand="per user") if key[1] in unbiased and key[2] == "naive" else e
        for key, e in result.estimates.items()
    }
    return replace(result, estimates=estimates)


def _evidence(ready: Prepared, result: Comparison, asked: AuditQuestion, basis: Basis, **known: Any) -> Evidence:
    """Everything that the verdict is made of."""
    judged = [m for m in ready.metrics if m.name in result.metrics]
    weighted = ready.source.summary(all_rows("prediction")) is not None and not basis.clicks
    kept = {by: s for by, s in asked.groupings.items() if weighted or isinstance(s, str)}

    def all_contrasts() -> dict[tuple[str, str], Any]:
        return {
            (m.name, e): with_limits(result, with_gamma(ready.source, m, contrasts(result, m.name, e, asked.baseline)))
            for m in judged
            for e in estimators_of(result, m.name)
        }

    tables, found = ready.source.ask(lambda: strata_tables(ready.source, result, judged, kept), all_contrasts)
    best = {
        (m, e): probability_of_being_best({x: result[x, m, e] for x in result.models}, result.better[m], rng=asked.rng)
        for m, e in found
    }
    name, estimator = _family(result)
    metric = next(m for m in judged if m.name == name)
    about = ready.source.about()
    scaled = estimator not in PLAIN and not basis.positives  # of positives Σw is the liking rate
    return Evidence(
        result=result, metric=name, estimator=estimator, contrasts=found, best=best, strata=tables,
        paradoxes=paradoxes(tables, result), leaks=tuple(m for m in ready.source.models if copies(ready.source, m)),
        basis=basis, ranked=metric.on == "rank", liked=bool(reaches(about.span[0], about.threshold)),
        mass=ready.source.mass(metric.on) if scaled else None, listed=listed_scores(ready.source, metric, basis),
        filled={m: given.filled for m in ready.source.models if (given := ready.source.answers(m)) is not None},
        running=asked.running, gains=gains_of_ends(metric, about.items), **known,
    )  # fmt: skip


# -- what fits the models ------------------------------------------------------------------------------------


def _fitting(ready: Prepared) -> Prepared:
    """Without metrics on ratings where some model's scores are none, or ratings are only 0 and 1."""
    about = ready.source.about()
    odd = [m for m in ready.source.models if (given := ready.source.answers(m)) is None or off_scale(given, about)]
    if not odd and not 0 < len(about.ratings) <= 2:
        return ready
    why = (
        f"the scores of {joined(odd)} are not on the scale of the ratings" if odd else "ratings have at most two values"
    )
    note = f"judged by rankings only: {why}; name metrics= such as mae to judge predictions anyway"
    kept = [m for m in ready.metrics if m.on == "rank"]
    return replace(ready, metrics=kept, notes=[*ready.notes, note])


def _family(result: Comparison) -> Family:
    """The first metric, and its first estimator that is not a plain average: one of yours where none is ours."""
    metric = result.metrics[0]
    known = estimators_of(result, metric)
    return metric, min((e for e in known if e not in PLAIN), key=result.own_estimators.__contains__, default=known[0])
