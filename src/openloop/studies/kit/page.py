"""A reproduction as a page: Markdown with a folder of pictures beside it, or one HTML file."""

from __future__ import annotations

import base64
import io
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

from openloop.errors import InputError, did_you_mean
from openloop.studies.kit.fingerprint import versions
from openloop.studies.kit.results import Cell, Figure, Result, Table, Value
from openloop.studies.kit.running import Reproduction
from openloop.support.atomic import write_text
from openloop.support.version import VERSION
from openloop.support.wording import counted

FORMATS = (".md", ".html")
ASTRAY = "≠"  # behind a number of ours that is not the published one

STYLE = (
    "img { max-width: 100%; background: white } h1 { font-size: 1.7rem } h2 { margin-top: 3rem } "
    "h3 { margin-top: 1.5rem } td { white-space: nowrap } td:first-child { white-space: normal; min-width: 9rem }"
)


@dataclass(frozen=True, slots=True)
class Heading:
    """The title of the page (level 1), of an item (2) or of a part of it (3)."""

    level: int
    text: str


@dataclass(frozen=True, slots=True)
class Grid:
    """A table of texts."""

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


Block = Heading | Grid | Figure | str | tuple[str, ...]  # a text is a paragraph, several are a list


def write_page(found: Reproduction, path: Path) -> list[Path]:
    """Write the page, by its extension .md or .html; gives all files that it wrote."""
    check_format(path)
    if path.suffix == ".html":
        write_text(path, html(found))
        return [path]
    folder = path.with_suffix("")
    for old in folder.glob("*.svg"):
        old.unlink()  # of an earlier run
    shown = [figure for result in found.results for figure in result.figures]
    if shown:
        folder.mkdir(exist_ok=True)
    pictures = [folder / f"{figure.name}.svg" for figure in shown]
    for picture, figure in zip(pictures, shown, strict=True):
        write_text(picture, svg(figure))
    write_text(path, markdown(found, folder.name))
    return [path, *pictures]


def check_format(path: Path) -> None:
    """Refuse a page of an extension that is no format."""
    if path.suffix not in FORMATS:
        raise InputError(f"report {str(path)!r}: no such format.{did_you_mean(path.suffix, FORMATS)}")
    folder = path.with_suffix("")
    if path.suffix == ".md" and folder.exists() and not folder.is_dir():
        taken = f"its figures go into the folder {str(folder)!r}, which is a file"
        raise InputError(f"report {str(path)!r}: {taken}; move that file, or give the page another name.")


def svg(figure: Figure) -> str:
    """The chart of a figure as a picture."""
    import altair as alt

    chart: Any = alt.Chart.from_dict(dict(figure.chart))
    drawn = io.StringIO()
    chart.save(drawn, format="svg")
    return drawn.getvalue()


# -- what stands on the page ---------------------------------------------------------------------------------


def blocks(found: Reproduction) -> Iterator[Block]:
    """The page from top to bottom."""
    yield Heading(1, f"{found.paper.title} ({found.paper.year})")
    yield f"{found.paper}"
    yield _how(found)
    yield _overview(found.results)
    if found.data:
        yield tuple(f"{name}: {known}" for name, known in found.data.items())
    for name, why in found.left_out.items():
        yield f"{name} was left out: it {why}."
    for result in found.results:
        yield from _item(result, quick=found.quick)
    if not found.quick:
        yield from _astray(found.results)


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


def _overview(results: Sequence[Result]) -> Grid:
    header = ("item", "what", "data", "claims that hold", "published numbers that came out")
    return Grid(header, tuple(_line(result) for result in results))


def _line(result: Result) -> tuple[str, ...]:
    held, compared = sum(claim.holds for claim in result.claims), result.compared()
    out = compared - sum(1 for _ in result.astray())
    claims = f"{held} of {len(result.claims)}" if result.claims else "–"
    numbers = f"{out} of {compared}" if compared else "–"
    return result.item, result.title, ", ".join(result.data) or "–", claims, numbers


