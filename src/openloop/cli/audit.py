"""`openloop audit`: a biased log and candidate models to a verdict, printed, as a report and as JSON."""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from openloop.cli import options
from openloop.cli.options import FAILED, Step, console, files, number, page, progress, tell_written, whole
from openloop.cli.options import column as column_of
from openloop.cli.voice import for_command
from openloop.errors import InputError
from openloop.support.wording import chance, level_of, reasons, times

if TYPE_CHECKING:
    from rich.console import RenderableType

    from openloop.audits.contrasts import Contrast
    from openloop.audits.results import Audit
    from openloop.commands.audit.request import AuditRequest, Gathered

UNSUPPORTED = 3  # the log cannot say which model is better
MOST_PAIRS = 21  # of up to seven models
READING = 0.4  # of the bar

Grid = Annotated[str | None, typer.Option(metavar="N|FILE", help="All users: 0 … N-1, or a file that lists their ids.")]
GridItems = Annotated[
    str | None, typer.Option(metavar="N|FILE", help="All items: 0 … N-1, or a file that lists their ids.")
]


def audit(
    ctx: typer.Context,
    log: options.Log,
    models: Annotated[
        list[str],
        typer.Argument(
            metavar="NAME=PREDICTIONS",
            help="Each model: a table of user, item and score or rank, a .safetensors model, or a .npy matrix.",
        ),
    ],
    user: options.User = None,
    item: options.Item = None,
    rating: options.Rating = None,
    propensity: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN|MODEL",
            help="A column of the log, popularity, naive-bayes=SAMPLE, logistic or uniform. Else its column "
            "'propensity', or logistic.",
        ),
    ] = None,
    user_features: Annotated[
        str | None, typer.Option(metavar="FILE", help="A row of covariates for each user, for logistic.")
    ] = None,
    item_features: Annotated[
        str | None, typer.Option(metavar="FILE", help="A row of covariates for each item, for logistic.")
    ] = None,
    floor: Annotated[float, typer.Option(parser=number, metavar="P", help="Raise smaller propensities to this.")] = 0.0,
    metric: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="As ndcg@10 or mae; the first decides. Repeatable.")
    ] = None,
    estimator: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="As snips or clipped@20; the first decides. Repeatable.")
    ] = None,
    exclude: Annotated[
        str | None, typer.Option(metavar="TRAIN", help="Leave out of the rankings what this log holds.")
    ] = None,
    split: Annotated[
        str | None,
        typer.Option(metavar="HOW", help="How LOG and TRAIN came apart: random, time, or none (two separate logs)."),
    ] = None,
    threshold: Annotated[
        float | None, typer.Option(parser=number, metavar="X", help="Ratings from here on are relevant.")
    ] = None,
    strata: Annotated[
        list[str] | None,
        typer.Option(metavar="N|COLUMN", help="Strata of propensity, as 5 or 2:width, or a column. Repeatable."),
    ] = None,
    open_loop: Annotated[
        str | None, typer.Option(metavar="SAMPLE", help="A uniformly collected test set, to judge the estimators by.")
    ] = None,
    missing: Annotated[
        str, typer.Option(metavar="WHAT", help="Rows of the log without a prediction: error, drop or worst.")
    ] = "error",
    level: Annotated[float, typer.Option(parser=number, metavar="X", help="The level of intervals and tests.")] = 0.95,
    users: Grid = None,
    items: GridItems = None,
    seed: Annotated[int, typer.Option(parser=whole, metavar="N", help="The same seed gives the same audit.")] = 0,
    check: Annotated[
        bool, typer.Option("--check/--no-check", help="Check a propensity model on held-out cells; refits it.")
    ] = True,
    stream: Annotated[
        bool | None,
        typer.Option("--stream/--no-stream", help="Leave rows on disk; else only where they may not fit into memory."),
    ] = None,
    report: Annotated[
        str | None, typer.Option(metavar="FILE.html", callback=page, help="Write the whole audit as one page.")
    ] = None,
    json: options.Json = None,
) -> None:
    """Judge models by a biased log: which is better for users, how sure that is, and whether the log can say.

    Exit code 0 with a verdict, 3 where the log supports none, 2 on bad input, 1 where an output could not be written.

    A model given twice has two tables: the scores of the log's pairs, and a list with a rank column.
    """
    from openloop.commands.audit.request import AuditRequest, named_model
    from openloop.commands.table_files import refuse_overwriting

    wanted = AuditRequest(
        log=log, models=tuple(map(named_model, models)), user=column_of(user), item=column_of(item),
        rating=column_of(rating), propensity=propensity, user_features=user_features, item_features=item_features,
        floor=floor, metrics=tuple(metric or ()), estimators=tuple(estimator or ()), exclude=exclude, split=split,
        threshold=threshold, strata=tuple(strata or ()), open_loop=open_loop, missing=missing, level=level,
        users=_grid(users), items=_grid(items), seed=seed, stream=stream,
    )  # fmt: skip
    refuse_overwriting(files(report, json), wanted.inputs)
    with progress() as step:
        found = _audited(wanted, step, command_of(ctx), check=check)
    written = _write(found, report, None if json == "-" else json)  # first, as a reader may close the pipe
    if json == "-":
        typer.echo(found.to_json())
    else:
        terminal = console()
        for part in _page(found, ctx.command):
            terminal.print(part)
    if not written:
        raise typer.Exit(FAILED)
    if not found.verdict.supported:
        raise typer.Exit(UNSUPPORTED)


