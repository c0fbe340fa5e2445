"""`openloop demo`: five models judged by a biased log, as tables beside the truth."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from openloop.cli.options import console, mark, progress, tell_written, whole, writable

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.text import Text

    from openloop.demonstration import Demonstration, Judgement, Order

TITLES = {"mae": "mae, the mean absolute error", "dcg@50": "dcg@50, the discounted gain of the top 50"}
DIGITS = {"mae": 3, "dcg@50": 2}  # as in the paper's Table 1


def demo(
    users: Annotated[int, typer.Option(parser=whole, metavar="N", help="Users of the world.")] = 944,
    items: Annotated[int, typer.Option(parser=whole, metavar="N", help="Items of the world.")] = 1683,
    seed: Annotated[
        int, typer.Option(parser=whole, metavar="N", help="The same seed gives the same world and log.")
    ] = 0,
    json: Annotated[
        str | None,
        typer.Option(metavar="FILE|-", callback=writable, help="Write JSON to a file, or to stdout instead of tables."),
    ] = None,
) -> None:
    """Judge five models by a biased log, in a world where the truth is known."""
    from openloop.demonstration import demonstrate

    with progress() as step:
        shown = demonstrate(users, items, seed=seed, step=step)
    if json == "-":
        typer.echo(shown.to_json())
        return
    terminal = console()
    for part in _page(shown, narrow=terminal.width < 90):
        terminal.print(part)
    if json is not None:
        shown.to_json(json)
        tell_written(json)


def _page(shown: Demonstration, *, narrow: bool) -> Iterator[RenderableType]:
    from openloop.demonstration import METRICS

    yield shown.setting()
    for metric in METRICS:
        yield ""
        yield _table(shown, metric, narrow=narrow)
    yield ""
    yield mark(good=True, after=" the interval holds the truth   ") + mark(good=False, after=" it does not")
    for finding in shown.findings():
        yield ""
        yield finding


def _table(shown: Demonstration, metric: str, *, narrow: bool) -> RenderableType:
    from rich.table import Table

    from openloop.demonstration import ESTIMATORS

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
