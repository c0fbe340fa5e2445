"""The command line: what each command asks for, and how its answer is printed.

Nothing heavy is imported before a command runs, so that `openloop --help` is quick.
"""

from __future__ import annotations

import io
import json as jsonlib
import os
import sys
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

import openloop
from openloop.errors import OpenloopError

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.text import Text

    from openloop.demonstration import Demonstration, Judgement, Order, Step
    from openloop.propensity.checking import Check

FAILED, MISUSED, INTERRUPTED = 1, 2, 130
MAX_WIDTH = 100  # longer lines of prose are hard to read
PICTURES = (".html", ".svg", ".png")


class Program(TyperGroup):
    """Commands whose foreseen failures are one line on stderr."""

    def invoke(self, ctx: Any) -> Any:
        """Run a command; what openloop refuses exits with 2, Ctrl-C with 130."""
        try:
            return super().invoke(ctx)
        except OpenloopError as error:
            typer.echo(f"openloop: {error}", err=True)
            raise typer.Exit(MISUSED) from error
        except KeyboardInterrupt as error:
            raise typer.Exit(INTERRUPTED) from error


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
    app()


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"openloop {openloop.__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit."),
    ] = False,
) -> None:
    """Options of all commands."""


def _console() -> Console:
    from rich.console import Console

    console = Console(highlight=False, markup=False)
    console.width = min(console.width, MAX_WIDTH)
    return console


def _writable(target: str | None) -> str | None:
    """A file that can be written, "-" or nothing; told before the work, not after it."""
    if target is None or target == "-":
        return target
    path = Path(target)
    if not path.parent.is_dir() or not os.access(path.parent, os.W_OK):
        raise typer.BadParameter(f"folder {str(path.parent)!r} must exist and be writable; create it first.")
    if path.exists() and not path.is_file():
        raise typer.BadParameter(f"{target!r} must be a file; give a file name, or - for stdout.")
    return target


def _picture(target: str | None) -> str | None:
    if target is not None and Path(target).suffix.lower() not in PICTURES:
        raise typer.BadParameter(f"{target!r} must end in one of {', '.join(PICTURES)}; rename it.")
    return _writable(target)


def _column(text: str | None) -> str | int | None:
    """A column's name, or its position in digits."""
    return int(text) if text is not None and text.isdecimal() else text


def _whole(text: str) -> int:
    try:
        return int(text)
    except ValueError as error:
        raise typer.BadParameter(f"must be a whole number, got {text!r}; write it in digits.") from error


# -- demo ----------------------------------------------------------------------------------------------------

TITLES = {"mae": "mae, the mean absolute error", "dcg@50": "dcg@50, the discounted gain of the top 50"}
DIGITS = {"mae": 3, "dcg@50": 2}  # as in the paper's Table 1


@app.command()
def demo(
    users: Annotated[int, typer.Option(parser=_whole, metavar="N", help="Users of the world.")] = 944,
    items: Annotated[int, typer.Option(parser=_whole, metavar="N", help="Items of the world.")] = 1683,
    seed: Annotated[
        int, typer.Option(parser=_whole, metavar="N", help="The same seed gives the same world and log.")
    ] = 0,
    json: Annotated[
        str | None,
        typer.Option(
            metavar="FILE|-", callback=_writable, help="Write JSON to a file, or to stdout instead of tables."
        ),
    ] = None,
) -> None:
    """Judge five models by a biased log, in a world where the truth is known."""
    from openloop.demonstration import demonstrate

    with _progress() as step:
        shown = demonstrate(users, items, seed=seed, step=step)
    if json == "-":
        typer.echo(shown.to_json())
        return
    console = _console()
    for part in _demo_page(shown, narrow=console.width < 90):
        console.print(part)
    if json is not None:
        shown.to_json(json)
        typer.echo(f"wrote {json}", err=True)


@contextmanager
def _progress() -> Generator[Step, None, None]:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("", total=1.0)
        yield lambda what, done: bar.update(task, description=what, completed=done)


