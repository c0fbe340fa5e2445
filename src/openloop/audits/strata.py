"""Tables by strata like the paper's Tables 2 to 5, and Simpson's paradox in them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations

from openloop.audits.contrasts import best_of, testable
from openloop.audits.paradox import Pair, Paradox, Part, find
from openloop.audits.results import StrataLine, StrataTable
from openloop.core.comparison import Comparison
from openloop.core.estimate import Estimate
from openloop.core.metric import Metric
from openloop.core.moments import Moments
from openloop.errors import UndefinedError
from openloop.estimators.stratified import stratified, within_strata
from openloop.sources.plan import Request, Source, Strata, StrataFacts


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


def judged(line: StrataLine, result: Comparison, metric: str) -> StrataLine:
    """The line with the model that beats all others in it."""
    return replace(line, best=best_of(line.estimates, result.better[metric], result.level))


def _lines(result: Comparison, metric: str, facts: StrataFacts, found: Mapping[str, Moments]) -> tuple[StrataLine, ...]:
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
) -> Iterator[StrataLine]:
    """Holdout, weighted and stratified, over all rows."""
    rows, named = sum(facts.rows), dict[str, dict[str, Estimate]]()
    for estimator in ("naive", "ips", "snips"):
        if (result.models[0], metric, estimator) in result.estimates:
            named[estimator] = {m: result[m, metric, estimator].linear() for m in result.models}
    for name, estimates in (named | dict(shares)).items():
        if estimates:
            yield StrataLine(name=name, kind="method", rows=rows, estimates=estimates)


def _strata(
    facts: StrataFacts, means: Mapping[str, list[Estimate | None]], marginal: Mapping[str, Estimate]
) -> Iterator[StrataLine]:
    shares = next(iter(marginal.values())).diagnostics.shares if marginal else None
    for s, name in enumerate(facts.names):
        found = _all_or_none({model: strata[s] if s < len(strata) else None for model, strata in means.items()})
        yield StrataLine(
            name=name, kind="stratum", rows=facts.rows[s], items=facts.items[s], limits=facts.limits[s],
            share=None if shares is None else shares[s], estimates=found,
        )  # fmt: skip


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


def _part(line: StrataLine, a: str, b: str) -> Part:
    return Part(
        name=line.name, a=line.estimates[a].value, b=line.estimates[b].value, rows=line.rows,
        pvalue=testable(line.difference(a, b)),
    )  # fmt: skip
