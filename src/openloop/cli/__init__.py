"""ASK AND PRINT: the command line; the module of the same name in openloop.commands does the work.

Nothing heavy is imported before a command runs, so that `openloop --help` is quick.
"""

from __future__ import annotations

import io
import os
import signal
import sys
import threading
from typing import Annotated, Any

# Until all is imported Ctrl-C ends the program at once: nothing is there yet that could say it in a line.
starting = threading.current_thread() is threading.main_thread()
starting = starting and signal.getsignal(signal.SIGINT) is signal.default_int_handler
if starting:
    signal.signal(signal.SIGINT, signal.SIG_DFL)

import typer
from typer.core import TyperGroup

import openloop
from openloop.cli import audit, datasets, demo, doctor, predict, propensity, report, reproduce, select, train
from openloop.cli.failures import failure_of, stdout_error, tell, told
from openloop.cli.signals import ending_in_order
from openloop.support.clock import VARIABLE, fixed

WIDEST = 4  # digits of the width of a terminal


class Program(TyperGroup):
    """Commands whose failures are one line on stderr: `openloop.cli.failures` says how each ends."""

    def make_context(self, *args: Any, **more: Any) -> Any:
        """Read the options of all commands, which may print something."""
        with told(lambda: None):
            _leave_out_what_packages_fail_on()
            return super().make_context(*args, **more)

    def invoke(self, ctx: Any) -> Any:
        """Run a command."""
        with told(lambda: self.commands.get(ctx.invoked_subcommand or "")):
            return super().invoke(ctx)


app = typer.Typer(
    name="openloop",
    cls=Program,
    help="How good a recommender really is, when its users and the running system chose the data.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def main() -> None:
    """The console script."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal without ✓ shows ?, and the words beside it
    with ending_in_order():
        try:
            _run()
        except (OSError, KeyboardInterrupt) as error:  # before or after the command
            failure = failure_of(error)
            tell(failure)
            sys.exit(failure.code)


def _run() -> None:
    try:
        app(prog_name=app.info.name)
    finally:
        if (error := stdout_error()) is not None:  # what was printed has not arrived
            raise error


def _leave_out_what_packages_fail_on() -> None:
    """NumPy fails on an empty date, rich on a width that no terminal has."""
    if not os.environ.get(VARIABLE, "unset"):
        del os.environ[VARIABLE]
    if len(os.environ.get("COLUMNS", "")) > WIDEST:
        del os.environ["COLUMNS"]


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"openloop {openloop.__version__}")
        raise typer.Exit


@app.callback()
def program(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit."),
    ] = False,
) -> None:
    """Options of all commands."""
    if fixed() is not None:  # the same bytes are asked for, and several threads of Polars add in any order
        os.environ.setdefault("POLARS_MAX_THREADS", "1")


for command in (
    demo.demo, audit.audit, propensity.propensity, train.train, select.select, predict.predict,
    report.report, reproduce.reproduce, doctor.doctor,
):  # fmt: skip
    app.command()(command)
app.add_typer(datasets.commands)

if starting:
    signal.signal(signal.SIGINT, signal.default_int_handler)
