"""The sections about the models: facts, leaderboard, differences, places and strata.

A section is made of what the result holds; where something is missing, it says so or is left out.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from openloop.audits.contrasts import Contrast, contrasts, estimators_of
from openloop.audits.positions import Positions
from openloop.audits.results import Audit, Family, StrataTable
from openloop.core.comparison import Comparison
from openloop.reporting import page_tables as tables
from openloop.reporting.audit_figures import (
    bump_chart,
    forest_plot,
    leaderboard_chart,
    ranks,
    strata_chart,
)
from openloop.reporting.blocks import Bullets, Fold, Heading, Section, Terms, Text, figures
from openloop.reporting.words import direction, number, outcome, rounded, signed, span
from openloop.support.wording import TURNS, chance, counted, critical, joined, level_of, percent, times

PREFERRED = ("snips", "stratified", "ips", "dr", "clipped")  # for a comparison, which names no estimator itself
NO_GAMMA = "unknown, or the interval of a difference from another model covers 0"
TURNING = {
    "gamma": "the order could reverse if propensities are off by more than this factor",
    "rho": "the order reverses if each extra star makes being observed this much likelier than the propensities say",
    "kappa": "the order reverses if this share of popularity is exposure",
}
NEVER = "the order does not reverse in the range that was tried"
SPOKEN = 10  # pairs or models in a text that describes a chart


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Subject:
    """What a page is about: a comparison, and the audit that it belongs to where there is one."""

    result: Comparison
    audit: Audit | None
    metric: str
    estimator: str
    found: Mapping[Family, Sequence[Contrast]]

    @classmethod
    def of(cls, result: Audit | Comparison) -> Subject:
        """An audit names its metric and estimator; a comparison's are its first, debiased where it can be."""
        if isinstance(result, Audit):
            own = result.metric, result.estimator
            return cls(result=result.result, audit=result, metric=own[0], estimator=own[1], found=result.contrasts)
        metric = result.metrics[0]
        known = estimators_of(result, metric)
        estimator = next((e for e in PREFERRED if e in known), known[0])
        families = [(m, e) for m in result.metrics for e in estimators_of(result, m)]
        found = {family: contrasts(result, *family) for family in families}
        return cls(result=result, audit=None, metric=metric, estimator=estimator, found=found)

    @property
    def metrics(self) -> list[str]:
        """The metrics, that of the verdict first."""
        return [self.metric, *(m for m in self.result.metrics if m != self.metric)]

    @property
    def open_loop(self) -> Comparison | None:
        """What the open loop says."""
        return None if self.audit is None or self.audit.open_loop is None else self.audit.open_loop.result

    @property
    def shown(self) -> Positions | None:
        """The positions of an audit of impressions; None where rows are ratings or positives."""
        return None if self.audit is None else self.audit.positions

    @property
    def front(self) -> str:
        """The model in front: the leader of the verdict, or else the one that ranks first."""
        leader = None if self.audit is None else self.audit.verdict.leader
        return leader or self.result.ranking(self.metric, self.estimator)[0]

    def main(self, metric: str) -> str:
        """The estimator that a metric is ordered by."""
        known = estimators_of(self.result, metric)
        return self.estimator if self.estimator in known else known[0]

    def contrasts(self, metric: str, estimator: str) -> Sequence[Contrast]:
        """All pairs of models."""
        return self.found.get((metric, estimator), ())

    def best(self, metric: str, estimator: str) -> Mapping[str, float]:
        """The probability of being best, empty where it is not known."""
        return {} if self.audit is None else self.audit.best.get((metric, estimator), {})


