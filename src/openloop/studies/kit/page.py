"""A reproduction as a page: its blocks from top to bottom, as Markdown or as one HTML file."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from openloop.reporting.blocks import Bullets, Heading, Picture, Section, TableBlock, Text
from openloop.reporting.blocks import Cell as PageCell
from openloop.reporting.rendering import page_of
from openloop.studies.kit.fingerprint import versions
from openloop.studies.kit.results import Cell, Figure, Result, Table, Value
from openloop.studies.kit.running import Reproduction
from openloop.support.version import VERSION
from openloop.support.wording import counted

ASTRAY = "≠"  # behind a number of ours that is not the published one

Block = Text | Bullets | Heading | TableBlock | Figure


@dataclass(frozen=True, slots=True)
class Part:
    """What follows a heading: the title of the page, or that of an item."""

    title: str
    blocks: tuple[Block, ...]


def parts(found: Reproduction) -> Iterator[Part]:
    """The page from top to bottom: the overview, the items, and what did not come out."""
    yield Part(f"{found.paper.title} ({found.paper.year})", tuple(_overview(found)))
    for result in found.results:
        yield Part(f"{result.item}: {result.title}", tuple(_item(result, quick=found.quick)))
    if not found.quick:
        yield Part("Published numbers that did not come out", tuple(_astray(found.results)))


def _overview(found: Reproduction) -> Iterator[Block]:
    yield Text(text=str(found.paper))
    yield Text(text=_how(found))
    header = ("item", "what", "data", "claims that hold", "published numbers that came out")
    yield _grid("", header, [_line(result) for result in found.results])
    if found.data:
        yield Bullets(items=tuple(f"{name}: {known}" for name, known in found.data.items()))
    for name, why in found.left_out.items():
        yield Text(text=f"{name} was left out: it {why}.")


def _how(found: Reproduction) -> str:
    command = ["openloop reproduce", found.study, *found.asked, *(["--quick"] if found.quick else [])]
    written = f"Written by `{' '.join(command)} --data DIR --seed {found.seed} --report FILE` "
    with_these = ", ".join(text for text in (f"openloop {VERSION}", *versions()) if not text.endswith(" absent"))
    return f"{written}({with_these}). Published numbers stand in brackets{marks(found)}"


def marks(found: Reproduction) -> str:
    """What a reader should know of the published numbers: the end of a sentence."""
    if found.quick:
        return ". A quick run has fewer trials and models: its numbers are a foretaste, not held against those."
    return f"; {ASTRAY} marks a number of ours that is further off than chance, rounding and a table's caption allow."


def _line(result: Result) -> tuple[str, ...]:
    held, compared = sum(claim.holds for claim in result.claims), result.compared()
    out = compared - sum(1 for _ in result.astray())
    claims = f"{held} of {len(result.claims)}" if result.claims else "–"
    numbers = f"{out} of {compared}" if compared else "–"
    return result.item, result.title, ", ".join(result.data) or "–", claims, numbers


def _item(result: Result, *, quick: bool) -> Iterator[Block]:
    for table in result.tables:
        yield _grid(caption(table), table.columns, table.rows)
    yield from result.figures
    if result.claims:
        yield Heading(text="What should come out" + (", by the few trials of a quick run" if quick else ""))
        yield Bullets(items=tuple(f"{'✓' if c.holds else '✗'} {c.text}: {c.found}" for c in result.claims))
    if result.notes:
        yield Heading(text="Notes")
        yield Bullets(items=tuple(result.notes))


def _astray(results: Sequence[Result]) -> Iterator[Block]:
    lines = list(_lines_astray(results))
    compared = sum(result.compared() for result in results)
    if not lines:
        yield Text(text=f"None of {compared:,} compared." if compared else f"None was compared: {_why_none(results)}.")
        return
    yield Text(text=f"{counted(len(lines), 'number')} of {compared:,} compared.")
    yield _grid("", ("table", "where", "ours", "published", "difference"), lines)


def _why_none(results: Sequence[Result]) -> str:
    both = (v for result in results for table in result.tables for _, v in table.values() if v.value is not None)
    beside = any(value.published is not None for value in both)
    return "they were measured by other protocols" if beside else "the data here are not the paper's"


def _lines_astray(results: Sequence[Result]) -> Iterator[tuple[str, ...]]:
    for result in results:
        for table, place, value in result.astray():
            if value.value is not None and value.published is not None:
                by = f"{value.value - value.published:+.{value.digits}f}"
                yield table, place, str(value), value.as_published(), by


def caption(table: Table) -> str:
    """What a table shows, and what stands behind its ±."""
    errors = any(value.error is not None for _, value in table.values())
    return f"**{table.caption.rstrip('.')}.**" + (f" Behind ± stands the {table.error_is}." if errors else "")


def shown(cell: Cell) -> str:
    """A cell as text; the published number stands in brackets."""
    if isinstance(cell, Value):
        ours = f"{cell} {ASTRAY}" if cell.came_out is False else str(cell)
        return ours if cell.published is None else f"{ours} ({cell.as_published()})"
    if isinstance(cell, float):
        return f"{cell:.4g}"
    return "" if cell is None else f"{cell:,}" if isinstance(cell, int) else cell


def _grid(caption: str, header: tuple[str, ...], rows: Sequence[tuple[Cell, ...]]) -> TableBlock:
    cells = tuple(tuple(PageCell(text=shown(cell), value=_number(cell)) for cell in row) for row in rows)
    return TableBlock(caption=caption, columns=header, rows=cells)


def _number(cell: Cell) -> float | None:
    """What a column is sorted by."""
    if isinstance(cell, Value):
        return cell.published if cell.value is None else cell.value
    return cell if isinstance(cell, int | float) else None


# -- Markdown ------------------------------------------------------------------------------------------------


def markdown(found: Reproduction, pictures: str) -> str:
    """The page as Markdown, with its pictures in a folder beside it."""
    first, *rest = parts(found)
    heads = [f"# {first.title}", *(f"## {part.title}" for part in rest)]
    texts = [
        [head, *(_markdown(b, pictures) for b in part.blocks)] for head, part in zip(heads, [first, *rest], strict=True)
    ]
    return "\n\n".join(text for part in texts for text in part) + "\n"


def _markdown(block: Block, pictures: str) -> str:
    match block:
        case Text():
            return block.text
        case Heading():
            return f"### {block.text}"
        case Bullets():
            return "\n".join(f"- {line}" for line in block.items)
        case Figure():
            return f"![{block.name}]({pictures}/{block.name}.svg)\n\n*{block.caption}*"
        case TableBlock():
            rows = [block.columns, ("---",) * len(block.columns), *(tuple(c.text for c in row) for row in block.rows)]
            lines = ["| " + " | ".join(text.replace("|", "\\|") for text in row) + " |" for row in rows]
            return "\n\n".join(filter(None, (block.caption, "\n".join(lines))))


# -- HTML ----------------------------------------------------------------------------------------------------


def html(found: Reproduction) -> str:
    """The page as one HTML file, pictures inside, which needs no network."""
    first, *rest = parts(found)
    sections = [
        Section(id=f"part-{number}", title=part.title, blocks=tuple(map(_drawn, part.blocks)))
        for number, part in enumerate(rest, 1)
    ]
    return page_of(first.title, [_drawn(block) for block in first.blocks], sections=sections, marked=True)


def _drawn(block: Block) -> Text | Bullets | Heading | TableBlock | Picture:
    if isinstance(block, Figure):
        return Picture.svg(svg(block), caption=block.caption, alt=block.caption)
    return block


def svg(figure: Figure) -> str:
    """The chart of a figure as a picture."""
    import altair as alt

    chart: Any = alt.Chart.from_dict(dict(figure.chart))
    drawn = io.StringIO()
    chart.save(drawn, format="svg")
    return drawn.getvalue()
