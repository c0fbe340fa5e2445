"""`openloop reproduce`: tables and figures of the papers, recomputed beside the published numbers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from openloop.cli import options
from openloop.cli.options import (
    complain,
    console,
    files,
    mark,
    progress,
    say,
    tell_written,
    whole,
    writable,
    write_json,
)
from openloop.cli.voice import for_command

if TYPE_CHECKING:
    from rich.console import Console

    from openloop.studies.kit.results import Result, Table
    from openloop.studies.kit.running import Item, Reproduction

WIDE = 200
LEGEND = (
    "✓ can run, – cannot, because its data sets or a package are missing. Minutes are for a full run on two cores. If "
    "the trials of an earlier run are cached, only the analysis is left, which may still take minutes."
)


def reproduce(
    ctx: typer.Context,
    paper: Annotated[
        str | None, typer.Argument(metavar="PAPER", help="schnabel2016, lim2015, jadidinejad2021 or race.")
    ] = None,
    items: Annotated[
        list[str] | None,
        typer.Argument(metavar="[ITEM]...", help="Such as table1; by default all whose data are present."),
    ] = None,
    data: options.DataFolder = None,
    list_: Annotated[
        bool, typer.Option("--list", help="Print every item: what it needs, and about how long it takes.")
    ] = False,
    quick: Annotated[bool, typer.Option("--quick", help="Fewer trials and models: under a minute.")] = False,
    seed: options.Seed = 0,
    workers: Annotated[
        int | None,
        typer.Option(parser=whole, metavar="N", help="Processes; by default one per core. 0 runs in this one."),
    ] = None,
    cache: Annotated[
        str | None, typer.Option(metavar="DIR", help="Where trials are kept; an interrupted run continues from there.")
    ] = None,
    json: options.Json = None,
    report: Annotated[
        str | None,
        typer.Option(metavar="FILE", callback=writable, help="A page: .html, or .md with a folder of figures."),
    ] = None,
) -> None:
    """Recompute what a paper prints, by its protocol, and show it beside the published numbers.

    An interrupted run continues when the same command is given again, and gives the same numbers.
    """
    from openloop.commands.table_files import refuse_overwriting
    from openloop.data.datasets import data_folder
    from openloop.errors import InputError
    from openloop.studies.kit import running
    from openloop.studies.kit.page_files import check_place, write_page

    folder = for_command(running.looked_in(data_folder(data)), ctx.command)
    if list_:
        _print_list(list(running.listed(data, paper)), json, folder)
        return
    if paper is None:
        raise InputError(f"reproduce: which paper? One of {', '.join(running.STUDIES)}; --list shows their items.")
    refuse_overwriting(files(json, report), [])
    if report is not None:
        check_place(Path(report), items or [item.name for item in running.study(paper).ITEMS])
    try:
        with progress() as step:
            found = running.reproduce(
                paper, items or (), data=data, quick=quick, seed=seed, workers=workers, cache=cache, step=step
            )
    except KeyboardInterrupt:
        complain("finished trials are kept; the same command continues from there")
        raise
    for note in found.notes:
        complain(note)
    if json == "-":
        say(found.to_json())
    else:
        _print(found, folder)
    for path in files(json):
        found.to_json(path)
        tell_written(path)
    if report is not None:
        written = write_page(found, Path(report))
        tell_written(*map(str, written.files))
        for path in written.kept:
            say(f"kept {path}, because it was changed after openloop wrote it", err=True)


def _print(found: Reproduction, folder: str) -> None:
    from openloop.studies.kit.page import marks

    out = console()
    out.print(str(found.paper), style="bold")
    out.print(f"Published numbers are in brackets{marks(found)}")
    for result in found.results:
        out.print()
        _print_result(result)
    for name, why in found.left_out.items():
        out.print(f"\n{name} was left out: it {why}.")
    for result in found.quoted:
        out.print(f"\n{result.item}, not rerun: {result.title}", style="bold")
        for table in result.tables:
            _print_table(table)
    compared = sum(result.compared() for result in found.results)
    if compared:
        astray = sum(1 for result in found.results for _ in result.astray())
        out.print(f"\n{compared - astray:,} of {compared:,} published numbers were reproduced.")
    if found.left_out and found.not_run():
        out.print(f"\n{folder}")


def _print_result(result: Result) -> None:
    from openloop.studies.kit.page import told

    out = console()
    on = f" ({', '.join(result.data)})" if result.data else ""
    out.print(f"{result.item}: {result.title}{on}", style="bold")
    for table in result.tables:
        _print_table(table)
    for claim in result.claims:
        out.print(told(claim) if claim.undecided else mark(claim.holds, after=told(claim)[1:]))
    for note in result.notes:
        out.print(f"- {note}")


def _print_table(table: Table) -> None:
    from rich import box
    from rich.table import Table as Grid

    from openloop.studies.kit.page import caption, shown

    title = caption(table).replace("**", "")
    grid = Grid(box=box.SIMPLE, title=title, title_justify="left", title_style="")
    for number, column in enumerate(table.columns):
        grid.add_column(column, justify="right" if number else "left")
    for row in table.rows:
        grid.add_row(*(shown(cell) for cell in row))
    wide().print(grid)


def wide() -> Console:
    """Standard output; a file or pipe is as wide as a table wants."""
    out = console()
    if not out.is_terminal:
        out.width = WIDE
    return out


def _print_list(lines: list[tuple[str, Item, tuple[str, ...], str | None]], json: str | None, folder: str) -> None:
    from rich import box
    from rich.table import Table as Grid

    records = [
        {
            "paper": paper, "item": item.name, "title": item.title, "data": list(item.data), "present": list(here),
            "minutes": item.minutes, "packages": list(item.packages), "cannot_run": why,
        }
        for paper, item, here, why in lines
    ]  # fmt: skip
    if json is not None:
        write_json(records, json)
        return
    grid = Grid("", "paper", "item", "what", "data, one of", "minutes", box=box.SIMPLE)
    for column in grid.columns:
        column.no_wrap = column.header != "what"
    for paper, item, here, why in lines:
        data = "\n".join(f"{'✓' if name in here else '–'} {name}" for name in item.data)
        grid.add_row(
            mark(True) if why is None else "–", paper, item.name, item.title, data or "none needed", f"{item.minutes:g}"
        )
    wide().print(grid)
    for text in (LEGEND, *_missing(lines), folder):
        console().print(text)


def _missing(lines: list[tuple[str, Item, tuple[str, ...], str | None]]) -> Iterator[str]:
    """One line for each missing data set or package without which an item cannot run."""
    from openloop.studies.kit.running import EXTRAS, absent

    lacking = [(item, here) for _, item, here, why in lines if why is not None]
    for name in dict.fromkeys(name for item, here in lacking if not here for name in item.data):
        yield f"{name} is missing: `openloop datasets get {name}` brings or describes it"
    for package in dict.fromkeys(package for item, _ in lacking for package in absent(item)):
        yield f"{package} is missing: pip install 'openloop[{EXTRAS[package]}]'"