def facts(of: Subject) -> Terms:
    """A few numbers that matter, of the model in front."""
    front = of.front
    e = of.result[front, of.metric, of.estimator]
    seen = e.diagnostics
    share = of.best(of.metric, of.estimator).get(front)
    effective = seen.n if seen.effective_size is None else seen.effective_size
    weighted = "unweighted" if seen.effective_size is None else "after weighting"
    text, interval = rounded(e.value, *e.limits(of.result.level))
    items = [
        (f"{of.estimator} of {of.metric}", text, f"{front}, {e.estimand}; {interval}"),
        ("effective sample", f"{effective:,.0f}", f"of {counted(seen.n, 'row')}, {weighted}"),
        ("users who count", f"{seen.users:,}", "they have rows for this metric; intervals are over them"),
    ]
    if share is not None:
        items.append(("probability of being best", percent(share), f"{front}, by bootstrap over users"))
    return Terms(items=tuple(items), large=True)


def changes(of: Subject) -> list[tuple[str, str, str]]:
    """Where the order of the model in front reverses: Γ*, ρ* or κ*, as far as they are known."""
    if of.shown is not None:
        return []
    turns = {name: value for name in TURNING if (value := _least(of, of.front, name)) is not None}
    found = [
        (TURNS[name], critical(name, value), TURNING[name] if math.isfinite(value) else NEVER)
        for name, value in turns.items()
    ]
    return found or ([] if of.audit is None else [("Γ*", times(None), NO_GAMMA)])


def _least(of: Subject, model: str, name: str) -> float | None:
    """The least Γ*, ρ* or κ* of a model's differences; None where one is not known, or its order is not."""
    own = [c for c in of.contrasts(of.metric, of.estimator) if model in c.models]
    if any(c.better is None for c in own):
        return None
    known = [value for c in own if (value := getattr(c, name)) is not None]
    return min(known) if own and len(known) == len(own) else None


def leaderboard(of: Subject) -> Section:
    """A table and a chart a metric; that of the verdict is open."""
    shown = [_leaderboard(of, metric) for metric in of.metrics]
    folds = [Fold(summary=metric, blocks=blocks) for metric, blocks in zip(of.metrics[1:], shown[1:], strict=True)]
    intro = Text(
        text="Every model's estimate under each estimator. The columns can be sorted. Debiased estimates are about all "
        "users and items; naive is about what was observed."
    )
    heading = Heading(text=of.metric)
    return Section(id="leaderboard", title="Leaderboard", blocks=(intro, heading, *shown[0], *folds))


def _leaderboard(of: Subject, metric: str) -> tuple[Any, ...]:
    main, result = of.main(metric), of.result
    table = tables.leaderboard(result, metric, main, of.contrasts(metric, main), of.best(metric, main))
    spoken = [
        f"{model} {number(e.value)} ({span(*e.limits(result.level))})"
        for model in result.ranking(metric, main)[:SPOKEN]
        for e in [result[model, metric, main]]
    ]
    alt = (
        f"Estimates of {metric} with {level_of(result.level)} intervals, {direction(result, metric)} is better. "
        f"By {main}, from best to worst: {'; '.join(spoken)}. All numbers are in the table above."
    )
    return (table, *figures(leaderboard_chart(result, metric, main, of.open_loop), [alt], above=True))


def differences(of: Subject) -> Section:
    """Forest plots, and a table an estimator behind each."""
    blocks: list[Any] = [
        Text(
            text="Models compared pair by pair over the same users. A pair differs significantly when its p-value, "
            f"adjusted by Holm over all pairs of one metric and estimator, is below {1 - of.result.level:.2g}."
        ),
        *_differences(of, of.metric),
    ]
    blocks += [
        Fold(summary=f"{metric}, {of.main(metric)}", blocks=_differences(of, metric)) for metric in of.metrics[1:]
    ]
    return Section(id="differences", title="Paired differences", blocks=tuple(blocks))


