"""An audit on a terminal: the verdict, a leaderboard for each metric, the pairs of models, and notes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from openloop.cli.voice import for_command
from openloop.support.wording import critical, estimands, level_of, pvalue, reasons

if TYPE_CHECKING:
    from rich.console import RenderableType

    from openloop.audits.results import Audit

MOST_PAIRS = 21  # of up to seven models
TURNS = {"gamma": "Γ*", "rho": "ρ*", "kappa": "κ*"}  # where the order turns


def printed(found: Audit, command: Any) -> Iterator[RenderableType]:
    """Verdict, leaderboards, pairs and notes, in the words of the command."""
    from rich.text import Text

    yield Text(found.verdict.headline, style="bold")
    yield from found.verdict.sentences
    yield from (f"- {reason}" for reason in found.verdict.told)
    if found.verdict.remedy:
        yield Text(for_command(found.verdict.remedy, command), style="bold")
    for warning in found.warnings:
        yield Text.assemble(("warning: ", "yellow"), for_command(warning, command))
    yield from () if found.rehearsal is None else (str(found.rehearsal),)
    yield ""
    yield _leaderboard(found, found.metric)
    yield ""
    yield _comparisons(found)
    for metric in found.result.metrics:
        if metric != found.metric:
            yield ""
            yield _leaderboard(found, metric)
    yield ""
    left_out = (f"left out: {reason}" for reason in reasons(found.result.skipped))
    lines = (*left_out, *(f"! {flag}" for flag in _flags(found)), *(f"note: {note}" for note in found.notes))
    yield from (Text(for_command(line, command), style="dim") for line in lines)


def _flags(found: Audit) -> list[str]:
    """What to mind about estimates that have a mark, with where it holds."""
    marked: dict[str, list[str]] = {}
    for (_, metric, estimator), e in found.result.estimates.items():
        for flag in e.diagnostics.flags:
            marked.setdefault(flag, []).append(f"{estimator}-{metric}")
    return [f"{', '.join(dict.fromkeys(where))}: {flag}" for flag, where in marked.items()]


def _leaderboard(found: Audit, metric: str) -> RenderableType:
    from rich.table import Table
    from rich.text import Text

    from openloop.audits.contrasts import estimators_of

    result, better = found.result, found.result.better.get(metric)
    estimators = estimators_of(result, metric)
    title = f"{metric}, {better} is better; ± {level_of(result.level)} interval over users"
    title += f"\n{estimands({name: result[result.models[0], metric, name].estimand for name in estimators})}"
    table = Table(title=title, title_justify="left", title_style="bold", box=None, pad_edge=False)
    table.add_column("model")
    for name in estimators:
        table.add_column(name, justify="right", no_wrap=True)
    order = found.estimator if found.estimator in estimators else estimators[0]
    for model in result.ranking(metric, order):
        table.add_row(Text(model), *(_cell(found, model, metric, name) for name in estimators))
    return table


def _cell(found: Audit, model: str, metric: str, estimator: str) -> str:
    from openloop.reporting.words import decimals_of, fixed, number

    estimate = found.result[model, metric, estimator]
    low, high = estimate.limits(found.result.level)
    mark, decimals = "!" if estimate.diagnostics.flags else "", decimals_of(low, high)
    if decimals is None:  # a point, or one user, who gives no interval
        return number(estimate.value) + mark
    return f"{fixed(estimate.value, decimals)} ±{fixed((high - low) / 2, decimals)}{mark}"


def _comparisons(found: Audit) -> RenderableType:
    from rich.table import Table
    from rich.text import Text

    from openloop.audits.contrasts import by_rank
    from openloop.reporting.words import rounded

    family = found.metric, found.estimator
    pairs = by_rank(found.contrasts[family], found.result.ranking(*family))
    title = f"pairs by {found.estimator} of {found.metric}, {pairs[0].estimand}"
    if len(pairs) > MOST_PAIRS:
        title += f", the first {MOST_PAIRS} of {len(pairs)}"
    table = Table(title=title, title_justify="left", title_style="bold", box=None, pad_edge=False)
    turning = [name for name in TURNS if any(getattr(c, name) is not None for c in pairs)]
    heads = (
        "difference",
        f"{level_of(found.result.level)}, unadjusted",
        "Holm p",
        *(TURNS[n] for n in turning),
        "answer",
    )
    table.add_column("a − b")
    for head in heads:
        table.add_column(head, justify="right", no_wrap=True)
    for c in pairs[:MOST_PAIRS]:
        value, interval = rounded(c.value, c.low, c.high, sign=True)
        answer = found.verdict.pair(c.a, c.b)
        table.add_row(
            Text(f"{c.a} − {c.b}"),
            value,
            interval,
            pvalue(c.holm),
            *(critical(name, getattr(c, name)) for name in turning),
            "" if answer is None else answer.level,
        )
    return table
