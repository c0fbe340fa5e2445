"""What commands share: options and their values, requests made of them, and the terminal."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from openloop.errors import quoted
from openloop.propensity.naming import FORMS
from openloop.support.escaping import visible
from openloop.support.fields import fields_of
from openloop.support.progress import Step
from openloop.support.wording import joined

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.text import Text

FAILED, MISUSED = 1, 2
DIGITS = 1000  # of a whole number; Python itself reads a few thousand
MAX_WIDTH = 100  # longer lines of prose are hard to read
PICTURES = (".html", ".svg", ".png")
PAGES = (".html", ".htm")

Request = TypeVar("Request")
Number = TypeVar("Number", int, float)


def request(kind: type[Request], ctx: typer.Context, **more: Any) -> Request:
    """The request of a command: its parameters whose names the request has; others are for the terminal."""
    return kind(**fields_of(kind, ctx.params), **more)


# -- values --------------------------------------------------------------------------------------------------


def writable(target: str | None) -> str | None:
    """A file that can be written, "-" or nothing; refused before the work, not after it."""
    if target is None or target == "-":
        return target
    path = Path(target)
    if not path.parent.is_dir() or not os.access(path.parent, os.W_OK):
        raise typer.BadParameter(f"folder {str(path.parent)!r} must exist and be writable; create it first.")
    if path.exists() and not path.is_file():
        raise typer.BadParameter(f"{target!r} must be a file; give a file name, or - for stdout.")
    return target


def picture(target: str | None) -> str | None:
    """A file to draw into."""
    if target is not None and Path(target).suffix.lower() not in PICTURES:
        raise typer.BadParameter(f"{target!r} must end in one of {', '.join(PICTURES)}; rename it.")
    return writable(target)


def page(target: str | None) -> str | None:
    """A file to write a report into."""
    if target is not None and Path(target).suffix.lower() not in PAGES:
        raise typer.BadParameter(f"{target!r} must end in {PAGES[0]}; rename it.")
    return writable(target)


def name_or_number(text: str | None) -> str | int | None:
    """A name, or a number in digits: the position of a column, or how many ids there are."""
    return int(text) if text is not None and _is_count(text) else text


def _is_count(text: str) -> bool:
    """Whether it is a number in digits, and not more of them than any count or position has."""
    return text.isdecimal() and len(text) <= DIGITS


def share_or_date(text: str | None) -> float | int | str | None:
    """A share, a number of rows, or a date."""
    if text is None or _is_count(text):
        return None if text is None else int(text)
    try:
        return float(text)
    except ValueError:
        return text


def several(given: list[str] | None) -> tuple[str, ...]:
    """The values of a repeatable option."""
    return tuple(given or ())


def listed(kind: Callable[[str], Number]) -> Callable[[str | None], tuple[Number, ...]]:
    """What reads values with commas between them, each of one kind."""
    return lambda text: () if text is None else tuple(kind(part.strip()) for part in text.split(","))


def whole(text: str) -> int:
    """A whole number."""
    try:
        return int(text)
    except ValueError as error:
        raise typer.BadParameter(f"must be a whole number, got {quoted(text)}; write it in digits.") from error


def number(text: str) -> float:
    """A number."""
    try:
        return float(text)
    except ValueError as error:
        raise typer.BadParameter(f"must be a number, got {quoted(text)}; write it in digits.") from error


# -- options of several commands -----------------------------------------------------------------------------

Log = Annotated[str, typer.Argument(metavar="LOG", help="A log: CSV, TSV, Parquet or JSON lines.")]
User = Annotated[
    str | None,
    typer.Option(metavar="COLUMN", callback=name_or_number, help="The column of users: a name, or a position from 0."),
]
Item = Annotated[str | None, typer.Option(metavar="COLUMN", callback=name_or_number, help="The column of items.")]
Rating = Annotated[str | None, typer.Option(metavar="COLUMN", callback=name_or_number, help="The column of ratings.")]
NoRating = Annotated[
    bool, typer.Option("--no-rating", help="The log has no ratings: each row is a positive, such as a click.")
]
Positive = Annotated[
    float | None,
    typer.Option(parser=number, metavar="X", help="Rows with at least this rating are positives; others are left out."),
]
Time = Annotated[
    str | None, typer.Option(metavar="COLUMN", callback=name_or_number, help="The column of times: numbers or dates.")
]
Duplicates = Annotated[
    str,
    typer.Option(
        metavar="WHICH",
        help="What repeated pairs become: an error, first or last (by time), mean, or count (their number as weight).",
    ),
]
Separator = Annotated[str | None, typer.Option(metavar="TEXT", help="What separates the fields of a text file.")]
Header = Annotated[
    bool | None, typer.Option("--header/--no-header", help="Whether the first line of a text file names the columns.")
]
Skip = Annotated[int, typer.Option(metavar="N", min=0, help="Lines to skip at the start of a text file.")]
Comment = Annotated[str | None, typer.Option(metavar="TEXT", help="Skip lines of a text file that begin with this.")]
Users = Annotated[
    int | None,
    typer.Option(parser=whole, metavar="N", help="All users are 0 … N-1, including those who rated nothing."),
]
Items = Annotated[int | None, typer.Option(parser=whole, metavar="N", help="All items are 0 … N-1.")]
Seed = Annotated[int, typer.Option(parser=whole, metavar="N", help="The same seed gives the same result.")]
Threshold = Annotated[float | None, typer.Option(parser=number, metavar="X", help="The smallest relevant rating.")]
DataFolder = Annotated[
    str | None,
    typer.Option("--data", metavar="DIR", help="The folder of all data sets; by default $OPENLOOP_DATA, or ./data."),
]
Device = Annotated[
    str | None, typer.Option(metavar="cuda", help="Work on a GPU; needs the extra cuda (torch and Triton).")
]
SafeCsv = Annotated[
    bool,
    typer.Option(
        "--safe-csv", help="Put ' before text in --out that a spreadsheet would run as a formula, such as =1+1 or @sum."
    ),
]
Json = Annotated[
    str | None,
    typer.Option(metavar="FILE|-", callback=writable, help="Write JSON to a file, or to stdout instead of text."),
]

# -- options of commands that learn --------------------------------------------------------------------------

LEARNERS = (
    "mf, adg, auc, wmf, svd, popularity, bias, dr, relmf, ordinal-mf, joint-mnar, mixture, recalibrated or stack."
)
ModelFile = Annotated[str, typer.Option("--out", metavar="FILE", callback=writable, help="The model: .safetensors.")]
WeightedBy = Annotated[
    str | None,
    typer.Option(metavar="COLUMN", callback=name_or_number, help="The propensities p; rows are weighted by 1/p."),
]
WeightFloor = Annotated[
    float,
    typer.Option(parser=number, metavar="P", help="Raise smaller propensities to this; a p of 0 is still refused."),
]
Weight = Annotated[
    str | None, typer.Option(metavar="COLUMN", callback=name_or_number, help="Weights instead of propensities.")
]
Sweeps = Annotated[
    int | None, typer.Option(parser=whole, metavar="N", help="Sweeps of each chain, for ordinal-mf and joint-mnar.")
]

# -- options of a propensity model ---------------------------------------------------------------------------

MODELS = f"{', '.join(FORMS[:-1])} or {FORMS[-1]}"
UserFeatures = Annotated[
    str | None, typer.Option(metavar="FILE", help="A row of covariates for each user, for logistic and boosted.")
]
ItemFeatures = Annotated[
    str | None, typer.Option(metavar="FILE", help="A row of covariates for each item, for logistic and boosted.")
]
Gamma = Annotated[
    float | None, typer.Option(parser=number, metavar="X", help="The exponent of popularity; estimated by default.")
]
Calibrate = Annotated[str, typer.Option(metavar="METHOD", help="Correct p on held-out cells: isotonic, platt or none.")]
Floor = Annotated[float, typer.Option(parser=number, metavar="P", help="Raise smaller propensities to this.")]
Quantile = Annotated[
    float | None,
    typer.Option(parser=number, metavar="Q", help="Raise the smallest share Q of propensities to their quantile Q."),
]


def files(*given: str | None) -> list[str]:
    """The files among these outputs: neither nothing nor stdout."""
    return [path for path in given if path is not None and path != "-"]


# -- the terminal --------------------------------------------------------------------------------------------


def say(text: str, *, err: bool = False) -> None:
    """Print text, of which a terminal obeys nothing but the ends of its lines."""
    typer.echo(visible(text, lines=True), err=err)


def tell(text: str) -> None:
    """A line on stderr, which stays one line whatever names are in it."""
    typer.echo(visible(text), err=True)


def complain(text: str) -> None:
    """A line on stderr about what went wrong."""
    tell(f"openloop: {text}")


def console() -> Console:
    """Standard output, at most as wide as prose may be; no name is taken for markup."""
    from openloop.cli.terminal import Terminal

    found = Terminal(highlight=False, markup=False, emoji=False)
    found.width = min(found.width, MAX_WIDTH)
    return found


@contextmanager
def progress() -> Generator[Step, None, None]:
    """A bar on stderr, if that is a terminal; told what is being done, and how much is done."""
    from openloop.support.progress import steps

    with steps("", show=True) as step:
        yield step


def mark(good: bool, *, before: str = "", after: str = "") -> Text:
    """✓ or ✗ between words."""
    from rich.text import Text

    return Text.assemble(before, ("✓" if good else "✗", "green" if good else "bold red"), after)


def show(parts: Iterable[RenderableType]) -> None:
    """Print one part after another."""
    terminal = console()
    for part in parts:
        terminal.print(part)


def answer(json: str | None, content: Any, parts: Iterable[RenderableType]) -> None:
    """What was found, as JSON where that was asked for, and for people unless JSON goes to stdout."""
    if json is not None:
        write_json(content, json)
    if json != "-":
        show(parts)


def write_json(content: Any, target: str) -> None:
    """Plain values as JSON, to a file or, for "-", to stdout."""
    from openloop.support.atomic import json_text

    if target == "-":
        say(json_text(content))
    else:
        json_text(content, target)
        tell_written(target)


def tell_reading(log: object, models: Iterable[str]) -> None:
    """A line on stderr before the first file is opened: a person sees at once that the work has begun."""
    tell(f"reading {log}, and the predictions of {joined(list(dict.fromkeys(models)))}")


def tell_kept(path: str) -> None:
    """A line on stderr about what an interruption leaves."""
    tell(f"finished work is kept in {path}; the same command continues from there")


def tell_written(*paths: str) -> None:
    """A line on stderr for each file."""
    for path in paths:
        tell(f"wrote {path}")