def _differences(of: Subject, metric: str) -> tuple[Any, ...]:
    main = of.main(metric)
    found = of.contrasts(metric, main)
    spoken = [
        f"{outcome(c)}, {c.a} − {c.b} is {signed(c.value)} ({span(c.low, c.high)}), Holm p {chance(c.holm)}"
        for c in found[:SPOKEN]
    ]
    alt = f"Paired differences in {metric} under {main}: {'; '.join(spoken)}."
    every = [
        tables.differences(of.result, metric, e, of.contrasts(metric, e)) for e in estimators_of(of.result, metric)
    ]
    every.sort(key=lambda table: f"under {main}," not in table.caption)
    return figures(forest_plot(of.result, metric, main, found), [alt], every)


def places(of: Subject) -> Section:
    """Whether the estimators agree on the order."""
    blocks: list[Any] = [*_places(of, of.metric)]
    blocks += [Fold(summary=metric, blocks=_places(of, metric)) for metric in of.metrics[1:]]
    return Section(id="places", title="Order of the models under each estimator", blocks=tuple(blocks))


def _places(of: Subject, metric: str) -> tuple[Any, ...]:
    words = agreement(of, metric)
    chart = bump_chart(of.result, metric, of.open_loop)
    table = tables.places(of.result, metric, of.open_loop)
    return (Text(text=words), *figures(chart, [f"Places of the models by {metric}. {words}"], [table]))


def agreement(of: Subject, metric: str) -> str:
    """Which estimators have which order, in words."""
    orders: dict[tuple[str, ...], list[str]] = {}
    for estimator, order in ranks(of.result, metric, of.open_loop).items():
        orders.setdefault(tuple(order), []).append(estimator)
    if len(orders) == 1:
        return f"By {metric} all agree on the order: {', '.join(next(iter(orders))[:SPOKEN])}."
    found = "; ".join(f"{joined(by)}: {', '.join(order[:SPOKEN])}" for order, by in orders.items())
    return f"By {metric} the estimators do not agree on the order. From best to worst, {found}."


def strata(of: Subject) -> Iterator[Section]:
    """Tables by strata, and the paradoxes found."""
    if of.audit is None:
        return
    blocks: list[Any] = [
        Text(
            text="An order of two models over all rows may be reversed in the stratum with most of them (Simpson's "
            "paradox). The models are therefore compared inside each stratum, too. Means inside a stratum are "
            "weighted, because its rows were not equally likely to be seen. The paradox itself is about plain means: "
            "it describes the log, and does not affect the verdict."
        ),
        _paradoxes(of.audit),
    ]
    own = [table for table in of.audit.strata if table.metric == of.metric]
    for table in own:
        blocks += [Heading(text=f"By {table.by}"), *_strata(of, table)]
    others = [table for table in of.audit.strata if table.metric != of.metric]
    blocks += [Fold(summary=f"{table.metric} by {table.by}", blocks=_strata(of, table)) for table in others]
    if not of.audit.strata:
        blocks.append(Text(text="Rows are grouped by propensity or by a given grouping, and this audit has neither."))
    yield Section(id="strata", title="Strata and paradoxes", blocks=tuple(blocks))


def _paradoxes(audit: Audit) -> Any:
    if audit.paradoxes:
        found = tuple(f"{paradox}." for paradox in audit.paradoxes)
        return Bullets(title=f"{counted(len(found), 'paradox').replace('xs', 'xes')} found", items=found)
    if not audit.strata:
        return Text(text="Without strata, no paradox can be found.")
    return Text(
        text="No paradox was found: wherever a stratum with over half of the rows has a significant order of two "
        "models, the plain average over all rows shows it, too."
    )


def _strata(of: Subject, table: StrataTable) -> tuple[Any, ...]:
    better = direction(of.result, table.metric)
    won = [(line.name, line.best) for line in table.lines if line.estimates]
    winners = "; ".join(f"{line}: {'no model beats all others' if m is None else f'{m} is best'}" for line, m in won)
    alt = (
        f"Estimates of {table.metric} by {table.by}, {better} is better. {winners}. All numbers are in the table above."
    )
    rows = tables.strata(table, of.result.level)
    if not won:
        return (rows,)
    return (rows, *figures(strata_chart(table, of.result.level), [alt], above=True))
