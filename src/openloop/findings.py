"""What an audit finds beside the estimates: strata, paradoxes, sensitivity, estimators against an open loop."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np

from openloop.core.audit import Curve, Family, Line, OpenLoop, Score, StrataTable
from openloop.core.comparison import Comparison
from openloop.core.contrasts import Contrast, best_of, contrasts, testable
from openloop.core.estimate import Estimate
from openloop.core.metric import Metric
from openloop.core.moments import Moments
from openloop.core.paradox import Pair, Paradox, Part, find
from openloop.core.rankings import Friedman, friedman, kendall
from openloop.errors import UndefinedError
from openloop.estimators.requests import Request, Source, Strata, StrataFacts
from openloop.estimators.stratified import stratified, within_strata

GAMMAS = 25
WIDEST = (2.0, 10.0)  # how far a curve of bounds reaches at least, and at most
TILTED = ("snips", "ips", "snips_user")  # estimators whose bounds against Γ are known


# -- strata --------------------------------------------------------------------------------------------------


def strata_tables(
    source: Source, result: Comparison, metrics: Sequence[Metric], groupings: Mapping[str, Strata]
) -> tuple[StrataTable, ...]:
    """A table like the paper's Tables 2 to 5 for each metric and grouping; `groupings` maps words to strata."""
    batches = [list(metrics)] if source.in_one_pass else [[metric] for metric in metrics]
    tables: list[StrataTable] = []
    for by, strata in groupings.items():
        facts = source.facts(strata)
        for batch in batches:
            asked = {(x.name, m): Request(metric=x, models=(m,), strata=strata) for x in batch for m in source.models}
            moments = source.moments(list(asked.values()))
            for metric in batch:
                found = {model: moments[asked[metric.name, model]] for model in source.models}
                tables.append(StrataTable(metric=metric.name, by=by, lines=_lines(result, metric.name, facts, found)))
    return tuple(tables)


def judged(line: Line, result: Comparison, metric: str) -> Line:
    """The line with the model that beats all others in it."""
    return replace(line, best=best_of(line.estimates, result.better[metric], result.level))


def _lines(result: Comparison, metric: str, facts: StrataFacts, found: Mapping[str, Moments]) -> tuple[Line, ...]:
    means = {model: within_strata(m) for model, m in found.items()}
    shares = {
        name: _all_or_none({model: _stratified(m, share) for model, m in found.items()})
        for name, share in (("stratified, observed shares", "observed"), ("stratified", "catalogue"))
    }
    lines = (*_methods(result, metric, facts, shares), *_strata(facts, means, shares["stratified"]))
    return tuple(judged(line, result, metric) for line in lines)


def _stratified(m: Moments, share: str) -> Estimate | None:
    """The marginal over the strata; None where it has no meaning, as without propensities."""
    try:
        return stratified(m, share)
    except UndefinedError:
        return None


def _all_or_none(found: Mapping[str, Estimate | None]) -> dict[str, Estimate]:
    """Linear, as a table has many estimates and no bootstrap of them."""
    return {} if None in found.values() else {m: e.linear() for m, e in found.items() if e is not None}


def _methods(
    result: Comparison, metric: str, facts: StrataFacts, shares: Mapping[str, dict[str, Estimate]]
) -> Iterator[Line]:
    """Holdout, weighted and stratified, over all rows."""
    rows, named = sum(facts.rows), dict[str, dict[str, Estimate]]()
    for estimator in ("naive", "ips", "snips"):
        if (result.models[0], metric, estimator) in result.estimates:
            named[estimator] = {m: result[m, metric, estimator].linear() for m in result.models}
    for name, estimates in (named | dict(shares)).items():
        if estimates:
            yield Line(name=name, kind="method", rows=rows, estimates=estimates)


def _strata(
    facts: StrataFacts, means: Mapping[str, list[Estimate | None]], marginal: Mapping[str, Estimate]
) -> Iterator[Line]:
    shares = next(iter(marginal.values())).diagnostics.shares if marginal else None
    for s, name in enumerate(facts.names):
        found = _all_or_none({model: strata[s] if s < len(strata) else None for model, strata in means.items()})
        yield Line(
            name=name, kind="stratum", rows=facts.rows[s], items=facts.items[s], limits=facts.limits[s],
            share=None if shares is None else shares[s], estimates=found,
        )  # fmt: skip


def with_open_loop(table: StrataTable, found: OpenLoop) -> StrataTable:
    """The table with a line for the open loop."""
    known = {m: found.result[m, table.metric, "naive"] for m in found.result.models if
             (m, table.metric, "naive") in found.result.estimates}  # fmt: skip
    line = Line(name="open loop", kind="open loop", rows=found.rows, estimates=known)
    return replace(table, lines=(*table.lines, judged(line, found.result, table.metric))) if known else table


# -- Simpson's paradox ---------------------------------------------------------------------------------------


def paradoxes(tables: Sequence[StrataTable], result: Comparison) -> tuple[Paradox, ...]:
    """Every reversal and masking among all pairs of models, in every table."""
    pairs = [pair for table in tables for pair in _summaries(table, result)]
    return find(pairs, result.level) if pairs else ()


