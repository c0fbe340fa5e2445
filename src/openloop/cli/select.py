"""`openloop select`: models and settings compared on a log by cross-validation, and the best one saved."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from openloop.cli import options
from openloop.cli.options import answer, files, listed, mark, number, progress, request, several, tell_written, whole
from openloop.cli.voice import for_command

if TYPE_CHECKING:
    from rich.console import RenderableType

    from openloop.commands.select import Chosen


def select(
    ctx: typer.Context,
    log: options.Log,
    model: Annotated[
        list[str], typer.Option(metavar="MODEL", callback=several, help=f"{options.LEARNERS} Repeat it to compare.")
    ],
    out: options.ModelFile,
    propensity: options.WeightedBy = None,
    floor: options.WeightFloor = 0.0,
    weight: options.Weight = None,
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
    factors: Annotated[
        str | None, typer.Option(metavar="N,N,…", callback=listed(whole), help="Numbers of latent factors to try.")
    ] = None,
    reg: Annotated[
        str | None,
        typer.Option(
            metavar="X,X,…",
            callback=listed(number),
            help="L2 penalties to try; for stack that of its first mf, from which the others follow.",
        ),
    ] = None,
    sweeps: options.Sweeps = None,
    metric: Annotated[
        str, typer.Option(metavar="NAME", help="The metric that decides, such as mse, mae or ndcg@10.")
    ] = "mse",
    estimator: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Its estimator; by default ips or snips with propensities, naive without."),
    ] = None,
    threshold: options.Threshold = None,
    folds: Annotated[int, typer.Option(parser=whole, metavar="N", help="Folds of the cross-validation.")] = 4,
    checkpoint: Annotated[
        str | None,
        typer.Option(metavar="DIR", help="Where finished folds are kept; an interrupted run continues from there."),
    ] = None,
    threads: Annotated[int | None, typer.Option(parser=whole, metavar="N", help="Fits at once.")] = None,
    seed: options.Seed = 0,
    json: options.Json = None,
) -> None:
    """Compare models and settings by cross-validation under propensities, and save the best.

    Each model is tried with every combination of the given lists that apply to it; its other settings keep their
    defaults. If values are equal, the first wins.
    """
    from openloop.commands.learning import read_log
    from openloop.commands.select import SelectRequest
    from openloop.commands.select import select as choose
    from openloop.commands.table_files import refuse_overwriting

    wanted = request(SelectRequest, ctx)
    refuse_overwriting([out, *files(json)], [log])
    with progress() as step:
        rows = read_log(wanted, step)
    try:
        done = choose(wanted, rows, progress=True)
    except KeyboardInterrupt:
        if checkpoint is not None:
            options.tell_kept(checkpoint)
        raise
    answer(json, done.records(), _page(done, ctx.command))
    tell_written(out)


def _page(done: Chosen, command: Any) -> Iterator[RenderableType]:
    yield done.opening()
    yield ""
    yield _table(done)
    yield ""
    yield done.closing(lambda note: for_command(note, command))


def _table(done: Chosen) -> RenderableType:
    from rich.table import Table

    table = Table("", "model", *done.parameters, done.wanted.metric, "± stderr", "", box=None, pad_edge=False)
    for each in done.settings:
        given = (f"{each.parameters[name]:g}" if name in each.parameters else "–" for name in done.parameters)
        value = "–" if each.value is None else f"{each.value:.4f}"
        error = "–" if each.stderr is None else f"{each.stderr:.4f}"
        chosen = mark(good=True) if each.best else ""
        table.add_row(chosen, each.model, *given, value, error, each.problem or "")
    return table
