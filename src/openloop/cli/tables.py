"""Tables on a terminal: columns that do not fit follow in further tables, and no name is cut short."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from openloop.support.escaping import visible

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType

NAMED, GAP = 20, 2  # columns that names may be folded to, and those between two columns

Lines = Sequence[Sequence[str]]


def titled(title: str, columns: Sequence[str], lines: Lines) -> Iterator[RenderableType]:
    """A table under its title, which may be wider; the first column names the line."""
    from rich.text import Text

    yield ""
    yield Text(visible(title, lines=True), style="bold")
    yield FittedTable([[visible(cell) for cell in line] for line in (columns, *lines)])


@dataclass(frozen=True, slots=True)
class FittedTable:
    """The first of the lines is the header. It is laid out when the width is known."""

    lines: Lines

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        for number, chosen in enumerate(parts_of(self.lines, options.max_width)):
            yield from ("",) if number else ()
            yield _table([[line[0], *(line[at] for at in chosen)] for line in self.lines])


def parts_of(lines: Lines, width: int) -> list[list[int]]:
    """The columns behind the first one, in parts that fit beside it; it is folded, but not to less than NAMED."""
    from rich.cells import cell_len

    widths = [max(map(cell_len, column)) + GAP for column in zip(*lines, strict=True)]
    room = left = width + GAP - min(widths[0], NAMED + GAP)
    parts: list[list[int]] = [[]]
    for at in range(1, len(widths)):
        if parts[-1] and widths[at] > left:
            parts.append([])
            left = room
        parts[-1].append(at)
        left -= widths[at]
    return parts


def _table(lines: Lines) -> RenderableType:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False)
    for number, column in enumerate(lines[0]):
        how: dict[str, Any] = {"justify": "right", "no_wrap": True} if number else {"overflow": "fold"}
        table.add_column(Text(column), **how)
    for line in lines[1:]:
        table.add_row(*map(Text, line))
    return table