def _summaries(table: StrataTable, result: Comparison) -> Iterator[Pair]:
    naive = next((line for line in table.lines if line.name == "naive" and line.kind == "method"), None)
    if naive is None:
        return
    for a, b in combinations(result.models, 2):
        yield Pair(
            a=a, b=b, aggregate=_part(naive, a, b), strata=tuple(_part(line, a, b) for line in table.strata),
            metric=table.metric, by=table.by, better=result.better[table.metric],  # type: ignore[arg-type]
        )  # fmt: skip


def _part(line: Line, a: str, b: str) -> Part:
    return Part(
        name=line.name, a=line.estimates[a].value, b=line.estimates[b].value, rows=line.rows,
        pvalue=testable(line.difference(a, b)),
    )  # fmt: skip


# -- sensitivity ---------------------------------------------------------------------------------------------


def with_gamma(source: Source, metric: Metric, found: tuple[Contrast, ...]) -> tuple[Contrast, ...]:
    """Contrasts of means of users' ratios with their Γ*, which no sums tell; not where the interval covers 0."""
    if metric.kind != "user" or found[0].estimator not in ("snips", "snips_user"):
        return found
    return tuple(
        c if c.gamma is not None or c.low <= 0 <= c.high or not math.isfinite(c.low)
        else replace(c, gamma=source.critical(metric, c.estimator, (c.a, c.b)))
        for c in found
    )  # fmt: skip


def curves(source: Source, metric: Metric, own: Sequence[Contrast], leader: str) -> tuple[Curve, ...]:
    """Bounds against Γ of each model, and of the leader's differences from the others."""
    estimator = own[0].estimator
    if estimator not in TILTED:
        return ()
    finite = [c.gamma for c in own if c.gamma is not None and math.isfinite(c.gamma)]
    reach = min(max([WIDEST[0], *(1.5 * g for g in finite)]), WIDEST[1])
    gammas = np.geomspace(1.0, reach, GAMMAS)
    asked = [(m,) for m in source.models] + [(leader, m) for m in source.models if m != leader]
    found: list[Curve] = []
    for models in asked:
        bounds = source.tilted(metric, estimator, models, gammas.tolist())
        if bounds is not None:
            a, *b = models
            found.append(
                Curve(
                    metric=metric.name, estimator=estimator, a=a, b=b[0] if b else None, gamma=tuple(gammas.tolist()),
                    low=tuple(bounds[0].tolist()), high=tuple(bounds[1].tolist()),
                )
            )  # fmt: skip
    return tuple(found)


# -- many models, and the open loop --------------------------------------------------------------------------


def ranks_within_users(result: Comparison, family: Family) -> Friedman | None:
    """Friedman's test on the users' own values, where the estimate is made of such."""
    estimates = {m: result[m, *family] for m in result.models}
    if any(e.columns.shape[1] != 2 for e in estimates.values()):
        return None
    with np.errstate(invalid="ignore", divide="ignore"):
        values = np.column_stack([e.columns[:, 0] / e.columns[:, 1] for e in estimates.values()])  # (U, models)
    scored = result[result.models[0], family[0], "naive"].columns[:, 1] > 0
    values = np.where(np.isfinite(values) & scored[:, None], values, np.nan)  # a user without a row has no value
    whole = values[np.isfinite(values).all(axis=1)]
    if len(whole) < 2 or not np.any(whole != whole[:, :1]):  # too few users, or all models are tied
        return None
    return friedman(values, result.models, better=result.better[family[0]], level=result.level)


def against_open_loop(result: Comparison, sample: Comparison, rows: int) -> OpenLoop:
    """Every estimator scored against what a uniform sample says."""
    scores = tuple(
        _score(result, sample, metric, estimator)
        for metric in result.metrics
        for estimator in result.estimators
        if _has(result, metric, estimator) and _has(sample, metric, "naive")
    )
    judged_by = {metric: contrasts(sample, metric, "naive") for metric in sample.metrics}
    return OpenLoop(rows=rows, result=sample, scores=scores, contrasts=judged_by)


def _has(result: Comparison, metric: str, estimator: str) -> bool:
    return (result.models[0], metric, estimator) in result.estimates


def _score(result: Comparison, sample: Comparison, metric: str, estimator: str) -> Score:
    ours = np.array([result[m, metric, estimator].value for m in result.models])
    open_loop = np.array([sample[m, metric, "naive"].value for m in result.models])
    judged = contrasts(sample, metric, "naive")
    right = [
        bool((ours[i] - ours[j]) * (open_loop[i] - open_loop[j]) > 0) for i, j in combinations(range(len(ours)), 2)
    ]  # fmt: skip
    clear = [c.better is not None for c in judged]
    varied = len(ours) > 2 and np.ptp(ours) > 0 and np.ptp(open_loop) > 0
    return Score(
        metric=metric, estimator=estimator, error=float(np.abs(ours - open_loop).mean()), right=sum(right),
        pairs=len(right), separated=sum(clear), separated_right=sum(r for r, c in zip(right, clear, strict=True) if c),
        tau=kendall(ours, open_loop, level=result.level) if varied else None,
    )  # fmt: skip
