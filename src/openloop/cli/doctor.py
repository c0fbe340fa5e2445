"""`openloop doctor`: what is installed and missing, what the machine offers; what a large fit would take."""

from __future__ import annotations

import json as jsonlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from openloop.cli.options import FAILED, mark, say, show
from openloop.errors import InputError

if TYPE_CHECKING:
    from rich.console import RenderableType

TITLES = {"memory": "in memory, on one machine", "disk": "from disk, on one machine", "Spark": "on Spark"}
SIZES = "With --plan: rows=1e9 users=1e8 items=1e6 factors=64 cores=160, and executors=10, network=1e9, passes=50."


def doctor(
    sizes: Annotated[list[str] | None, typer.Argument(help=SIZES)] = None,
    plan: Annotated[bool, typer.Option("--plan", help="Estimate what a fit of these sizes takes.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")] = False,
) -> None:
    """Say what is installed, what is missing, and what this machine offers; or what a large fit would take."""
    if plan or sizes:
        _tell_plan(sizes or [], plan=plan, json=json)
        return
    from openloop.commands.doctor import diagnose

    found = diagnose()
    if json:
        say(jsonlib.dumps(found, indent=2, ensure_ascii=False))
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


# -- a plan ----------------------------------------------------------------------------------------------------


def _tell_plan(sizes: list[str], *, plan: bool, json: bool) -> None:
    from openloop.commands.fit_plan import planned

    if not plan:
        raise InputError(f"doctor: {sizes[0]!r} is a size of a fit that is planned; pass --plan, too.")
    found = planned(sizes)
    if json:
        say(jsonlib.dumps(found, indent=2, ensure_ascii=False))
    else:
        show(_plan_page(found))


def _plan_page(found: dict[str, Any]) -> Iterator[RenderableType]:
    asked = found["asked"]
    yield (
        f"{asked['rows']:,} rows, {asked['users']:,} users, {asked['items']:,} items, {asked['factors']} factors; "
        f"{asked['cores']:,} cores, {asked['executors']:,} executors"
    )
    for fit in found["fits"]:
        yield ""
        yield _fit_table(fit, asked["passes"])
    yield ""
    yield "For spark-submit:"
    yield from (f"  --conf {name}={value}" for name, value in found["fits"][-1]["settings"].items())
    yield ""
    yield from found["limits"]


def _fit_table(fit: dict[str, Any], passes: int) -> RenderableType:
    from rich.table import Table

    from openloop.support.sizes import written
    from openloop.support.wording import lasting

    table = Table(TITLES[fit["where"]], "", box=None, pad_edge=False)
    table.add_row("blocks", f"{fit['blocks']:,}")
    for title, sizes in (("memory", fit["memory"]), ("disk", fit["disk"]), ("moved in a pass", fit["moved"])):
        for name, size in sizes.items():
            table.add_row(f"{title}: {name}", written(size))
    table.add_row("a pass, CPU time", lasting(fit["cpu"]))
    table.add_row("a pass, on all cores", lasting(fit["clock"]))
    if fit["network"] is not None:
        table.add_row("a pass, on the network", lasting(fit["network"]))
    table.add_row(f"a fit of {passes:,} passes", lasting(fit["fit_clock"]))
    return table
