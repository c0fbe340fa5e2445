"""`openloop datasets`: what there is, what is here, a download, and a check of the files."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from openloop.cli.options import FAILED, Json, console, files, mark, progress, tell_written
from openloop.errors import InputError

if TYPE_CHECKING:
    from rich.console import RenderableType

    from openloop.data.datasets import Check, Dataset, Fetched

commands = typer.Typer(
    name="datasets",
    help="Public data sets: what there is, what is here, downloads and checks.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)

Folder = Annotated[
    str | None,
    typer.Option("--data", metavar="DIR", help="The folder of all data sets; else $OPENLOOP_DATA, else ./data."),
]
Name = Annotated[str, typer.Argument(metavar="NAME", help="A data set, as `openloop datasets list` calls it.")]


@commands.command("list")
def list_(data: Folder = None, json: Json = None) -> None:
    """List the data sets: what they are, their terms, and which are here."""
    from openloop.data.datasets import CATALOGUE, data_folder, present

    known = [(dataset, present(dataset.name, data)) for dataset in CATALOGUE]
    if json is not None:
        _write({"folder": str(data_folder(data)), "datasets": [_entry(dataset, here) for dataset, here in known]}, json)
    if json != "-":
        terminal = console()
        terminal.print(_overview(known))
        terminal.print(f"\n✓ is in {data_folder(data)}")
        terminal.print("apply: not downloaded; `openloop datasets get NAME` says where to apply, and shows all terms")


@commands.command()
def get(
    name: Name,
    data: Folder = None,
    yes: Annotated[bool, typer.Option("--yes", help="Accept the terms of use without being asked.")] = False,
    url: Annotated[str | None, typer.Option(metavar="URL", help="A mirror of the archive.")] = None,
    json: Json = None,
) -> None:
    """Show the terms of a data set and, once they are accepted, download, verify and unpack it."""
    from openloop.data.datasets import fetch, find

    dataset = find(name)
    typer.echo(f"{dataset.title}\nfrom {dataset.home}\nterms of use: {dataset.terms}", err=True)
    if not dataset.gated and not (yes or _accepted(name)):
        typer.echo("not downloaded", err=True)
        raise typer.Exit(FAILED)
    with progress() as step:
        fetched = fetch(name, data, accept_terms=True, url=url, step=step)
    if json is not None:
        _write(asdict(fetched) | {"folder": str(fetched.folder)}, json)
    if json != "-":
        terminal = console()
        for line in _told(fetched):
            terminal.print(line)


@commands.command()
def check(name: Name, data: Folder = None, json: Json = None) -> None:
    """Check that the files of a data set are there, parse, and hold what is documented; exit code 1 if not."""
    from openloop.data.datasets import check as checked

    found = checked(name, data)
    if json is not None:
        _write(asdict(found) | {"folder": str(found.folder), "ok": found.ok}, json)
    if json != "-":
        terminal = console()
        for part in _findings(found):
            terminal.print(part)
    if not found.ok:
        raise typer.Exit(FAILED)


def _accepted(name: str) -> bool:
    if not _terminal():
        msg = (
            f"{name}: its terms must be accepted first, and there is no terminal to ask on; pass --yes to accept them."
        )
        raise InputError(msg)
    return typer.confirm("Do you accept these terms?", err=True)


def _terminal() -> bool:
    return sys.stdin.isatty()


def _write(content: dict[str, Any], target: str) -> None:
    from openloop.files import json_text

    if target == "-":
        typer.echo(json_text(content))
    else:
        json_text(content, target)
        tell_written(*files(target))


def _entry(dataset: Dataset, here: bool) -> dict[str, Any]:
    return asdict(dataset) | {"gated": dataset.gated, "present": here}


def _overview(known: list[tuple[Dataset, bool]]) -> RenderableType:
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    table.add_column("")
    table.add_column("name", no_wrap=True)
    for heading in ("what", "users × items; rows", "terms"):
        table.add_column(heading)
    for dataset, here in known:
        terms = ("apply: " if dataset.gated else "") + dataset.terms.split(";")[0]
        table.add_row(mark(here) if here else "–", dataset.name, dataset.title, str(dataset.shapes[0]), terms)
    return table


def _told(fetched: Fetched) -> Iterator[str]:
    yield f"{len(fetched.files):,} files in {fetched.folder}"
    yield f"SHA-256 {fetched.sha256}, {fetched.size:,} bytes"
    if fetched.verified:
        yield f"verified: its {fetched.verified.upper()} is the known one"
    else:
        yield "not verified: no digest of this archive is known"
    yield f"`openloop datasets check {fetched.name} --data {Path(fetched.folder).parent}` looks at what it holds"


def _findings(found: Check) -> Iterator[RenderableType]:
    from rich.table import Table

    table = Table("", found.name, box=None, pad_edge=False)
    table.add_column("", overflow="fold")
    for finding in found.findings:
        table.add_row("–" if finding.good is None else mark(finding.good), finding.what, finding.found)
    yield table
    yield from (f"note: {note}" for note in found.notes)
    yield "Nothing is wrong." if found.ok else "Something is wrong: see ✗ above."
