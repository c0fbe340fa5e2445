"""What a page is made of: text, facts, tables, charts and pictures, as plain values that a template writes out.

All text in them is plain text: the template escapes it.
"""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from openloop.audits.next_steps import NextStep
from openloop.errors import InputError
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
    """A chart with its title and words beside it as text; `alt` says in words and numbers what it shows.

    A `whole` chart keeps its own width and look; any other is as wide as the page. `above`: its table is just above it.
    """

    kind: ClassVar[str] = "figure"
    title: str
    words: tuple[str, ...]
    alt: str
    spec: dict[str, Any]
    tables: tuple[TableBlock, ...] = ()
    whole: bool = False
    above: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """A picture inside the page: `source` is a data URI, as the page may load nothing."""

    kind: ClassVar[str] = "picture"
    source: str
    caption: str
    alt: str
    tables: tuple[TableBlock, ...] = ()  # what it shows

    def __post_init__(self) -> None:
        if not self.source.startswith("data:image/"):
            raise InputError(f"Picture: source must start with data:image/, got {self.source[:40]!r}; see Picture.svg.")

    @classmethod
    def svg(cls, text: str, *, caption: str, alt: str, tables: tuple[TableBlock, ...] = ()) -> Picture:
        """A picture of the text of an SVG file. Browsers run no script in it."""
        data = base64.b64encode(text.encode()).decode()
        return cls(source=f"data:image/svg+xml;base64,{data}", caption=caption, alt=alt, tables=tables)


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
    """Terms with their values; `large`: a few numbers that matter."""

    kind: ClassVar[str] = "terms"
    items: tuple[tuple[str, str, str], ...]  # term, value, explanation
    large: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Code:
    """Something to type."""

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


STATES = {
    "supported": ("The log supports a choice", "M4 10.5 8.5 15 16 5.5"),
    "conditional": ("The log supports a choice under an assumption", "M4 12 Q7 6 10 10 T16 8"),
    "unsupported": ("The log cannot tell", "M5 5 15 15 M15 5 5 15"),
    "neutral": ("A comparison, without a verdict", "M4 10 16 10"),
    "changes": ("What changed between two audits", "M4 7 15 7 M12 4 15 7 12 10 M16 13 5 13 M8 10 5 13 8 16"),
}
WHY = {"unsupported": "What the log does say", "changes": "In short"}  # above the sentences


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictBlock:
    """What the page says first: a state with its icon, a headline, why, what would change it, and what to do next."""

    kind: ClassVar[str] = "verdict"
    state: Literal["supported", "conditional", "unsupported", "neutral", "changes"]
    headline: str
    sentences: tuple[str, ...] = ()
    reasons: tuple[str, ...] = ()
    changes: tuple[tuple[str, str, str], ...] = ()  # terms, their values, and what turns there
    steps: tuple[NextStep, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """The state in words."""
        return STATES[self.state][0]

    @property
    def why(self) -> str:
        """The heading of the sentences."""
        return WHY.get(self.state, "Why")

    @property
    def icon(self) -> str:
        """The path that draws the state's icon."""
        return STATES[self.state][1]


Block = TableBlock | FigureBlock | Picture | Text | Bullets | Terms | Code | Fold | Heading | VerdictBlock


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A part of the page with a heading of its own."""

    kind: ClassVar[str] = "section"
    id: str
    title: str
    blocks: tuple[Block, ...]


def figures(
    chart: Any, alts: Sequence[str], tables: Sequence[TableBlock] = (), *, above: bool = False
) -> tuple[FigureBlock, ...]:
    """The panels of a chart as figures for the page, each with its own words; the tables go under the last."""
    spec = chart.to_dict(validate=False)
    panels = spec.get("hconcat", [spec])
    return tuple(
        _figure(panel, alt, tuple(tables) if n == len(panels) - 1 else (), above=above)
        for n, (panel, alt) in enumerate(zip(panels, alts, strict=True))
    )


def _figure(spec: dict[str, Any], alt: str, tables: tuple[TableBlock, ...], *, above: bool) -> FigureBlock:
    title = spec.get("title", {})
    drawn = {key: value for key, value in spec.items() if key not in ("title", "config", "width", "$schema")}
    return FigureBlock(
        title=title.get("text", ""), words=tuple(title.get("subtitle", ())), alt=alt, spec=themed(drawn), tables=tables,
        above=above,
    )  # fmt: skip


def whole_chart(chart: Any) -> tuple[str, FigureBlock]:
    """The title of any chart, "Chart" if it has none, and the chart under it as it is."""
    text = io.StringIO()
    chart.save(text, format="json")  # unlike `to_dict` it takes any number of rows
    spec = json.loads(text.getvalue())
    title = spec.get("title")
    head = {"text": title} if isinstance(title, str | list) else title or {}
    lines, words = _lines(head.get("text")), _lines(head.get("subtitle"))
    drawn = {key: value for key, value in spec.items() if key != "title" or not lines}
    name = " ".join(lines) or "Chart"
    alt = spec.get("description", name)
    return name, FigureBlock(title="", words=words, alt=alt, spec=themed(drawn), whole=True)


def _lines(text: Any) -> tuple[str, ...]:
    """The lines of a title, none where it is an expression or absent."""
    found = text if isinstance(text, list) else [text]  # pyright: ignore[reportUnknownVariableType]
    return tuple(found) if all(isinstance(line, str) for line in found) else ()  # pyright: ignore[reportUnknownArgumentType]


def themed(node: Any) -> Any:
    """The same with the style sheet's variables for colours, so that they change with the page's look."""
    if isinstance(node, dict):
        return {key: themed(value) for key, value in node.items()}  # pyright: ignore[reportUnknownVariableType]
    if isinstance(node, list):
        return [themed(value) for value in node]  # pyright: ignore[reportUnknownVariableType]
    if not isinstance(node, str):
        return node
    return f"var({VARIABLES[node]})" if node in VARIABLES else node.translate(SEPARATORS)