def _grid(text: str | None) -> int | str | None:
    return int(text) if text is not None and text.isdecimal() else text


def command_of(ctx: typer.Context) -> str:
    """The command line that asks for the same again: what was given, in the order of the options."""
    words = [ctx.command_path.split()[-1]]
    for parameter in ctx.command.params:
        name = str(parameter.name)
        source = ctx.get_parameter_source(name)
        if source is None or source.name != "COMMANDLINE":
            continue
        given = ctx.params[name]
        if parameter.param_type_name == "argument":
            words += given if isinstance(given, list) else [str(given)]  # pyright: ignore[reportUnknownArgumentType]
        elif isinstance(given, bool):
            words.append(parameter.opts[0] if given else parameter.secondary_opts[0])
        else:
            for value in given if isinstance(given, list) else [given]:  # pyright: ignore[reportUnknownVariableType]
                words += [parameter.opts[0], str(value)]  # pyright: ignore[reportUnknownArgumentType]
    return shlex.join(["openloop", *words])


def _audited(wanted: AuditRequest, step: Step, command: str, *, check: bool) -> Audit:
    from openloop.audits.auditing import audit
    from openloop.commands.audit.inputs import gather

    began = time.perf_counter()
    try:
        gathered = gather(wanted, _part(step, 0.0, READING))
        found = audit(
            gathered.models, gathered.log, gathered.propensities, **gathered.options(wanted),
            check=check and (True if gathered.whole is None else gathered.whole), step=_part(step, READING, 1.0),
        )  # fmt: skip
    except OSError as error:
        name = error.filename or wanted.log
        raise InputError(
            f"{name}: cannot be read ({error.strerror or error}); check it and its permissions."
        ) from error
    return _told(found, gathered, command, time.perf_counter() - began)


def _part(step: Step, low: float, high: float) -> Step:
    """A step of one part of the work."""
    return lambda what, done: step(what, low + (high - low) * done)


def _told(found: Audit, gathered: Gathered, command: str, seconds: float) -> Audit:
    """The audit with what only the reader of its files knows."""
    words = {"log": gathered.about_log, "propensity": gathered.about_propensity, "command": command}
    setting = replace(found.setting, **words, seconds=seconds)
    return replace(found, setting=setting, notes=tuple(dict.fromkeys((*gathered.notes, *found.notes))))


# -- files ---------------------------------------------------------------------------------------------------


def _write(found: Audit, page: str | None, json: str | None) -> bool:
    """Report and JSON, whole or not at all; that one fails does not keep the other from being written."""
    from openloop.reporting.html import report

    done = [
        _written(page, lambda path: report(found, path)),
        _written(json, found.to_json),
    ]
    return all(done)


def _written(path: str | None, write: Callable[[str], object]) -> bool:
    if path is None:
        return True
    try:
        write(path)
    except OSError as error:
        reason = error.strerror or str(error)
        typer.echo(f"openloop: {path}: could not be written ({reason}); nothing is left of it, try again.", err=True)
        return False
    tell_written(path)
    return True


