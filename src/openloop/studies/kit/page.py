"""A reproduction as a page: its blocks from top to bottom, as Markdown or as one HTML file."""

from __future__ import annotations

import io
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from openloop.reporting.blocks import Bullets, Heading, Picture, Section, TableBlock, Text
from openloop.reporting.blocks import Cell as PageCell
from openloop.reporting.rendering import page_of
from openloop.studies.kit.fingerprint import versions
from openloop.studies.kit.results import Cell, Claim, Figure, Result, Table, Value
from openloop.studies.kit.running import Reproduction, Took
from openloop.support.version import VERSION
from openloop.support.wording import counted, joined

ASTRAY = "≠"  # behind a number of ours that is not the published one
LONG = 20  # rows beyond which a table is in the appendix
APPENDIX = "Appendix: long tables"

Block = Text | Bullets | Heading | TableBlock | Figure


@dataclass(frozen=True, slots=True)
class Part:
    """What follows a heading: the title of the page, or that of an item."""

    title: str
    blocks: tuple[Block, ...]


def parts(found: Reproduction) -> Iterator[Part]:
    """The page from top to bottom: what came out, the items, what did not come out, long tables, what it took."""
    yield Part(f"{found.paper.title} ({found.paper.year})", tuple(_overview(found)))
    for result in found.results:
        yield Part(f"{result.item}: {result.title}", tuple(_item(result, quick=found.quick)))
    for result in found.quoted:
        yield Part(f"{result.item}: {result.title} (not rerun)", tuple(_quoted(result)))
    if not found.quick:
        yield Part("Published numbers that did not come out", tuple(_astray(found.results)))
    long = [(result, table) for result in found.results for table in result.tables if _is_long(table)]
    if long:
        yield Part(APPENDIX, tuple(_grid(f"{r.item}. {caption(t)}", t.columns, t.rows) for r, t in long))
    yield Part("How it was run", tuple(_took(found)))


def _overview(found: Reproduction) -> Iterator[Block]:
    yield Bullets(items=tuple(summary(found)))
    yield Text(text=str(found.paper))
    yield Text(text=_how(found))
    header = ("item", "what", "data", "claims that hold", "published numbers that came out")
    yield _grid("", header, [_line(result) for result in found.results])
    if found.data:
        yield Bullets(items=tuple(f"{name}: {known}" for name, known in found.data.items()))
    for name, why in found.left_out.items():
        yield Text(text=f"{name} was left out: it {why}.")


def summary(found: Reproduction) -> Iterator[str]:
    """What came out, what did not, what is not decided, and on what data."""
    every = [claim for result in found.results for claim in result.claims]
    claims, open_ones = [c for c in every if c.judged], [c for c in every if c.undecided]
    for head, holds in (("Came out", True), ("Did not come out", False)):
        yield f"**{head}**: {_tally(found, claims, holds=holds)}.{_gists(c for c in claims if c.holds == holds)}"
    if open_ones:
        yield f"**Not decided**: {counted(len(open_ones), 'claim')}.{_gists(open_ones)}"
    used = joined(list(found.data)) if found.data else "none"
    yield f"**Data**: {used}." + (f" Not run here: {joined(list(found.left_out))}." if found.left_out else "")


def _gists(claims: Iterable[Claim]) -> str:
    """The claims in a few words each, where they have such."""
    return "".join(f" {claim.gist[0].upper()}{claim.gist[1:]}." for claim in claims if claim.gist)


def _tally(found: Reproduction, claims: Sequence[Claim], *, holds: bool) -> str:
    compared = sum(result.compared() for result in found.results)
    astray = sum(1 for result in found.results for _ in result.astray())
    held = sum(claim.holds == holds for claim in claims)
    numbers = (compared - astray) if holds else astray
    return f"{held} of {counted(len(claims), 'claim')}" + (
        f", {numbers:,} of {counted(compared, 'published number')}" if compared else ""
    )


