"""`openloop train`: a recommender learned from a log and saved, and what the fit was like printed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from openloop.cli import options
from openloop.cli.options import files, number, progress, request, say, tell_written, whole, writable
from openloop.cli.voice import for_command


def train(
    ctx: typer.Context,
    log: options.Log,
    model: Annotated[str, typer.Option(metavar="MODEL", help=options.LEARNERS)],
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
    factors: Annotated[int | None, typer.Option(parser=whole, metavar="N", help="Latent factors.")] = None,
    reg: Annotated[
        float | None,
        typer.Option(
            parser=number,
            metavar="X",
            help="The L2 penalty; for stack that of its first mf, from which the others follow.",
        ),
    ] = None,
    bias_reg: Annotated[
        float | None, typer.Option(parser=number, metavar="X", help="The penalty on the offsets; 0 leaves them free.")
    ] = None,
    loss: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="squared, absolute, or logistic for ratings of 0 and 1."),
    ] = None,
    solver: Annotated[str | None, typer.Option(metavar="NAME", help="cg, cholesky, lbfgs or projected.")] = None,
    iterations: Annotated[int | None, typer.Option(parser=whole, metavar="N", help="Sweeps at most.")] = None,
    tol: Annotated[
        float | None,
        typer.Option(parser=number, metavar="X", help="Stop when a sweep lowers the objective by a smaller share."),
    ] = None,
    updates: Annotated[
        int | None, typer.Option(parser=whole, metavar="N", help="Gradient steps, for adg and auc.")
    ] = None,
    gamma: Annotated[
        float | None, typer.Option(parser=number, metavar="X", help="At most (items - 1)/γ tries, for adg.")
    ] = None,
    rate: Annotated[
        float | None, typer.Option(parser=number, metavar="X", help="The learning rate, for adg and auc.")
    ] = None,
    threshold: Annotated[
        float | None,
        typer.Option(parser=number, metavar="X", help="The smallest rating of a positive."),
    ] = None,
    folds: Annotated[
        int | None,
        typer.Option(parser=whole, metavar="N", help="Folds within a learner, such as stack and dr."),
    ] = None,
    sweeps: options.Sweeps = None,
    burn: Annotated[
        int | None, typer.Option(parser=whole, metavar="N", help="How many of the first sweeps are dropped.")
    ] = None,
    thin: Annotated[
        int | None, typer.Option(parser=whole, metavar="N", help="Every N-th of the other sweeps is kept.")
    ] = None,
    chains: Annotated[
        int | None, typer.Option(parser=whole, metavar="N", help="Chains, which check each other.")
    ] = None,
    components: Annotated[
        int | None, typer.Option(parser=whole, metavar="N", help="Components of users, for mixture.")
    ] = None,
    missing: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="What being observed depends on, for mixture: cpt-v (rating), logit-vd (and item)."
        ),
    ] = None,
    restarts: Annotated[
        int | None, typer.Option(parser=whole, metavar="N", help="Starts, of which the best is kept, for mixture.")
    ] = None,
    checkpoint: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            callback=writable,
            help="Where sweeps are kept; an interrupted fit, or one with more sweeps, continues from there.",
        ),
    ] = None,
    threads: Annotated[int | None, typer.Option(parser=whole, metavar="N", help="Threads to learn with.")] = None,
    device: options.Device = None,
    rng: Annotated[
        int | None, typer.Option("--seed", parser=whole, metavar="N", help="The same seed gives the same model.")
    ] = None,
    json: options.Json = None,
) -> None:
    """Learn a recommender from a log, with rows weighted by the inverse of their propensities, and save it.

    Options that are not given have the learner's defaults; an option that the model does not have is refused. stack
    combines, on held-out rows, who saw what and mf with the weights, with their square roots and without; recalibrated
    is mf corrected to the level and slope of held-out rows.
    """
    from openloop.commands.learning import read_log
    from openloop.commands.recipes import PARAMETERS
    from openloop.commands.table_files import refuse_overwriting
    from openloop.commands.train import TrainRequest
    from openloop.commands.train import train as learn

    parameters = {name: ctx.params[name] for name in PARAMETERS if ctx.params[name] is not None}
    wanted = request(TrainRequest, ctx, parameters=parameters)
    refuse_overwriting([out, *files(json)], [log])
    with progress() as step:
        rows = read_log(wanted, step)
    try:
        done = learn(wanted, rows, progress=True)
    except KeyboardInterrupt:
        if checkpoint is not None and Path(checkpoint).exists():
            options.tell_kept(checkpoint)
        raise
    say(done.to_json() if json == "-" else done.summary(lambda note: for_command(note, ctx.command)))
    for path in files(json):
        done.to_json(path)
    tell_written(out, *files(json))
