"""`openloop propensity`: a log written back with a column of propensities, and the checks printed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from openloop.cli import options
from openloop.cli.options import files, picture, progress, request, say, tell_written, writable
from openloop.errors import InputError

if TYPE_CHECKING:
    from openloop.commands.propensity import Estimated
    from openloop.propensity.checks.checking import Check


def propensity(
    ctx: typer.Context,
    log: options.Log,
    model: Annotated[
        str,
        typer.Option(
            metavar="NAME[=SAMPLE]",
            help=f"{options.MODELS}, of logistic, or balanced:MODEL=SAMPLE. SAMPLE has ratings of cells drawn at "
            "random, alone or with users and items.",
        ),
    ],
    out: Annotated[
        str,
        typer.Option(
            metavar="FILE", callback=writable, help="The log with the new column: .csv, .tsv, .parquet or .jsonl."
        ),
    ],
    uniform: Annotated[str | None, typer.Option(metavar="SAMPLE", help="The same as NAME=SAMPLE.")] = None,
    user_features: options.UserFeatures = None,
    item_features: options.ItemFeatures = None,
    user: options.User = None,
    item: options.Item = None,
    rating: options.Rating = None,
    no_rating: options.NoRating = False,
    positive: options.Positive = None,
    time: options.Time = None,
    duplicates: options.Duplicates = "error",
    separator: options.Separator = None,
    header: options.Header = None,
    skip: options.Skip = 0,
    comment: options.Comment = None,
    users: options.Users = None,
    items: options.Items = None,
    gamma: options.Gamma = None,
    calibrate: options.Calibrate = "none",
    floor: options.Floor = 0.0,
    quantile: options.Quantile = None,
    column: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="The name of the new column; by default propensity, or weight for balanced."),
    ] = None,
    safe_csv: options.SafeCsv = False,
    seed: options.Seed = 0,
    check: Annotated[
        bool,
        typer.Option("--check/--no-check", help="Check the propensities on held-out cells, which refits the model."),
    ] = True,
    json: Annotated[
        str | None,
        typer.Option(
            metavar="FILE|-", callback=writable, help="Write the checks as JSON, - to stdout instead of text."
        ),
    ] = None,
    figures: Annotated[
        str | None, typer.Option(metavar="FILE", callback=picture, help="Draw the checks: .html, .svg or .png.")
    ] = None,
) -> None:
    """Estimate who saw what: write the log back with a column of propensities, and check them.

    Rows and other columns are unchanged; a file without a header gets one: user, item, rating, time, column_5 … The log
    is written before the checks begin.
    """
    from openloop.commands.propensity import PropensityRequest, estimate
    from openloop.commands.table_files import refuse_overwriting

    wanted = request(PropensityRequest, ctx)
    if not check and (json is not None or figures is not None):
        raise InputError("--json and --figures are for the checks, which --no-check omits; leave one of the two out.")
    refuse_overwriting([out, *files(json, figures)], wanted.inputs)
    with progress() as step:
        done = estimate(wanted, step)
    tell_written(out)
    if check:
        _check(done, json, figures)
    else:
        say("\n".join([done.summary(), *(f"- {note}" for note in done.notes)]))


def _check(done: Estimated, json: str | None, figures: str | None) -> None:
    with progress() as step:
        found = done.check(step)
    say(found.to_json() if json == "-" else f"{done.summary()}\n\n{found}")
    if json is not None and json != "-":
        found.to_json(json)
    if figures is not None:
        _draw(found, figures)
    tell_written(*files(json, figures))


def _draw(check: Check, path: str) -> None:
    from openloop.reporting.figures import check_figures, save

    save(check_figures(check), path)
