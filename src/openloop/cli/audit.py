"""`openloop audit`: a biased log and candidate models to a verdict, printed, as a report and as JSON."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from openloop.cli import options
from openloop.cli.audit_tables import printed
from openloop.cli.opening import Open, named, show_page
from openloop.cli.options import (
    FAILED,
    complain,
    files,
    name_or_number,
    number,
    page,
    progress,
    say,
    several,
    share_or_date,
    show,
    tell_reading,
    tell_written,
)
from openloop.errors import InputError
from openloop.support.fields import fields_named

if TYPE_CHECKING:
    from openloop.audits.results import Audit

UNSUPPORTED = 3  # the log cannot say which model is better, or under an assumption only


def _model_files(given: list[str]) -> tuple[Any, ...]:
    from openloop.commands.audit.request import ModelFile

    return tuple(map(ModelFile.parse, given))


Users = Annotated[
    str | None,
    typer.Option(metavar="N|FILE", callback=name_or_number, help="All users: 0 … N-1, or a file that lists their ids."),
]
Items = Annotated[
    str | None,
    typer.Option(metavar="N|FILE", callback=name_or_number, help="All items: 0 … N-1, or a file that lists their ids."),
]


# -- options of a log with positions --------------------------------------------------------------------------

PANEL = "A log of impressions"


def _column(words: str) -> Any:
    return typer.Option(metavar="COLUMN", callback=name_or_number, rich_help_panel=PANEL, help=words)


def _columns(option: str, words: str) -> Any:
    return typer.Option(option, metavar="COLUMN", callback=several, rich_help_panel=PANEL, help=words)


Position = Annotated[
    str | None, _column("The column of positions, from 1: each row of LOG is then an item that was shown.")
]
Request = Annotated[str | None, _column("The list that a row belongs to; found by its name by default.")]
Reward = Annotated[str | None, _column("A click, order or time; found by its name by default.")]
Shuffled = Annotated[str | None, _column("Whether the request's order was drawn at random.")]
Pool = Annotated[str | None, _column("How many candidates the request had.")]
Exposure = Annotated[
    list[str] | None,
    _columns("--exposure", "The item's probability at position 1, 2 …, in this order. Repeatable."),
]
Prefix = Annotated[str | None, _column("The probability of the list down to this row.")]
Slate = Annotated[str | None, _column("The probability of the whole list.")]
Arms = Annotated[list[str] | None, _columns("--arm", "The item's rank under an arm of an experiment. Repeatable.")]
Candidates = Annotated[
    str,
    typer.Option(metavar="WHICH", rich_help_panel=PANEL, help="What rankers choose from: all, or what was shown."),
]


def audit(
    ctx: typer.Context,
    log: options.Log,
    models: Annotated[
        list[str],
        typer.Argument(
            metavar="NAME=PREDICTIONS",
            callback=_model_files,
            help="Each model: a table of user, item and score or rank, a .safetensors model, vectors, a .npy matrix.",
        ),
    ],
    user: options.User = None,
    item: options.Item = None,
    rating: options.Rating = None,
    score: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            callback=name_or_number,
            help="The models' column of scores; found by its name by default.",
        ),
    ] = None,
    rank: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN", callback=name_or_number, help="The models' column of ranks; found by its name by default."
        ),
    ] = None,
    no_rating: options.NoRating = False,
    positive: options.Positive = None,
    time: options.Time = None,
    duplicates: options.Duplicates = "error",
    separator: options.Separator = None,
    header: options.Header = None,
    skip: options.Skip = 0,
    comment: options.Comment = None,
    propensity: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN|NAME[=SAMPLE]",
            help=f"A column of the log, or {options.MODELS}. Else its column 'propensity', or logistic.",
        ),
    ] = None,
    assumes: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="The model that fitted the column of propensities, such as logistic."),
    ] = None,
    user_features: options.UserFeatures = None,
    item_features: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", help="Covariates of each item, for logistic, boosted and the similarity of lists."
        ),
    ] = None,
    gamma: options.Gamma = None,
    calibrate: options.Calibrate = "none",
    floor: options.Floor = 0.0,
    quantile: options.Quantile = None,
    metrics: Annotated[
        list[str] | None,
        typer.Option(
            "--metric",
            metavar="NAME",
            callback=several,
            help="Such as recall@10 or mae; the first one decides. Repeatable.",
        ),
    ] = None,
    estimators: Annotated[
        list[str] | None,
        typer.Option(
            "--estimator",
            metavar="NAME",
            callback=several,
            help="Such as snips or clipped@20; the first one decides. Repeatable.",
        ),
    ] = None,
    test: Annotated[
        str | None,
        typer.Option(
            metavar="SHARE|DATE",
            callback=share_or_date,
            help="Score the latest share of the log, or its rows from a date on; the rest is TRAIN. Needs --time.",
        ),
    ] = None,
    repeats: Annotated[
        str, typer.Option(metavar="WHAT", help="Test pairs that are also in TRAIN: drop, or keep to score them.")
    ] = "drop",
    cold: Annotated[
        str,
        typer.Option(
            metavar="WHAT", help="Rows of users or items without rows in TRAIN: keep, drop, or report separately."
        ),
    ] = "keep",
    exclude: Annotated[
        str | None, typer.Option(metavar="TRAIN", help="Exclude each user's items in this log from her ranking.")
    ] = None,
    split: Annotated[
        str | None,
        typer.Option(metavar="HOW", help="How one log became LOG and TRAIN: random, time, or none (two logs)."),
    ] = None,
    threshold: options.Threshold = None,
    strata: Annotated[
        list[str] | None,
        typer.Option(
            metavar="N|COLUMN",
            callback=several,
            help="Strata of propensity, such as 5 or 2:width, or a column. Repeatable.",
        ),
    ] = None,
    open_loop: Annotated[
        str | None, typer.Option(metavar="SAMPLE", help="A uniform test set, by which estimators are judged.")
    ] = None,
    baseline: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="Compare the others with this model only; with fewer pairs, tests have more power."
        ),
    ] = None,
    running: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="The model in production; shows how much of its lists the others keep."),
    ] = None,
    min_item_rows: Annotated[
        int, typer.Option(metavar="N", min=0, help="Leave items with fewer rows out of the population.")
    ] = 0,
    missing: Annotated[
        str, typer.Option(metavar="WHAT", help="Rows of the log without a prediction: error, drop or worst.")
    ] = "error",
    level: Annotated[float, typer.Option(parser=number, metavar="X", help="The level of intervals and tests.")] = 0.95,
    users: Users = None,
    items: Items = None,
    rehearse: Annotated[
        int, typer.Option(metavar="N", help="Simulate N logs like this one, and count how often they give a verdict.")
    ] = 0,
    seed: options.Seed = 0,
    check: Annotated[
        bool, typer.Option("--check/--no-check", help="Check a propensity model on held-out cells; refits it.")
    ] = True,
    device: options.Device = None,
    position: Position = None,
    request: Request = None,
    reward: Reward = None,
    shuffled: Shuffled = None,
    pool: Pool = None,
    exposure: Exposure = None,
    prefix: Prefix = None,
    slate: Slate = None,
    arms: Arms = None,
    candidates: Candidates = "all",
    report: Annotated[
        str | None, typer.Option(metavar="FILE.html", callback=page, help="Write the whole audit as one page.")
    ] = None,
    open_: Open = False,
    json: options.Json = None,
) -> None:
    """Judge models by a biased log: which is better for users, how certain that is, and whether the log can answer.

    Exit codes: 0 with a verdict; 3 if the log cannot answer, or only under an assumption; 2 on bad input; 1 if
    something outside fails, such as writing an output.

    With --position the log is one of impressions, and models are rankers: tables of request or user, item, and rank or
    score. --propensity is then examination, logged, or a column.

    A model given twice has two tables: the scores of the log's pairs, and a list with a rank column.
    """
    report = named(report, wanted=open_)
    found = _audited(ctx, files(report, json), shown=position is not None)
    try:
        if json == "-":
            say(found.to_json())
    finally:  # a reader may close the pipe
        written = _write(found, report, None if json == "-" else json)
    if json != "-":
        show(printed(found, ctx.command))
    if not written:
        raise typer.Exit(FAILED)
    if open_ and report is not None:
        show_page(report)
    if not found.verdict.supported:
        raise typer.Exit(UNSUPPORTED)


def _audited(ctx: typer.Context, outputs: list[str], *, shown: bool) -> Audit:
    """The audit of a log of feedback, or of impressions."""
    from openloop.commands.table_files import refuse_overwriting

    if shown:
        from openloop.commands.audit.impressions import ShownRequest as Wanted
    else:
        from openloop.commands.audit.request import AuditRequest as Wanted
    _refuse_others(ctx, Wanted, shown=shown)
    wanted: Any = options.request(Wanted, ctx)
    refuse_overwriting(outputs, wanted.inputs)
    tell_reading(wanted.log, (name for name, _ in wanted.models))  # before what takes a second to import
    if shown:
        from openloop.commands.audit.impressions import run_shown as run
    else:
        from openloop.commands.audit.inputs import run
    with progress() as step:
        return run(wanted, command_of(ctx), step)


def _refuse_others(ctx: typer.Context, wanted: type[Any], *, shown: bool) -> None:
    """Refuse options that were given, and that this kind of log has no use for."""
    known = {*fields_named(wanted), "report", "open_", "json"}
    for parameter in ctx.command.params:
        source = ctx.get_parameter_source(str(parameter.name))
        if source is not None and source.name == "COMMANDLINE" and parameter.name not in known:
            why = "a log with positions has no use for it" if shown else "it is for a log with positions"
            raise InputError(f"{parameter.opts[0]}: {why}; {'leave it out' if shown else 'pass position=, too'}.")


def command_of(ctx: typer.Context) -> str:
    """The command line that asks for the same again: what was given, in the order of the options."""
    words = [ctx.command_path.split()[-1]]
    for parameter in ctx.command.params:
        source = ctx.get_parameter_source(str(parameter.name))
        if source is not None and source.name == "COMMANDLINE":
            words += _words(parameter, ctx.params[str(parameter.name)])
    return shlex.join(["openloop", *words])


def _words(parameter: Any, given: Any) -> Iterator[str]:
    if isinstance(given, bool):
        yield parameter.opts[0] if given else parameter.secondary_opts[0]
        return
    for value in given if isinstance(given, tuple) else (given,):  # pyright: ignore[reportUnknownVariableType]
        yield from () if parameter.param_type_name == "argument" else (parameter.opts[0],)
        yield str(value)  # pyright: ignore[reportUnknownArgumentType]


# -- files ---------------------------------------------------------------------------------------------------


def _write(found: Audit, page: str | None, json: str | None) -> bool:
    """JSON and report, whole or not at all; that one fails does not keep the other from being written.

    JSON comes first: it has all numbers, and needs little memory.
    """
    from openloop.reporting.html import report

    done = [
        _written(json, found.to_json),
        _written(page, lambda path: report(found, path)),
    ]
    return all(done)


def _written(path: str | None, write: Callable[[str], object]) -> bool:
    if path is None:
        return True
    try:
        write(path)
    except (OSError, MemoryError) as error:
        reason = "out of memory" if isinstance(error, MemoryError) else error.strerror or str(error)
        complain(f"{path}: could not be written ({reason}); nothing is left of it, try again.")
        return False
    tell_written(path)
    return True
