"""An audit on a terminal: the verdict, a leaderboard for each metric, the pairs of models, and notes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from openloop.cli.tables import titled
from openloop.cli.voice import for_command
from openloop.support.escaping import visible
from openloop.support.wording import TURNS, critical, estimands, level_of, pvalue, reasons

if TYPE_CHECKING:
    from rich.console import RenderableType

    from openloop.audits.results import Audit, Curve
    from openloop.core.estimate import Estimate

MOST_SETTLED = 3  # pairs with words on what would settle them; the report has all
MOST_PAIRS = 21  # of up to seven models
COMMAND_WIDTH = 78  # a terminal may be 80 columns wide
ACROSS = 4  # models beside each other
EXPOSURES = {0.0: "κ = 0", 0.5: "κ = ½", 1.0: "κ = 1"}


def printed(found: Audit, command: Any) -> Iterator[RenderableType]:
    """Verdict, leaderboards, pairs and notes, in the words of the command."""
    from rich.text import Text

    yield Text(visible(found.verdict.headline), style="bold")
    yield from (visible(for_command(sentence, command)) for sentence in found.verdict.sentences)
    yield from (f"- {visible(reason)}" for reason in found.verdict.told)
    if found.verdict.remedy:
        yield Text(visible(for_command(found.verdict.remedy, command)), style="bold")
        yield from _remedied(found)
    for warning in found.warnings:
        yield Text.assemble(("warning: ", "yellow"), visible(for_command(warning, command)))
    yield from () if found.rehearsal is None else (str(found.rehearsal),)
    yield from _leaderboard(found, found.metric)
    yield from _comparisons(found)
    yield from _exposures(found)
    yield from _apart(found)
    for metric in found.result.metrics:
        if metric != found.metric:
            yield from _leaderboard(found, metric)
    yield from _lists(found)
    yield ""
    left_out = [f"left out: {reason}" for reason in reasons(found.result.skipped)]
    left_out += [f"not computed: {part}: {why}" for part, why in found.not_computed.items()]
    lines = (*left_out, *(f"! {flag}" for flag in _flags(found)), *(f"note: {note}" for note in found.notes))
    yield from (Text(visible(for_command(line, command)), style="dim") for line in lines)


def _remedied(found: Audit) -> Iterator[RenderableType]:
    """The command that applies the remedy above, and what to fill in."""
    from rich.text import Text

    step = next((step for step in found.next_steps if step.words in found.verdict.remedy), None)
    if step is not None and step.command:
        yield from (Text(visible(line), no_wrap=True) for line in step.lines(COMMAND_WIDTH))
        yield from (Text(visible(line), style="dim") for line in filter(None, [step.where]))


def _flags(found: Audit) -> list[str]:
    """The flags of marked estimates, with the estimates that they apply to."""
    marked: dict[str, list[str]] = {}
    marks = [(f"{how}-{metric}", e) for (_, metric, how), e in found.result.estimates.items()]
    for where, e in (*marks, *((metric, e) for (_, metric), e in found.result.lists.items())):
        for flag in e.diagnostics.flags:
            marked.setdefault(flag, []).append(where)
    return [f"{', '.join(dict.fromkeys(where))}: {flag}" for flag, where in marked.items()]


def _leaderboard(found: Audit, metric: str) -> Iterator[RenderableType]:

    from openloop.audits.contrasts import estimators_of

    result, better = found.result, found.result.better.get(metric)
    estimators = estimators_of(result, metric)
    title = f"{metric}, {better} is better; ± {level_of(result.level)} interval over users"
    title += f"\n{estimands({name: result[result.models[0], metric, name].estimand for name in estimators})}"
    order = found.estimator if found.estimator in estimators else estimators[0]
    lines = [
        [model, *(_cell(found, model, metric, name) for name in estimators)] for model in result.ranking(metric, order)
    ]
    yield from titled(title, ["model", *estimators], lines)


def _lists(found: Audit) -> Iterator[RenderableType]:
    """What models list for users, beside the verdict."""
    from openloop.core.lists import LISTS

    result, names = found.result, found.result.list_metrics
    if not names:
        return
    title = f"lists of the models, which do not affect the verdict; ± {level_of(result.level)} interval over users"
    for start in range(0, len(result.models), ACROSS):
        models = result.models[start : start + ACROSS]
        lines = [[name, *(_cell(found, model, name, LISTS) for model in models)] for name in names]
        yield from titled(title, ["of the lists", *models], lines)


def _cell(found: Audit, model: str, metric: str, estimator: str) -> str:
    return _shown(found.result[model, metric, estimator], found)


def _shown(estimate: Estimate, found: Audit) -> str:
    from openloop.reporting.words import decimals_of, fixed, number

    low, high = estimate.limits(found.result.level)
    mark, decimals = "!" if estimate.diagnostics.flags else "", decimals_of(low, high)
    if decimals is None:  # a point, or one user, who gives no interval
        return number(estimate.value) + mark
    return f"{fixed(estimate.value, decimals)} ±{fixed((high - low) / 2, decimals)}{mark}"


def _comparisons(found: Audit) -> Iterator[RenderableType]:
    from openloop.audits.contrasts import by_rank
    from openloop.reporting.words import rounded

    family = found.metric, found.estimator
    pairs = by_rank(found.contrasts[family], found.result.ranking(*family))
    title = f"pairs by {found.estimator} of {found.metric}, {pairs[0].estimand}"
    if len(pairs) > MOST_PAIRS:
        title += f", the first {MOST_PAIRS} of {len(pairs)}"
    turning = [name for name in TURNS if any(getattr(c, name) is not None for c in pairs)]
    interval = f"{level_of(found.result.level)}, unadjusted"
    columns = ["a − b", "difference", interval, "Holm p", *(TURNS[name] for name in turning), "answer"]
    lines: list[list[str]] = []
    for c in pairs[:MOST_PAIRS]:
        answer = found.verdict.pair(c.a, c.b)
        turns = (critical(name, getattr(c, name)) for name in turning)
        shown = rounded(c.value, c.low, c.high, sign=True)
        lines.append([f"{c.a} − {c.b}", *shown, pvalue(c.holm), *turns, "" if answer is None else answer.level])
    yield from titled(title, columns, lines)


def _exposures(found: Audit) -> Iterator[RenderableType]:
    """Of positives only: each pair where none, half or all of popularity is exposure."""
    from openloop.reporting.words import rounded

    ranking = found.result.ranking(found.metric, found.estimator)
    curves = [_turned(c, ranking) for c in found.curves if c.against == "kappa" and c.metric == found.metric]
    if not curves:
        return
    lines = [
        [f"{c.a} − {c.b}", *(rounded(c.value[k], c.low[k], c.high[k], sign=True)[0] + _unsure(c, k) for k in at),
         "holds throughout" if c.turns_low == math.inf
         else "reverses nowhere" if c.turns == math.inf else f"reverses at {critical('kappa', c.turns)}"]
        for c in curves[:MOST_PAIRS]
        for at in [[c.at.index(kappa) for kappa in EXPOSURES]]
    ]  # fmt: skip
    title = f"pairs by {found.metric}, per relevant item, if none, half or all of popularity is exposure (? not sure)"
    yield from titled(title, ["a − b", *EXPOSURES.values(), "order"], lines)
    yield from map(str, found.settling[:MOST_SETTLED])


def _apart(found: Audit) -> Iterator[RenderableType]:
    """Warm and cold rows beside each other, where both were asked for."""
    cold = found.cold
    if cold is None or cold.result is None:
        yield from () if cold is None or not cold.reason else (f"cold rows: {cold.reason}",)
        return
    where = found.metric, found.estimator
    if where[0] not in cold.result.metrics or any((m, *where) not in cold.result.estimates for m in found.models):
        return
    lines = [
        [model, _shown(found.result[model, *where], found), _shown(cold.result[model, *where], found)]
        for model in found.result.ranking(*where)
    ]
    title = f"{found.metric} by {found.estimator}, users and items with training rows, and those without"
    yield from titled(title, ["model", f"warm, {cold.warm:,} rows", f"cold, {cold.rows:,} rows"], lines)


def _turned(c: Curve, ranking: Sequence[str]) -> Curve:
    """The curve with the better ranked model first."""
    if c.b is None or ranking.index(c.a) < ranking.index(c.b):
        return c
    value, low, high = (tuple(-x for x in values) for values in (c.value, c.high, c.low))
    return replace(c, a=c.b, b=c.a, value=value, low=low, high=high)


def _unsure(c: Curve, k: int) -> str:
    return "?" if c.low[k] <= 0 <= c.high[k] else " "
