"""`openloop demo`: models judged by a biased log, beside the truth, and a choice between three, as a report."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated

import typer

from openloop.cli.opening import Open, named, show_page
from openloop.cli.options import Json, Seed, answer, console, files, mark, page, progress, say, show, whole

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.text import Text

    from openloop.commands.demo.estimates import Demonstration, Judgement, Order

TITLES = {"mae": "mae, the mean absolute error", "dcg@50": "dcg@50, the discounted gain of the top 50"}
DIGITS = {"mae": 3, "dcg@50": 2}  # as in the paper's Table 1


def demo(
    users: Annotated[int, typer.Option(parser=whole, metavar="N", help="Users of the world.")] = 944,
    items: Annotated[int, typer.Option(parser=whole, metavar="N", help="Items of the world.")] = 1683,
    seed: Seed = 0,
    json: Json = None,
    report: Annotated[
        str | None,
        typer.Option(metavar="FILE.html", callback=page, help="Train three models, audit them, and report."),
    ] = None,
    open_: Open = False,
) -> None:
    """Judge five models by a biased log, in a world where the truth is known.

    With --report or --open, three models are also trained on such a log and audited, as by `openloop audit`.
    """
    from openloop.commands.demo.estimates import demonstrate
    from openloop.commands.table_files import refuse_overwriting

    report = named(report, wanted=open_)
    refuse_overwriting(files(json, report), [])
    with progress() as step:
        shown = demonstrate(users, items, seed=seed, step=step)
    answer(json, shown.records(), _page(shown, narrow=console().width < 90))
    if report is not None:
        _audited_world(users, items, seed, report, quiet=json == "-")
        if open_:
            show_page(report)


def _audited_world(users: int, items: int, seed: int, report: str, *, quiet: bool) -> None:
    """Train three models, audit them, and write the report."""
    from dataclasses import replace

    from openloop.commands.demo.audited import audited_world
    from openloop.reporting.html import report as write

    with progress() as step:
        found = audited_world(users, items, seed=seed, step=step)
    command = f"openloop demo --users {users} --items {items} --seed {seed} --report {quote(report)}"
    write(replace(found.audit, setting=replace(found.audit.setting, command=command)), report)
    if not quiet:
        show(("", "A choice between three models, trained on four fifths of such a log:", *found.findings()))
    say(f"The report, to open in a browser: {Path(report).resolve()}", err=quiet)


def _page(shown: Demonstration, *, narrow: bool) -> Iterator[RenderableType]:
    from openloop.commands.demo.estimates import METRICS

    yield shown.setting()
    for metric in METRICS:
        yield ""
        yield _table(shown, metric, narrow=narrow)
    yield ""
    yield mark(good=True, after=" the interval contains the truth   ") + mark(good=False, after=" it does not")
    for finding in shown.findings():
        yield ""
        yield finding


def _table(shown: Demonstration, metric: str, *, narrow: bool) -> RenderableType:
    from rich.table import Table

    from openloop.commands.demo.estimates import ESTIMATORS

    title = f"{TITLES[metric]}: {shown.better[metric]} is better"
    table = Table(title=title, title_justify="left", title_style="bold", box=None, pad_edge=False)
    table.collapse_padding = narrow
    table.add_column("model", no_wrap=True)
    for name in ("truth", *ESTIMATORS):
        table.add_column(name, justify="right", no_wrap=True)
    for model in shown.models:
        judged = [shown[model, metric, estimator] for estimator in ESTIMATORS]
        digits = _digits(judged, DIGITS[metric])
        table.add_row(model, f"{judged[0].truth:.{digits}f}", *(_judged_cell(j, digits) for j in judged))
    table.add_row("in order?", "", *(_order_cell(shown.order(metric, estimator)) for estimator in ESTIMATORS))
    return table


def _digits(judged: list[Judgement], digits: int) -> int:
    """One more where a half-width would be shown as 0."""
    halves = [(j.high - j.low) / 2 for j in judged]
    return digits + any(1e-9 < half < 0.5 * 10**-digits for half in halves)


def _judged_cell(judged: Judgement, digits: int) -> Text:
    half = (judged.high - judged.low) / 2
    return mark(judged.covers, before=f"{judged.value:.{digits}f}±{half:.{digits}f} ")


def _order_cell(order: Order) -> Text:
    return mark(order.right, after=f" {len(order.wrong)} of {order.pairs} wrong")
