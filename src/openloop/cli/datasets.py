"""`openloop datasets`: what there is, what is here, a download, and a check of the files."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from openloop.cli.options import FAILED, DataFolder, Json, answer, mark, progress, say
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

_NAMED = "A data set, as `openloop datasets list` calls it"
Name = Annotated[str, typer.Argument(metavar="NAME", help=f"{_NAMED}.")]
Names = Annotated[str | None, typer.Argument(metavar="NAME", help=f"{_NAMED}; without it, all that are here.")]

_FOOTER = (
    "documented: numbers of the usual version; `openloop datasets check NAME` counts what is here",
    "by hand: not downloaded; `openloop datasets get NAME` says where to get it, and shows all terms",
)


@commands.command("list")
def list_(data: DataFolder = None, json: Json = None) -> None:
    """List the data sets: what they are, their terms, and which are here."""
    from openloop.data.datasets import CATALOGUE, data_folder, whereabouts

    folder = data_folder(data)
    known = [(dataset, whereabouts(dataset.name, data)) for dataset in CATALOGUE]
    content = {"folder": str(folder), "datasets": [_entry(dataset, place) for dataset, place in known]}
    here = f"\n✓ is in {folder}" + ("" if folder.is_dir() else ", which does not exist")
    answer(json, content, [_overview(known), here, *_FOOTER])


@commands.command()
def get(
    name: Name,
    data: DataFolder = None,
    yes: Annotated[bool, typer.Option("--yes", help="Accept the terms of use without being asked.")] = False,
    url: Annotated[str | None, typer.Option(metavar="URL", help="A mirror of the archive.")] = None,
    json: Json = None,
) -> None:
    """Show the terms of a data set and, once they are accepted, download, verify, unpack and check it.

    Exit code 1 if the check finds something wrong.
    """
    from openloop.data.datasets import check as checked
    from openloop.data.datasets import fetch, find

    dataset = find(name)
    say("\n".join(_offered(dataset, url)), err=True)
    if not dataset.gated and not (yes or _accepted(dataset)):
        say("not downloaded", err=True)
        raise typer.Exit(FAILED)
    with progress() as step:
        fetched = fetch(name, data, accept_terms=True, url=url, step=step)
        step("checking", 1.0)
        found = checked(name, data)
    content = asdict(fetched) | {"folder": str(fetched.folder), "check": _checked(found)}
    answer(json, content, (*_downloaded(fetched), "", *_findings(found)))
    if not found.ok:
        raise typer.Exit(FAILED)


@commands.command()
def check(name: Names = None, data: DataFolder = None, json: Json = None) -> None:
    """Check that the files of a data set are there, parse, and hold what is documented; exit code 1 if not.

    Without NAME, all data sets that are here.
    """
    from openloop.data.datasets import check as checked

    every = [checked(one, data) for one in ([name] if name else _present(data))]
    fine = all(found.ok for found in every)
    records = [_checked(found) for found in every]
    parts = [part for found in every for part in ("", *_findings(found))][1:]
    answer(json, records[0] if name else {"ok": fine, "checks": records}, parts)
    if not fine:
        raise typer.Exit(FAILED)


def _present(data: str | None) -> list[str]:
    from openloop.data.datasets import CATALOGUE, data_folder, present

    here = [dataset.name for dataset in CATALOGUE if present(dataset.name, data)]
    if not here:
        msg = f"datasets: none is in {str(data_folder(data))!r}; `openloop datasets list` names them, or give --data."
        raise InputError(msg)
    return here


def _offered(dataset: Dataset, url: str | None) -> Iterator[str]:
    yield dataset.title
    if dataset.archive is not None:
        yield f"from {url or dataset.archive.url}"
    yield f"described at {dataset.home}"
    yield f"terms of use: {dataset.terms}"


def _accepted(dataset: Dataset) -> bool:
    """Ask on a terminal; without one, an option must give the answer."""
    if _terminal():
        question = "No terms are stated. Download it?" if dataset.unstated else "Do you accept these terms?"
        return typer.confirm(question, err=True)
    asked = "no terms are stated, so you are asked first" if dataset.unstated else "its terms must be accepted first"
    remedy = "download it" if dataset.unstated else "accept them"
    raise InputError(f"{dataset.name}: {asked}, and there is no terminal to ask on; pass --yes to {remedy}.")


def _terminal() -> bool:
    return sys.stdin.isatty()


def _entry(dataset: Dataset, place: Path | None) -> dict[str, Any]:
    found = None if place is None else str(place)
    return asdict(dataset) | {"gated": dataset.gated, "present": place is not None, "found_in": found}


def _checked(found: Check) -> dict[str, Any]:
    return asdict(found) | {"folder": str(found.folder), "ok": found.ok}


def _overview(known: list[tuple[Dataset, Path | None]]) -> RenderableType:
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    table.add_column("")
    table.add_column("name", no_wrap=True)
    for heading in ("what", "documented: users × items; rows", "terms"):
        table.add_column(heading)
    for dataset, place in known:
        terms = ("by hand: " if dataset.gated else "") + dataset.terms.split(";")[0]
        here = "–" if place is None else mark(True)
        table.add_row(here, _named(dataset, place), dataset.title, str(dataset.shapes[0]), terms)
    return table


def _named(dataset: Dataset, place: Path | None) -> str:
    """The name, and the folder where that has another: it may then hold another version."""
    other = place is not None and place.name != dataset.name
    return f"{dataset.name} (in {place.name})" if place is not None and other else dataset.name


def _downloaded(fetched: Fetched) -> Iterator[str]:
    yield f"{len(fetched.files):,} files in {fetched.folder}"
    yield f"SHA-256 {fetched.sha256}, {fetched.size:,} bytes"
    if fetched.verified:
        yield f"verified: its {fetched.verified.upper()} is the known one"
    else:
        yield "not verified: no digest of this archive is known"


def _findings(found: Check) -> Iterator[RenderableType]:
    from rich.table import Table

    table = Table("", found.name, box=None, pad_edge=False)
    table.add_column("", overflow="fold")
    for finding in found.findings:
        table.add_row("–" if finding.good is None else mark(finding.good), finding.what, finding.found)
    yield table
    yield from (f"note: {note}" for note in found.notes)
    yield found.verdict