def _demo_page(shown: Demonstration, *, narrow: bool) -> Iterator[RenderableType]:
    from openloop.demonstration import METRICS

    yield shown.setting()
    for metric in METRICS:
        yield ""
        yield _demo_table(shown, metric, narrow=narrow)
    yield ""
    yield _mark(good=True, after=" the interval holds the truth   ") + _mark(good=False, after=" it does not")
    for finding in shown.findings():
        yield ""
        yield finding


def _demo_table(shown: Demonstration, metric: str, *, narrow: bool) -> RenderableType:
    from rich.table import Table

    from openloop.demonstration import ESTIMATORS

    title = f"{TITLES[metric]}: {shown.better[metric]} is better"
    table = Table(title=title, title_justify="left", title_style="bold", box=None, pad_edge=False)
    table.collapse_padding = narrow
    table.add_column("model", no_wrap=True)
    for name in ("truth", *ESTIMATORS):
        table.add_column(name, justify="right", no_wrap=True)
    for model in shown.models:
        judged = [shown[model, metric, estimator] for estimator in ESTIMATORS]
        digits = _digits(judged, DIGITS[metric])
        table.add_row(model, f"{judged[0].truth:.{digits}f}", *(_judged_cell(j, digits) for j in judged))
    table.add_row("in order?", "", *(_order_cell(shown.order(metric, estimator)) for estimator in ESTIMATORS))
    return table


def _digits(judged: list[Judgement], digits: int) -> int:
    """One more where a half-width would be shown as 0."""
    halves = [(j.high - j.low) / 2 for j in judged]
    return digits + any(1e-9 < half < 0.5 * 10**-digits for half in halves)


def _judged_cell(judged: Judgement, digits: int) -> Text:
    half = (judged.high - judged.low) / 2
    return _mark(judged.covers, before=f"{judged.value:.{digits}f}±{half:.{digits}f} ")


def _order_cell(order: Order) -> Text:
    return _mark(order.right, after=f" {len(order.wrong)} of {order.pairs} wrong")


def _mark(good: bool, *, before: str = "", after: str = "") -> Text:
    from rich.text import Text

    return Text.assemble(before, ("✓" if good else "✗", "green" if good else "bold red"), after)


# -- propensity ----------------------------------------------------------------------------------------------