def _item(result: Result, *, quick: bool) -> Iterator[Block]:
    yield Heading(2, f"{result.item}: {result.title}")
    for table in result.tables:
        yield caption(table)
        yield Grid(table.columns, tuple(tuple(shown(cell) for cell in row) for row in table.rows))
    yield from result.figures
    if result.claims:
        yield Heading(3, "What should come out" + (", by the few trials of a quick run" if quick else ""))
        yield tuple(f"{'✓' if c.holds else '✗'} {c.text}: {c.found}" for c in result.claims)
    if result.notes:
        yield Heading(3, "Notes")
        yield tuple(result.notes)


def _astray(results: Sequence[Result]) -> Iterator[Block]:
    lines = tuple(_lines_astray(results))
    yield Heading(2, "Published numbers that did not come out")
    compared = sum(result.compared() for result in results)
    if not lines:
        yield f"None of {compared:,} compared." if compared else "None was compared: the data here are not the paper's."
        return
    yield f"{counted(len(lines), 'number')} of {compared:,} compared."
    yield Grid(("table", "where", "ours", "published", "difference"), lines)


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


# -- Markdown ------------------------------------------------------------------------------------------------


def markdown(found: Reproduction, pictures: str) -> str:
    """The page as Markdown, with its pictures in a folder beside it."""
    return "\n\n".join(_markdown(block, pictures) for block in blocks(found)) + "\n"


def _markdown(block: Block, pictures: str) -> str:
    if isinstance(block, Heading):
        return f"{'#' * block.level} {block.text}"
    if isinstance(block, Grid):
        rows = [block.header, ("---",) * len(block.header), *block.rows]
        return "\n".join("| " + " | ".join(text.replace("|", "\\|") for text in row) + " |" for row in rows)
    if isinstance(block, Figure):
        return f"![{block.name}]({pictures}/{block.name}.svg)\n\n*{block.caption}*"
    return block if isinstance(block, str) else "\n".join(f"- {line}" for line in block)


# -- HTML ----------------------------------------------------------------------------------------------------


def html(found: Reproduction) -> str:
    """The page as one HTML file, pictures inside, which needs no network."""
    css = files("openloop.reporting").joinpath("templates", "page.css").read_text(encoding="utf-8")
    body = "\n".join(_html(block) for block in blocks(found))
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(found.paper.title)}</title>\n<style>{css}\n{STYLE}</style>\n"
        f"</head>\n<body>\n<main>\n{body}\n</main>\n</body>\n</html>\n"
    )


def _html(block: Block) -> str:
    if isinstance(block, Heading):
        return f"<h{block.level}>{escape(block.text)}</h{block.level}>"
    if isinstance(block, Grid):
        head = "".join(f'<th scope="col">{_inline(text)}</th>' for text in block.header)
        rows = "".join(f"<tr>{''.join(f'<td>{_inline(text)}</td>' for text in row)}</tr>" for row in block.rows)
        return (
            f'<div class="scroll" tabindex="0"><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>'
        )
    if isinstance(block, Figure):
        data = base64.b64encode(svg(block).encode()).decode()
        caption = _inline(block.caption)
        picture = f'<img alt="{escape(block.caption)}" src="data:image/svg+xml;base64,{data}">'
        return f"<figure>{picture}<figcaption>{caption}</figcaption></figure>"
    if isinstance(block, str):
        return f"<p>{_inline(block)}</p>"
    return f"<ul>{''.join(f'<li>{_inline(line)}</li>' for line in block)}</ul>"


def _inline(text: str) -> str:
    """Text with its **bold** and `code` as HTML."""
    bold = re.sub(r"\*\*(.+?)\*\*", r"<strong>\1</strong>", escape(text))
    return re.sub(r"`(.+?)`", r"<code>\1</code>", bold)
