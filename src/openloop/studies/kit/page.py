"""A reproduction as a page: its blocks from top to bottom, as Markdown or as one HTML file."""

from __future__ import annotations

import io
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from openloop.reporting.blocks import Bullets, Heading, Picture, Section, TableBlock, Text
from openloop.reporting.blocks import Cell as PageCell
from openloop.reporting.chart_data import rows_table
from openloop.reporting.rendering import page_of
from openloop.studies.kit.fingerprint import versions
from openloop.studies.kit.results import Cell, Claim, Figure, Result, Table, Value
from openloop.studies.kit.running import Reproduction, Took
from openloop.support.clock import fixed
from openloop.support.escaping import on_one_line
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
    """The page from top to bottom: what was reproduced, the items, what was not, long tables, what it took."""
    yield Part(f"{found.paper.title} ({found.paper.year})", tuple(_overview(found)))
    for result in found.results:
        yield Part(f"{result.item}: {result.title}", tuple(_item(result, quick=found.quick)))
    for result in found.quoted:
        yield Part(f"{result.item}: {result.title} (not rerun)", tuple(_quoted(result)))
    if not found.quick:
        yield Part("Published numbers that were not reproduced", tuple(_astray(found.results)))
    long = [(result, table) for result in found.results for table in result.tables if _is_long(table)]
    if long:
        yield Part(APPENDIX, tuple(_grid(f"{r.item}. {caption(t)}", t.columns, t.rows) for r, t in long))
    yield Part("How it was run", tuple(_took(found)))


def _overview(found: Reproduction) -> Iterator[Block]:
    yield Bullets(items=tuple(summary(found)))
    yield Text(text=str(found.paper))
    yield Text(text=_how(found))
    yield _items(found.results, quick=found.quick)
    if found.data:
        yield Bullets(items=tuple(f"{name}: {known}" for name, known in found.data.items()))
    for name, why in found.left_out.items():
        yield Text(text=f"{name} was left out: it {why}.")


def summary(found: Reproduction) -> Iterator[str]:
    """What was reproduced, what was not, what is not decided, and on what data."""
    if found.quick:
        yield "**A quick run decides nothing**: the same command without `--quick` says what comes out."
    else:
        yield from _verdicts(found)
    yield f"**Data**: {_used(found)}." + "".join(f" {text}." for text in _not_run(found))


def _verdicts(found: Reproduction) -> Iterator[str]:
    every = [claim for result in found.results for claim in result.claims]
    judged, undecided = [c for c in every if c.judged], [c for c in every if c.undecided]
    for head, holds in (("Reproduced", True), ("Not reproduced", False)):
        these = [claim for claim in judged if claim.holds == holds]
        tallies = (*_tallies(these, judged), *_numbers(found.results, came_out=holds))
        yield f"**{head}**: {', '.join(tallies)}.{_gists(these)}"
    if undecided:
        yield f"**Not decided**: {', '.join(_tallies(undecided))}.{_gists(undecided)}"


def _tallies(these: Sequence[Claim], of: Sequence[Claim] | None = None) -> Iterator[str]:
    """How many claims these are, of how many; those of ours apart, where there are such."""
    whole = these if of is None else of
    kinds = sorted({claim.ours for claim in whole}) or [False]
    for ours in kinds:
        n, total = (sum(claim.ours == ours for claim in claims) for claims in (these, whole))
        whose = "" if kinds == [False] else " of ours" if ours else " of the paper"
        yield f"{'' if of is None else f'{n} of '}{counted(total, 'claim')}{whose}"


def _numbers(results: Sequence[Result], *, came_out: bool) -> Iterator[str]:
    """How many published numbers were reproduced, or were not, of those that were compared."""
    compared = sum(result.compared() for result in results)
    astray = sum(1 for result in results for _ in result.astray())
    if compared:
        yield f"{compared - astray if came_out else astray:,} of {counted(compared, 'published number')}"


def _gists(claims: Sequence[Claim]) -> str:
    """The claims in a few words each, where they have such: the paper's, and then ours."""
    of_paper, ours = ("".join(_gists_of([c for c in claims if c.gist and c.ours == ours])) for ours in (False, True))
    return of_paper + (f" Of ours:{ours}" if ours else "")


def _gists_of(claims: Sequence[Claim]) -> Iterator[str]:
    """Each gist once, with the data sets that it is about."""
    for gist in dict.fromkeys(claim.gist for claim in claims):
        on = [claim.on for claim in claims if claim.gist == gist and claim.on]
        yield f" {gist[0].upper()}{gist[1:]}{f' ({joined(on)})' if on else ''}."


def _used(found: Reproduction) -> str:
    """The data sets that were used, and which version of them, where it is not the usual one."""
    names = [f"{name} ({found.editions[name]})" if name in found.editions else name for name in found.data]
    return joined(names) if names else "none"