# -- the terminal --------------------------------------------------------------------------------------------


def _page(found: Audit, command: Any) -> Iterator[RenderableType]:
    from rich.text import Text

    yield Text(found.verdict.headline, style="bold")
    yield from found.verdict.sentences
    yield from (f"- {reason}" for reason in found.verdict.reasons if reason not in found.verdict.headline)
    for warning in found.warnings:
        yield Text.assemble(("warning: ", "yellow"), for_command(warning, command))
    yield ""
    yield _leaderboard(found, found.metric)
    yield ""
    yield _comparisons(found)
    for metric in found.result.metrics:
        if metric != found.metric:
            yield ""
            yield _leaderboard(found, metric)
    yield ""
    left_out = (f"left out: {reason}" for reason in reasons(found.result.skipped))
    lines = (*left_out, *(f"! {flag}" for flag in _flags(found)), *(f"note: {note}" for note in found.notes))
    yield from (Text(for_command(line, command), style="dim") for line in lines)


def _flags(found: Audit) -> list[str]:
    """What to mind about estimates that have a mark, with where it holds."""
    marked: dict[str, list[str]] = {}
    for (_, metric, estimator), e in found.result.estimates.items():
        for flag in e.diagnostics.flags:
            marked.setdefault(flag, []).append(f"{estimator}-{metric}")
    return [f"{', '.join(dict.fromkeys(where))}: {flag}" for flag, where in marked.items()]


def _leaderboard(found: Audit, metric: str) -> RenderableType:
    from rich.table import Table
    from rich.text import Text

    result, better = found.result, found.result.better.get(metric)
    title = f"{metric}, {better} is better; ± {level_of(result.level)} interval over users"
    table = Table(title=title, title_justify="left", title_style="bold", box=None, pad_edge=False)
    estimators = [e for e in result.estimators if (result.models[0], metric, e) in result.estimates]
    table.add_column("model")
    for name in estimators:
        table.add_column(name, justify="right", no_wrap=True)
    order = found.estimator if found.estimator in estimators else estimators[0]
    for model in result.ranking(metric, order):
        table.add_row(Text(model), *(_cell(found, model, metric, name) for name in estimators))
    return table


def _cell(found: Audit, model: str, metric: str, estimator: str) -> str:
    from openloop.reporting.words import decimals_of, fixed
    from openloop.reporting.words import number as shown

    estimate = found.result[model, metric, estimator]
    mark = "!" if estimate.diagnostics.flags else ""
    if estimate.scored_users < 2:
        return shown(estimate.value) + mark
    low, high = estimate.interval(found.result.level)
    decimals = decimals_of(low, high)
    if decimals is None:
        return shown(estimate.value) + mark
    return f"{fixed(estimate.value, decimals)} ±{fixed((high - low) / 2, decimals)}{mark}"


def _comparisons(found: Audit) -> RenderableType:
    from rich.table import Table
    from rich.text import Text

    from openloop.reporting.words import rounded

    order = found.result.ranking(found.metric, found.estimator)
    pairs = [_turned(c, order) for c in found.contrasts[found.metric, found.estimator]]
    pairs.sort(key=lambda c: (order.index(c.a), order.index(c.b)))
    title = f"pairs by {found.estimator}-{found.metric}"
    if len(pairs) > MOST_PAIRS:
        title += f", the first {MOST_PAIRS} of {len(pairs)}"
    table = Table(title=title, title_justify="left", title_style="bold", box=None, pad_edge=False)
    heads = ("difference", f"{level_of(found.result.level)}, unadjusted", "Holm p", "flips at")
    table.add_column("a − b")
    for head in heads:
        table.add_column(head, justify="right", no_wrap=True)
    for c in pairs[:MOST_PAIRS]:
        value, interval = rounded(c.value, c.low, c.high, sign=True)
        table.add_row(
            Text(f"{c.a} − {c.b}"),
            value,
            interval,
            chance(c.holm).removeprefix("= "),
            "" if c.gamma is None else times(c.gamma),
        )
    return table


def _turned(contrast: Contrast, order: list[str]) -> Contrast:
    """The better-ranked model first."""
    return contrast.of(min(contrast.models, key=order.index))
