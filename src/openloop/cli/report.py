"""`openloop report`: an audit's JSON as its page and its tables, without the data; or two of them compared."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from openloop.cli import options
from openloop.cli.audit_tables import printed
from openloop.cli.change_tables import changed
from openloop.cli.opening import Open, named, show_page
from openloop.cli.options import answer, files, page, request, tell_written

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rich.console import RenderableType


def report(
    ctx: typer.Context,
    audit: Annotated[str, typer.Argument(metavar="AUDIT.json", help="What `openloop audit --json` wrote.")],
    newer: Annotated[
        str | None, typer.Argument(metavar="NEWER.json", help="Another audit: say what changed since the first.")
    ] = None,
    report: Annotated[
        str | None, typer.Option(metavar="FILE.html", callback=page, help="Write the page, the same as the audit's.")
    ] = None,
    open_: Open = False,
    json: options.Json = None,
) -> None:
    """Make the report of an audit again from its JSON, without the data; or compare two audits.

    The page is the one that `openloop audit --report` writes, byte for byte. For two audits it shows what changed:
    settings, verdict, order of the models, estimates and what they rest on.

    Exit codes: 0 whatever the verdict; 2 if a file is not an audit; 1 if something outside fails.
    """
    from openloop.commands.report import ReportRequest, consistent, found_in, write_page
    from openloop.commands.table_files import refuse_overwriting

    report = named(report, wanted=open_)
    wanted = request(ReportRequest, ctx)
    refuse_overwriting(files(report, json), wanted.inputs)
    found = found_in(wanted)
    with consistent(wanted):
        parts = list(_parts(found, ctx))  # what cannot be printed is not written either
        content = None if json is None else found.records()
    if report is not None:
        write_page(found, report, wanted)
        tell_written(report)
    answer(json, content, parts)
    if open_ and report is not None:
        show_page(report)


def _parts(found: Any, ctx: typer.Context) -> Iterable[RenderableType]:
    """What is printed; an audit speaks in the words of its own command."""
    from openloop.audits.results import Audit

    if not isinstance(found, Audit):
        return changed(found)
    program: Any = ctx.find_root().command
    return printed(found, program.get_command(ctx, "audit"))
