"""What a study returns: numbers of ours beside the published ones, tables, figures, claims; all frozen.

This module knows nothing about how a result was computed, nor about pages.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from openloop.errors import InputError


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """A number, beside the one that the paper prints.

    `value` is None where only the paper has one. `error` is what follows ±, and the table says which error that
    is. `tolerance` is how far chance and rounding may put ours from the published number; without one it is half a
    unit of the last of the `digits` that are printed. `mark` follows the number, as a star for significance.
    `judged` says whether ours was computed thoroughly enough to be compared with the published number.
    """

    value: float | None
    error: float | None = None
    published: float | None = None
    published_error: float | None = None
    digits: int = 3
    tolerance: float | None = None
    mark: str = ""
    judged: bool = True

    def __post_init__(self) -> None:
        if self.value is None and self.published is None:
            raise InputError("Value: needs a number, ours or the published one; got neither.")
        for name in ("value", "error", "published", "published_error", "tolerance"):
            given = getattr(self, name)
            if given is not None:
                # NumPy's numbers would be written as they print, not as numbers.
                object.__setattr__(self, name, float(given))
                if not math.isfinite(given):
                    raise InputError(f"Value: {name} must be finite, got {given}.")

    @property
    def allowed(self) -> float:
        """How far ours may be from the published number."""
        return 0.5 * 10**-self.digits * (1 + 1e-9) if self.tolerance is None else self.tolerance

    @property
    def came_out(self) -> bool | None:
        """Whether ours is the published number, chance and rounding aside; None where they are not to be compared."""
        if self.value is None or self.published is None or not self.judged:
            return None
        return abs(self.value - self.published) <= self.allowed

    def __str__(self) -> str:
        return (self.printed(self.value, self.error) + self.mark) if self.value is not None else "–"

    def as_published(self) -> str:
        """The number as the paper prints it."""
        return self.printed(self.published, self.published_error) if self.published is not None else "–"

    def printed(self, value: float, error: float | None) -> str:
        """A number, and what follows its ±, in as many digits as the paper prints."""
        text = f"{value:.{self.digits}f}"
        return text if error is None else f"{text} ± {error:.{self.digits}f}"


Cell = str | int | float | Value | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Rows of cells; the first column names the row.

    `error_is` says what ± is.
    """

    name: str
    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    error_is: str = "standard error"

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.columns):
                raise InputError(
                    f"Table {self.name}: {len(self.columns)} columns, but a row of {len(row)}: {row}; give each a cell."
                )

    def values(self) -> Iterator[tuple[str, Value]]:
        """Each Value, and its place."""
        for row in self.rows:
            for column, cell in zip(self.columns[1:], row[1:], strict=True):
                if isinstance(cell, Value):
                    yield f"{row[0]}, {column}", cell


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A chart, as a Vega-Lite specification, and the records that it shows."""

    name: str
    caption: str
    rows: tuple[Mapping[str, Any], ...]
    chart: Mapping[str, Any]

    def __post_init__(self) -> None:
        if not isinstance(self.chart, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
            object.__setattr__(self, "chart", self.chart.to_dict())  # an Altair chart


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A claim, whether it holds, and the numbers that show it.

    `gist` is the claim in a few words, for the top of the page; most claims have none. Claims that say the same `on`
    several data sets share a gist, which is then told once. `counted` is False for what can
    only hold or only fail, such as arithmetic on numbers that the paper prints: it is shown and counts in no tally.
    `undecided` says why the numbers cannot decide; such a claim neither holds nor fails. `ours` marks what is no
    sentence of the paper: it has a tally of its own.
    """

    text: str
    holds: bool
    found: str
    gist: str = ""
    on: str = ""
    counted: bool = True
    undecided: str = ""
    ours: bool = False

    def __post_init__(self) -> None:
        # What is not decided does not hold; NumPy's booleans are not JSON's.
        object.__setattr__(self, "holds", bool(self.holds) and not self.undecided)
        for name in ("text", "gist"):
            object.__setattr__(self, name, getattr(self, name).rstrip("."))  # more follows it

    @property
    def judged(self) -> bool:
        """Whether its outcome was open, and its numbers decide."""
        return self.counted and not self.undecided


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """An item of a paper, recomputed: on which data, what was found, and what a reader should know.

    `reproduce` gives it the title of its `Item`. `not_rerun` says why an item has published numbers only.
    """

    item: str
    title: str = ""
    data: tuple[str, ...] = ()
    tables: tuple[Table, ...] = ()
    figures: tuple[Figure, ...] = ()
    claims: tuple[Claim, ...] = ()
    notes: tuple[str, ...] = field(default=())
    not_rerun: str = ""

    def held(self, *, ours: bool = False) -> tuple[int, int]:
        """How many claims of the paper hold, or of ours, and of how many that count."""
        counted = [claim.holds for claim in self.claims if claim.judged and claim.ours == ours]
        return sum(counted), len(counted)

    def astray(self) -> Iterator[tuple[str, str, Value]]:
        """The published numbers that were not reproduced: table, place, numbers."""
        for table in self.tables:
            for place, value in table.values():
                if value.came_out is False:
                    yield table.name, place, value

    def compared(self) -> int:
        """How many numbers stand beside a published one."""
        return sum(value.came_out is not None for table in self.tables for _, value in table.values())

    def plain(self) -> dict[str, Any]:
        """Everything but the charts, in plain values."""
        return {
            "item": self.item,
            "title": self.title,
            "data": list(self.data),
            "tables": [_plain_table(table) for table in self.tables],
            "figures": [{"name": f.name, "caption": f.caption, "rows": list(f.rows)} for f in self.figures],
            "claims": [asdict(claim) for claim in self.claims],
            "notes": list(self.notes),
            "not_rerun": self.not_rerun,
        }


def unjudged(result: Result) -> Result:
    """The same, its numbers beside the published ones but not compared with them."""
    return replace(result, tables=tuple(_unjudged_table(table) for table in result.tables))


def _unjudged_table(table: Table) -> Table:
    rows = tuple(tuple(replace(c, judged=False) if isinstance(c, Value) else c for c in row) for row in table.rows)
    return replace(table, rows=rows)


def _plain_table(table: Table) -> dict[str, Any]:
    rows = [{name: _plain_cell(cell) for name, cell in zip(table.columns, row, strict=True)} for row in table.rows]
    return {"name": table.name, "caption": table.caption, "error_is": table.error_is, "rows": rows}


def _plain_cell(cell: Cell) -> Any:
    if not isinstance(cell, Value):
        return cell
    fields = asdict(cell)
    del fields["judged"]
    return fields | {"came_out": cell.came_out}