def _not_run(found: Reproduction) -> Iterator[str]:
    """What of the paper is not here: its data sets with the items that lack them, and items that were left out."""
    lacking = found.not_run()
    if lacking:
        listed = joined([f"{name} ({joined(items)})" for name, items in lacking.items()])
        head = "None of the paper's data sets was run" if lacking == found.of_paper else "Not run of the paper's data"
        yield f"{head}: {listed}"
    if found.left_out:
        yield f"Left out: {joined(list(found.left_out))}"


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


def _items(results: Sequence[Result], *, quick: bool) -> TableBlock:
    """What was found in each item, unless the run was quick; claims of ours have a column, where there are such."""
    ours = any(claim.ours for result in results for claim in result.claims)
    claims = ("claims of the paper that hold", "claims of ours that hold") if ours else ("claims that hold",)
    header = ("item", "what", "data", *(() if quick else (*claims, "published numbers that were reproduced")))
    rows = [(*_named(result), *_shares(result, len(claims)))[: len(header)] for result in results]
    return _grid("", header, rows)


def _named(result: Result) -> tuple[str, ...]:
    return result.item, result.title, ", ".join(result.data) or "–"


def _shares(result: Result, kinds: int) -> Iterator[str]:
    """Of the claims of the paper, and of ours where these are shown too, and of the published numbers."""
    compared = result.compared()
    numbers = compared - sum(1 for _ in result.astray()), compared
    for n, of in (*(result.held(ours=ours) for ours in (False, True)[:kinds]), numbers):
        yield f"{n} of {of}" if of else "–"


def _item(result: Result, *, quick: bool) -> Iterator[Block]:
    for table in result.tables:
        if not _is_long(table):
            yield _grid(caption(table), table.columns, table.rows)
    yield from result.figures
    aside = [table.caption.rstrip(".") for table in result.tables if _is_long(table)]
    if aside:
        yield Text(text=f"In the appendix: {'; '.join(aside)}.")
    if result.claims:
        yield Heading(text="Claims" + (", by the few trials of a quick run" if quick else ""))
        yield Bullets(items=tuple(map(told, result.claims)))
    if result.notes:
        yield Heading(text="Notes")
        yield Bullets(items=tuple(result.notes))


def _is_long(table: Table) -> bool:
    return len(table.rows) > LONG


def told(claim: Claim) -> str:
    """A claim in a line."""
    asides = [
        *(["ours"] if claim.ours else []),
        *([] if claim.counted else ["not counted: the outcome was certain in advance"]),
        *([f"not decided: {claim.undecided}"] if claim.undecided else []),
    ]
    aside = f" ({'; '.join(asides)})" if asides else ""
    return f"{'?' if claim.undecided else '✓' if claim.holds else '✗'} {claim.text}{aside}: {claim.found}"


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
    header = header if fixed() is None else header[:3]  # the others are not the same in the next run
    rows = [(name, f"`{command(found, name)}`", *_costs(took))[: len(header)] for name, took in found.took.items()]
    yield _grid("", header, rows)
    if found.notes:
        yield Bullets(items=found.notes)


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
    heads = [f"# {_inline(first.title)}", *(f"## {_inline(part.title)}" for part in rest)]
    texts = [
        [head, *(_markdown(b, pictures) for b in part.blocks)] for head, part in zip(heads, [first, *rest], strict=True)
    ]
    return "\n\n".join(text for part in texts for text in part) + "\n"


def _markdown(block: Block, pictures: str) -> str:
    match block:
        case Text():
            return _inline(block.text)
        case Heading():
            return f"### {_inline(block.text)}"
        case Bullets():
            return "\n".join(f"- {_inline(line)}" for line in block.items)
        case Figure():
            return f"![{block.name}]({pictures}/{block.name}.svg)\n\n*{_inline(block.caption)}*"
        case TableBlock():
            rows = [block.columns, ("---",) * len(block.columns), *(tuple(c.text for c in row) for row in block.rows)]
            lines = ["| " + " | ".join(_inline(text).replace("|", "\\|") for text in row) + " |" for row in rows]
            return "\n\n".join(filter(None, (_inline(block.caption), "\n".join(lines))))


def _inline(text: str) -> str:
    """A text with **bold** and `code` on one line; a name or path in it opens no element of HTML and no block."""
    pieces = on_one_line(text).split("`")  # every second one is code
    return "`".join(piece if n % 2 else re.sub(r"<(?=[A-Za-z/!?])", r"\<", piece) for n, piece in enumerate(pieces))


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
        shown = rows_table(block.caption, block.rows)
        return Picture.svg(svg(block), caption=block.caption, alt=block.caption, tables=shown)
    return block


def svg(figure: Figure) -> str:
    """The chart of a figure as a picture."""
    import altair as alt

    chart: Any = alt.Chart.from_dict(dict(figure.chart))
    drawn = io.StringIO()
    chart.save(drawn, format="svg")
    return drawn.getvalue()
