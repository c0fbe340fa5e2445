"""Two audits on a terminal: what changed in settings, verdict, order, estimates and what they rest on."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import TYPE_CHECKING

from openloop.cli.tables import titled
from openloop.support.escaping import visible

if TYPE_CHECKING:
    from rich.console import RenderableType

    from openloop.audits.change_lists import Changes, OrderChange


def changed(found: Changes) -> Iterator[RenderableType]:
    """The headline, and a table for each thing that differs."""
    from rich.text import Text

    from openloop.reporting.change_sections import in_full

    yield Text(visible(f"{found.headline}."), style="bold")
    yield from map(visible, found.sentences)
    yield from map(visible, (f"old: {found.verdicts.old}", f"new: {found.verdicts.new}"))
    if found.settings:
        yield Text("\nsettings that differ", style="bold")
    for d in found.settings:
        yield f"- {visible(d.name)}: {visible(in_full(d.old))} → {visible(in_full(d.new))}"
    for order in found.orders:
        if order.changed:
            yield from _order(order)
    yield from _estimates(found)
    if found.support:
        lines = [[d.name, in_full(d.old), in_full(d.new)] for d in found.support]
        yield from titled("what they rest on", ["", "old", "new"], lines)


def _order(order: OrderChange) -> Iterator[RenderableType]:
    lines = [[model, f"{before}", f"{after}"] for model, before, after in order.places]
    yield from titled(f"places by {order.estimator} of {order.metric}", ["model", "old", "new"], lines)
    yield from (f"- {visible(str(pair))}" for pair in order.pairs)


def _estimates(found: Changes) -> Iterator[RenderableType]:
    """The estimates of a metric, with the differences that have an interval."""
    from openloop.reporting.change_sections import difference
    from openloop.reporting.words import rounded

    columns = ["model, estimator", "old", "new", "new − old", *([] if found.one_log else ["if independent"])]
    for metric, values in groupby(found.values, key=lambda v: v.metric):
        lines = [
            [f"{v.model}, {v.estimator}", rounded(v.old, v.old_low, v.old_high)[0],
             rounded(v.new, v.new_low, v.new_high)[0], *difference(v)]
            for v in values
        ]  # fmt: skip
        yield from titled(metric, columns, [line[: len(columns)] for line in lines])
