"""`openloop doctor`: what is installed, what is missing, and what the machine offers, as tables."""

from __future__ import annotations

import json as jsonlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from openloop.cli.options import FAILED, mark, show

if TYPE_CHECKING:
    from rich.console import RenderableType


def doctor(
    json: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")] = False,
) -> None:
    """Say what is installed, what is missing, and what this machine offers."""
    from openloop.commands.doctor import diagnose

    found = diagnose()
    if json:
        typer.echo(jsonlib.dumps(found, indent=2, ensure_ascii=False))
    else:
        show(_page(found))
    if not found["ok"]:
        raise typer.Exit(FAILED)


def _page(found: dict[str, Any]) -> Iterator[RenderableType]:
    machine = found["machine"]
    yield f"openloop {found['openloop']}, Python {found['python']}, {found['platform']}"
    memory = "unknown" if machine["memory_gib"] is None else f"{machine['memory_gib']} GiB"
    yield f"{machine['cores']} cores, {memory} of memory, {machine['numba_threads']} numba threads"
    for pool in machine["thread_pools"]:
        library = " ".join(filter(None, (pool["library"], pool["version"])))
        yield f"{pool['kind']}: {library}, {pool['threads']} threads"
    for title, parts in (("needed", found["core"]), ("optional", found["optional"])):
        yield ""
        yield _table(title, parts)
    yield ""
    yield "Everything needed works." if found["ok"] else "Something needed does not work: see ✗ above."


def _table(title: str, parts: list[dict[str, Any]]) -> RenderableType:
    from rich.table import Table

    table = Table("", title, "", box=None, pad_edge=False)
    for part in parts:
        absent = title == "optional" and not part["ok"]
        state = "; ".join(filter(None, (part["version"], part["problem"], part["remedy"])))
        table.add_row("–" if absent else mark(part["ok"]), part["name"], state)
    return table