@app.command()
def propensity(
    log: Annotated[str, typer.Argument(metavar="LOG", help="A log: CSV, TSV, Parquet or JSON lines.")],
    model: Annotated[
        str, typer.Option(metavar="MODEL", help="popularity, naive-bayes, logistic, low-rank or boosted.")
    ],
    out: Annotated[
        str, typer.Option(metavar="FILE", callback=_writable, help="The log again: .csv, .tsv, .parquet or .jsonl.")
    ],
    uniform: Annotated[
        str | None, typer.Option(metavar="FILE", help="Ratings of cells drawn at random, for naive-bayes.")
    ] = None,
    user_features: Annotated[
        str | None, typer.Option(metavar="FILE", help="A row of covariates for each user, for logistic and boosted.")
    ] = None,
    item_features: Annotated[
        str | None, typer.Option(metavar="FILE", help="A row of covariates for each item, for logistic and boosted.")
    ] = None,
    user: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="The column of users: a name, or a position from 0.")
    ] = None,
    item: Annotated[str | None, typer.Option(metavar="COLUMN", help="The column of items.")] = None,
    rating: Annotated[str | None, typer.Option(metavar="COLUMN", help="The column of ratings.")] = None,
    users: Annotated[
        int | None, typer.Option(parser=_whole, metavar="N", help="All users are 0 … N-1, also who rated nothing.")
    ] = None,
    items: Annotated[int | None, typer.Option(parser=_whole, metavar="N", help="All items are 0 … N-1.")] = None,
    calibrate: Annotated[
        str, typer.Option(metavar="METHOD", help="Correct p on held-out cells: isotonic, platt or none.")
    ] = "none",
    floor: Annotated[float, typer.Option(metavar="P", help="Raise smaller propensities to this.")] = 0.0,
    quantile: Annotated[
        float | None, typer.Option(metavar="Q", help="Raise the share Q of smallest propensities to their largest.")
    ] = None,
    column: Annotated[str, typer.Option(metavar="NAME", help="The name of the new column.")] = "propensity",
    seed: Annotated[int, typer.Option(parser=_whole, metavar="N", help="The same seed gives the same file.")] = 0,
    json: Annotated[
        str | None,
        typer.Option(
            metavar="FILE|-", callback=_writable, help="Write the checks as JSON, - to stdout instead of text."
        ),
    ] = None,
    figures: Annotated[
        str | None, typer.Option(metavar="FILE", callback=_picture, help="Draw the checks: .html, .svg or .png.")
    ] = None,
) -> None:
    """Estimate who saw what: write the log back with a column of propensities, and check them.

    Rows and other columns stay as they are; a file without a header gets one: user, item, rating, time, column_5 …
    """
    from openloop.estimating import Wanted, estimate, refuse_overwriting

    wanted = Wanted(
        log=log, out=out, model=model, uniform=uniform, user_features=user_features, item_features=item_features,
        user=_column(user), item=_column(item), rating=_column(rating), users=users, items=items, column=column,
        calibrate=calibrate, floor=floor, quantile=quantile, seed=seed,
    )  # fmt: skip
    extra = [path for path in (json, figures) if path is not None and path != "-"]
    refuse_overwriting([out, *extra], wanted.inputs)
    with _progress() as step:
        done = estimate(wanted, step)
    typer.echo(done.check.to_json() if json == "-" else f"{done.summary()}\n\n{done.check}")
    if json is not None and json != "-":
        done.check.to_json(json)
    if figures is not None:
        _draw(done.check, figures)
    for path in (out, *extra):
        typer.echo(f"wrote {path}", err=True)


def _draw(check: Check, path: str) -> None:
    from openloop.reporting.figures import check_figures, save

    save(check_figures(check), path)


# -- doctor --------------------------------------------------------------------------------------------------


@app.command()
def doctor(
    json: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")] = False,
) -> None:
    """Say what is installed, what is missing, and what this machine offers."""
    from openloop.diagnosis import diagnose

    found = diagnose()
    if json:
        typer.echo(jsonlib.dumps(found, indent=2, ensure_ascii=False))
    else:
        console = _console()
        for part in _doctor_page(found):
            console.print(part)
    if not found["ok"]:
        raise typer.Exit(FAILED)


def _doctor_page(found: dict[str, Any]) -> Iterator[RenderableType]:
    machine = found["machine"]
    yield f"openloop {found['openloop']}, Python {found['python']}, {found['platform']}"
    memory = "unknown" if machine["memory_gib"] is None else f"{machine['memory_gib']} GiB"
    yield f"{machine['cores']} cores, {memory} of memory, {machine['numba_threads']} numba threads"
    for pool in machine["thread_pools"]:
        library = " ".join(filter(None, (pool["library"], pool["version"])))
        yield f"{pool['kind']}: {library}, {pool['threads']} threads"
    for title, parts in (("needed", found["core"]), ("optional", found["optional"])):
        yield ""
        yield _parts_table(title, parts)
    yield ""
    yield "Everything needed works." if found["ok"] else "Something needed does not work: see ✗ above."


def _parts_table(title: str, parts: list[dict[str, Any]]) -> RenderableType:
    from rich.table import Table

    table = Table("", title, "", box=None, pad_edge=False)
    for part in parts:
        absent = title == "optional" and not part["ok"]
        told = "; ".join(filter(None, (part["version"], part["problem"], part["remedy"])))
        table.add_row("–" if absent else _mark(part["ok"]), part["name"], told)
    return table
