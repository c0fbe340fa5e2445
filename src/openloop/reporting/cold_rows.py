"""The section about users and items without training rows, which a verdict leaves out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from openloop.audits.cold import ColdPart
from openloop.reporting.blocks import Section, TableBlock, Text
from openloop.reporting.page_tables import estimated, name
from openloop.reporting.sections import Subject
from openloop.support.wording import level_of


def cold(of: Subject) -> Iterator[Section]:
    """Warm and cold rows apart: a table for each metric that both have."""
    part = None if of.audit is None else of.audit.cold
    if part is None:
        return
    blocks: list[Any] = [Text(text=f"{part}.")]
    if part.reason:
        blocks.append(Text(text=f"How the models do on them is unknown: {part.reason}"))
    blocks += [table for metric in of.metrics for table in _tables(of, part, metric)]
    yield Section(id="cold", title="Users and items without training rows", blocks=tuple(blocks))


def _tables(of: Subject, part: ColdPart, metric: str) -> Iterator[TableBlock]:
    main, cold = of.main(metric), part.result
    if cold is None or any((model, metric, main) not in cold.estimates for model in of.result.models):
        return
    yield TableBlock(
        caption=f"{metric} by {main}, with {level_of(of.result.level)} intervals over users. Cold rows have a "
        "user or an item without training rows; the verdict is about the others",
        columns=("model", f"warm, {part.warm:,} rows", f"cold, {part.rows:,} rows"),
        rows=tuple(
            (name(model), *(estimated(found[model, metric, main], of.result.level) for found in (of.result, cold)))
            for model in of.result.ranking(metric, main)
        ),
    )
