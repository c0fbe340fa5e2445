"""`--open`: a report that was written, shown in the browser, or a line that says where it is."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from openloop.cli.options import page, say

# In the folder of the user: a browser that is kept apart from the system, as by snap, sees no temporary files.
UNNAMED = "openloop-report.html"

GENERATOR, HEAD = b'<meta name="generator" content="openloop ', 2**12  # what a page of openloop has in its first bytes

Open = Annotated[bool, typer.Option("--open", help=f"Open the report in the browser; without --report as {UNNAMED}")]


def named(report: str | None, *, wanted: bool) -> str | None:
    """The report's file: as asked for, else one in this folder if it is to be opened; no other program's file."""
    if report is not None or not wanted:
        return report
    if Path(UNNAMED).is_file() and GENERATOR not in Path(UNNAMED).read_bytes()[:HEAD]:
        raise typer.BadParameter(f"{UNNAMED!r} is a file that openloop did not write; name another with --report.")
    return page(UNNAMED)


def show_page(path: str) -> None:
    """Open a page in the browser that the system, or $BROWSER, names."""
    import webbrowser

    file = Path(path).resolve()
    if not webbrowser.open(file.as_uri()):
        say(f"no browser could be opened; the report is {file}", err=True)
