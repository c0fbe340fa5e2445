"""What a page is made of: text, facts, tables and figures, as plain values that a template writes out.

All text in them is plain text: the template escapes it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from openloop.reporting.style import VARIABLES

# Vega-Lite writes names into expressions, whose parser takes these two for the end of a line inside a string.
SEPARATORS = {0x2028: "\N{SYMBOL FOR NEWLINE}", 0x2029: "\N{SYMBOL FOR NEWLINE}"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """A cell of a table: a `name` from the data, or text with a `value` to sort by and a smaller line below."""

    text: str
    detail: str = ""
    value: float | None = None
    name: bool = False

    @property
    def key(self) -> str:
        """What the cell is sorted by."""
        return self.text if self.value is None else repr(float(self.value))


@dataclass(frozen=True, slots=True, kw_only=True)
class TableBlock:
    """A table whose first column names the row; `order` is the column that it is sorted by, and whether it falls."""

    kind: ClassVar[str] = "table"
    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    order: tuple[int, str] | None = None  # column, "ascending" or "descending"
    notes: tuple[str, ...] = ()

    @property
    def numeric(self) -> tuple[bool, ...]:
        """Which columns hold numbers."""
        columns = zip(*self.rows, strict=True) if self.rows else ((),) * len(self.columns)
        return tuple(any(cell.value is not None for cell in column) for column in columns)


@dataclass(frozen=True, slots=True, kw_only=True)
class FigureBlock:
    """A chart: its title and words stand beside it as text, `alt` says in words and numbers what it shows."""

    kind: ClassVar[str] = "figure"
    title: str
    words: tuple[str, ...]
    alt: str
    spec: dict[str, Any]
    tables: tuple[TableBlock, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """A paragraph."""

    kind: ClassVar[str] = "text"
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Bullets:
    """A list."""

    kind: ClassVar[str] = "bullets"
    items: tuple[str, ...]
    title: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """Names and what stands for each; `large`: a few numbers that matter."""

    kind: ClassVar[str] = "terms"
    items: tuple[tuple[str, str, str], ...]  # term, value, explanation
    large: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Code:
    """Something to be typed, as it stands."""

    kind: ClassVar[str] = "code"
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Fold:
    """Blocks that a reader opens."""

    kind: ClassVar[str] = "fold"
    summary: str
    blocks: tuple[Any, ...]
    open: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Heading:
    """A heading inside a section."""

    kind: ClassVar[str] = "heading"
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A part of the page with a heading of its own."""

    id: str
    title: str
    blocks: tuple[Any, ...]


def figures(chart: Any, alts: Sequence[str], tables: Sequence[TableBlock] = ()) -> tuple[FigureBlock, ...]:
    """The panels of a chart as figures for the page, each with its own words; the tables stand under the last."""
    spec = chart.to_dict(validate=False)
    panels = spec.get("hconcat", [spec])
    return tuple(
        _figure(panel, alt, tuple(tables) if n == len(panels) - 1 else ())
        for n, (panel, alt) in enumerate(zip(panels, alts, strict=True))
    )


def _figure(spec: dict[str, Any], alt: str, tables: tuple[TableBlock, ...]) -> FigureBlock:
    title = spec.get("title", {})
    drawn = {key: value for key, value in spec.items() if key not in ("title", "config", "width", "$schema")}
    return FigureBlock(
        title=title.get("text", ""), words=tuple(title.get("subtitle", ())), alt=alt, spec=themed(drawn), tables=tables
    )


def themed(node: Any) -> Any:
    """The same with the style sheet's variables for colours, so that they change with the page's look."""
    if isinstance(node, dict):
        return {key: themed(value) for key, value in node.items()}  # pyright: ignore[reportUnknownVariableType]
    if isinstance(node, list):
        return [themed(value) for value in node]  # pyright: ignore[reportUnknownVariableType]
    if not isinstance(node, str):
        return node
    return f"var({VARIABLES[node]})" if node in VARIABLES else node.translate(SEPARATORS)
