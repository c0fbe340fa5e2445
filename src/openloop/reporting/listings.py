"""The section about what models list for users: coverage, popularity and the like, beside the verdict."""

from __future__ import annotations

from collections.abc import Iterator

from openloop.core.comparison import Comparison
from openloop.core.lists import LISTS
from openloop.reporting.blocks import Cell, Section, TableBlock, Terms, Text
from openloop.reporting.page_tables import name, value
from openloop.reporting.sections import Subject
from openloop.reporting.words import about_metric, fixed, number, rounded
from openloop.support.wording import counted, level_of


def lists(of: Subject) -> Iterator[Section]:
    """A line per model, and what each column means."""
    names = of.result.list_metrics
    if not names:
        return
    intro = Text(
        text="What the models list for users, regardless of what they like. In no column is high or low better, and "
        "none affects the verdict."
    )
    meaning = Terms(items=tuple((metric, about_metric(metric), "") for metric in names))
    yield Section(id="lists", title="What the models list", blocks=(intro, _table(of.result), meaning))


def _table(result: Comparison) -> TableBlock:
    rows = tuple((name(m), *(_cell(result, m, metric) for metric in result.list_metrics)) for m in result.models)
    users = max(e.diagnostics.users for e in result.lists.values())
    return TableBlock(
        caption=f"Lists of up to {counted(users, 'user')}; in small print, {level_of(result.level)} intervals over "
        "users of what is a mean over them",
        columns=("model", *result.list_metrics),
        rows=rows,
    )


def _cell(result: Comparison, model: str, metric: str) -> Cell:
    """A value over its interval; a property of all lists together has none."""
    e = result[model, metric, LISTS]
    if not e.units:
        return value(e.value, fixed(e.value, 3) if e.value == 0 or e.value >= 0.01 else number(e.value, 2))
    return value(e.value, *rounded(e.value, *e.limits(result.level)))
