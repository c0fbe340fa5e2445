"""Commands as tests run them, and the files that several of them read."""

from __future__ import annotations

import sys
from pathlib import Path

from typer.testing import CliRunner

from openloop import cli

INSTALLED = Path(sys.executable).parent / "openloop"


def run(*words, **env):
    """The result of a command on a terminal of 80 columns without colour."""
    return CliRunner().invoke(
        cli.app, [str(word) for word in words], env={"COLUMNS": "80", "NO_COLOR": "1", "FORCE_COLOR": None} | env
    )


def interrupted(*_args, **_options):
    """What Ctrl-C does to any function."""
    raise KeyboardInterrupt
