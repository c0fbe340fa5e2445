"""`--open`: a report that was written, shown in the browser, or a line that says where it is."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from openloop.cli.options import page, say

# In the folder of the user: a browser that is kept apart from the system, as by snap, sees no temporary files.
UNNAMED = "openloop-report.html"

Open = Annotated[
    bool, typer.Option("--open", help=f"Open the report in the browser; without --report it is {UNNAMED}.")
]


def named(report: str | None, *, wanted: bool) -> str | None:
    """Where the report goes: as asked for, and where it is only to be opened, into this folder."""
    return page(UNNAMED) if wanted and report is None else report


def show_page(path: str) -> None:
    """Open a page in the browser that the system, or $BROWSER, names."""
    import webbrowser

    file = Path(path).resolve()
    if not webbrowser.open(file.as_uri()):
        say(f"no browser could be opened; the report is {file}", err=True)
