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
from openloop.estimators.stratified import population_shares, stratified, weighs, within_strata
from openloop.moments.requests import Request, StrataFacts
from openloop.moments.setting import Strata
from openloop.moments.source import BlockSource


def strata_tables(
    source: BlockSource, result: Comparison, metrics: Sequence[Metric], groupings: Mapping[str, Strata]
) -> tuple[StrataTable, ...]:
    """A table like the paper's Tables 2 to 5 for each metric and grouping; `groupings` maps words to strata."""
    facts = {by: source.facts(strata) for by, strata in groupings.items()}
    lines: dict[tuple[str, str], Sequence[StrataLine]] = {}
    methods = {m.name: [judged(x, result, m.name) for x in _methods(result, m.name, facts)] for m in metrics}
    for (by, metric), found in _moments(source, metrics, groupings).items():
        own = [*_marginals(groupings[by], sum(facts[by].rows), found), *_strata(facts[by], found)]
        lines[by, metric] = [*methods[metric], *(judged(line, result, metric) for line in own)]
    tables = ((by, metric.name) for by in groupings for metric in metrics)
    return tuple(StrataTable(metric=metric, by=by, lines=tuple(lines[by, metric])) for by, metric in tables)


def _moments(
    source: BlockSource, metrics: Sequence[Metric], groupings: Mapping[str, Strata]
) -> dict[tuple[str, str], dict[str, Moments]]:
    """The moments of each model, by grouping and metric."""
    asked = {
        (by, metric.name): {model: Request(metric=metric, models=(model,), strata=strata) for model in source.models}
        for by, strata in groupings.items()
        for metric in metrics
    }
    moments = source.moments(list(dict.fromkeys(r for own in asked.values() for r in own.values())))
    return {key: {model: moments[request] for model, request in own.items()} for key, own in asked.items()}


def judged(line: StrataLine, result: Comparison, metric: str) -> StrataLine:
    """The line with the model that beats all others in it."""
    return replace(line, best=best_of(line.estimates, result.better[metric], result.level))


def _methods(result: Comparison, metric: str, facts: Mapping[str, StrataFacts]) -> Iterator[StrataLine]:
    """Holdout and weighted, over all rows."""
    rows = max((sum(grouping.rows) for grouping in facts.values()), default=0)
    for name in ("naive", "ips", "snips"):
        if (result.models[0], metric, name) in result.estimates:
            estimates = {m: result[m, metric, name].linear() for m in result.models}
            yield StrataLine(name=name, kind="method", rows=rows, estimates=estimates)


def _marginals(strata: Strata, rows: int, found: Mapping[str, Moments]) -> Iterator[StrataLine]:
    """The strata put together by their shares, the paper's and those of the population."""
    ours = f"stratified by {strata}" if isinstance(strata, str) else f"stratified@{strata[0]}:{strata[1]}"
    theirs = f"{ours}, observed shares" if isinstance(strata, str) else f"{ours}:observed"
    for name, share in ((theirs, "observed"), (ours, "catalogue")):
        estimates = _all_or_none({model: _stratified(m, share) for model, m in found.items()})
        if estimates:
            yield StrataLine(name=name, kind="method", rows=rows, estimates=estimates)


def _stratified(m: Moments, share: str) -> Estimate | None:
    """The marginal over the strata; None where it has no meaning, as without propensities."""
    try:
        return stratified(m, share)
    except UndefinedError:
        return None


def _all_or_none(found: Mapping[str, Estimate | None]) -> dict[str, Estimate]:
    """Linear, as a table has many estimates and no bootstrap of them."""
    return {} if None in found.values() else {m: e.linear() for m, e in found.items() if e is not None}


def _strata(facts: StrataFacts, found: Mapping[str, Moments]) -> Iterator[StrataLine]:
    """Each stratum, by means weighted inside it, and by the plain means that the paper has."""
    plain, first = {model: within_strata(m) for model, m in found.items()}, next(iter(found.values()))
    weighted = {model: within_strata(m, weighted=True) for model, m in found.items()} if weighs(first) else None
    shares = population_shares(first)
    for s, name in enumerate(facts.names):
        means = _of(plain, s)
        yield StrataLine(
            name=name, kind="stratum", rows=facts.rows[s], items=facts.items[s], limits=facts.limits[s],
            share=None if shares is None else shares[s], plain=means,
            estimates=means if weighted is None else _of(weighted, s),
        )  # fmt: skip


def _of(means: Mapping[str, list[Estimate | None]], s: int) -> dict[str, Estimate]:
    return _all_or_none({model: strata[s] if s < len(strata) else None for model, strata in means.items()})


# -- Simpson's paradox ---------------------------------------------------------------------------------------


def paradoxes(tables: Sequence[StrataTable], result: Comparison) -> tuple[Paradox, ...]:
    """Every reversal and masking among all pairs of models, in every table, by plain means: it is the log's paradox."""
    pairs = [pair for table in tables for pair in _summaries(table, result)]
    return find(pairs, result.level) if pairs else ()


def _summaries(table: StrataTable, result: Comparison) -> Iterator[Pair]:
    naive = next((line for line in table.lines if line.name == "naive" and line.kind == "method"), None)
    if naive is None:
        return
    for a, b in combinations(result.models, 2):
        strata = tuple(_part(line, line.plain, a, b) for line in table.strata)
        yield Pair(
            a=a, b=b, aggregate=_part(naive, naive.estimates, a, b), strata=strata,
            metric=table.metric, by=table.by, better=result.better[table.metric],  # type: ignore[arg-type]
        )  # fmt: skip


def _part(line: StrataLine, found: Mapping[str, Estimate], a: str, b: str) -> Part:
    pvalue = testable(found[a] - found[b])
    return Part(name=line.name, a=found[a].value, b=found[b].value, rows=line.rows, pvalue=pvalue)
