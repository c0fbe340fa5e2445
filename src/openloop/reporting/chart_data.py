"""`numbers`: the tables of a figure; where it was given none, the rows that its chart draws."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from openloop.reporting.blocks import Cell, FigureBlock, TableBlock
from openloop.reporting.page_tables import value

ROWS = 200  # in a table, at most
Record = Mapping[str, Any]


def numbers(figure: FigureBlock) -> tuple[TableBlock, ...]:
    """What a reader sees who does not see the chart, unless it is above already."""
    if figure.tables or figure.above:
        return figure.tables
    found = {repr(rows): rows for rows in _data(figure.spec) if len(rows) > 1}  # one row is a line across the chart
    return tuple(table for rows in found.values() for table in rows_table(figure.title or figure.alt, rows))


def _data(node: Any) -> Iterator[Sequence[Record]]:
    """The records inside a chart, in the order of its layers."""
    if isinstance(node, list):
        for inner in node:  # pyright: ignore[reportUnknownVariableType]
            yield from _data(inner)
    elif isinstance(node, dict):
        for key, inner in node.items():  # pyright: ignore[reportUnknownVariableType]
            if key == "datasets":
                yield from (list(rows) for rows in inner.values() if _is_records(rows))  # pyright: ignore[reportUnknownVariableType,reportUnknownArgumentType,reportUnknownMemberType]
            elif key == "data" and _is_records(inner.get("values")):  # pyright: ignore[reportUnknownMemberType]
                yield list(inner["values"])
            else:
                yield from _data(inner)


def _is_records(rows: Any) -> bool:
    return isinstance(rows, list | tuple) and all(isinstance(row, dict) for row in rows)  # pyright: ignore[reportUnknownVariableType]


def rows_table(shown: str, rows: Sequence[Record]) -> tuple[TableBlock, ...]:
    """A table of the fields that hold one value each, names first; none where there is no such field."""
    values = {key: held for row in rows for key, held in row.items() if _is_shown(held)}
    columns = sorted(values, key=lambda key: not isinstance(values[key], str))
    left = len(rows) - ROWS
    table = TableBlock(
        caption=f"What the chart shows: {shown}",
        columns=tuple(columns),
        rows=tuple(tuple(_cell(row.get(key)) for key in columns) for row in rows[:ROWS]),
        notes=(f"{left:,} more rows are in the chart.",) if left > 0 else (),
    )
    return (table,) if columns else ()


def _is_shown(held: Any) -> bool:
    """Whether a reader wants to see it: no colour, and nothing nested."""
    return not isinstance(held, dict | list | tuple | None) and not str(held).startswith(("#", "var(--"))


def _cell(held: Any) -> Cell:
    if isinstance(held, int | float) and not isinstance(held, bool):
        return value(float(held))
    return Cell(text="–" if held is None else str(held), name=isinstance(held, str))