def _how(found: Reproduction) -> str:
    with_these = ", ".join(text for text in (f"openloop {VERSION}", *versions()) if not text.endswith(" absent"))
    return f"Written by `{command(found)}` ({with_these}). Published numbers are in brackets{marks(found)}"


def command(found: Reproduction, *items: str) -> str:
    """The command that gives these numbers, or those of some items."""
    words = ["openloop reproduce", found.study, *(items or found.asked), *(["--quick"] if found.quick else [])]
    return f"{' '.join(words)} --data DIR --seed {found.seed}" + ("" if items else " --report FILE")


def marks(found: Reproduction) -> str:
    """What a reader should know of the published numbers: the end of a sentence."""
    if found.quick:
        return ". A quick run has fewer trials and models: its numbers are rough, and not compared with those."
    return f"; {ASTRAY} marks a number of ours that is further off than chance, rounding and a table's caption allow."


def _line(result: Result) -> tuple[str, ...]:
    held, of = result.held()
    compared = result.compared()
    out = compared - sum(1 for _ in result.astray())
    claims = f"{held} of {of}" if of else "–"
    numbers = f"{out} of {compared}" if compared else "–"
    return result.item, result.title, ", ".join(result.data) or "–", claims, numbers


def _item(result: Result, *, quick: bool) -> Iterator[Block]:
    for table in result.tables:
        if not _is_long(table):
            yield _grid(caption(table), table.columns, table.rows)
    yield from result.figures
    aside = [table.caption.rstrip(".") for table in result.tables if _is_long(table)]
    if aside:
        yield Text(text=f"In the appendix: {'; '.join(aside)}.")
    if result.claims:
        yield Heading(text="What should come out" + (", by the few trials of a quick run" if quick else ""))
        yield Bullets(items=tuple(map(told, result.claims)))
    if result.notes:
        yield Heading(text="Notes")
        yield Bullets(items=tuple(result.notes))


def _is_long(table: Table) -> bool:
    return table.appendix or len(table.rows) > LONG


def told(claim: Claim) -> str:
    """A claim in a line."""
    aside = "" if claim.counted else " (not counted: it could not have come out otherwise)"
    if claim.undecided:
        return f"? {claim.text} (not decided: {claim.undecided}): {claim.found}"
    return f"{'✓' if claim.holds else '✗'} {claim.text}{aside}: {claim.found}"


def _quoted(result: Result) -> Iterator[Block]:
    yield Text(text=f"Not rerun: it {result.not_rerun}. The numbers are the paper's.")
    for table in result.tables:
        yield _grid(caption(table), table.columns, table.rows)


def _took(found: Reproduction) -> Iterator[Block]:
    """Commands and times of the items."""
    where = f"in {counted(found.workers, 'worker')}" if found.workers else "in the process of the command"
    yield Text(
        text=f"Trials run {where}, one thread each, on {counted(os.cpu_count() or 1, 'core')}. Processor time is that "
        "of all trials of an item, some of which items share. Trials that an earlier run kept are not computed again, "
        "but their time counts."
    )
    header = ("item", "command", "trials", "computed in this run", "processor time", "this run, on the clock")
    rows = [(name, f"`{command(found, name)}`", *_costs(took)) for name, took in found.took.items()]
    yield _grid("", header, rows)


def _costs(took: Took) -> tuple[Cell, ...]:
    spent = took.spent
    processor = lasting(spent.seconds) if spent.timed == spent.trials else "not known"
    return spent.trials, spent.computed, processor, lasting(took.clock)


def lasting(seconds: float) -> str:
    """A time in words."""
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.1f} min"


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
    """What a table shows, and what its ± is."""
    errors = any(value.error is not None for _, value in table.values())
    return f"**{table.caption.rstrip('.')}.**" + (f" ± is the {table.error_is}." if errors else "")


def shown(cell: Cell) -> str:
    """A cell as text; the published number is in brackets."""
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
