"""`openloop predict`: the scores of pairs, the best items of each user, or a model's vectors, in a file."""

from __future__ import annotations

from typing import Annotated

import typer

from openloop.cli import options
from openloop.cli.options import files, progress, request, say, tell_written, whole, writable


def predict(
    ctx: typer.Context,
    model: Annotated[
        str,
        typer.Argument(
            metavar="MODEL", help="A model that `openloop train` wrote, or vectors: .npz, .parquet, .safetensors."
        ),
    ],
    out: Annotated[
        str,
        typer.Option(
            metavar="FILE", callback=writable, help="A table: .csv, .tsv, .parquet or .jsonl; with --vectors .npz too."
        ),
    ],
    pairs: Annotated[
        str | None, typer.Option(metavar="FILE", help="Pairs to score: written back with a column of scores.")
    ] = None,
    top: Annotated[
        int | None, typer.Option(parser=whole, metavar="K", help="Or the K best items of each user, ranked.")
    ] = None,
    users: Annotated[
        str | None, typer.Option(metavar="FILE", help="With --top: rank for these users, not for all.")
    ] = None,
    exclude: Annotated[
        str | None,
        typer.Option(metavar="LOG", help="With --top: exclude the pairs of this log, such as the training log."),
    ] = None,
    vectors: Annotated[
        bool,
        typer.Option("--vectors", help="Or the vectors of users and items, for another system."),
    ] = False,
    user: options.User = None,
    item: options.Item = None,
    column: Annotated[str, typer.Option(metavar="NAME", help="The name of the column of scores.")] = "score",
    unknown: Annotated[
        str, typer.Option(metavar="WHAT", help="Rows with ids that the model does not know: error, drop or null.")
    ] = "error",
    safe_csv: options.SafeCsv = False,
    json: options.Json = None,
) -> None:
    """Write a saved model's scores of pairs, the best items of each user, or its vectors.

    With --pairs the rows keep their order and other columns.

    With --top the columns are user, item, score and rank, from 1; of equal scores the smaller id comes first.

    With --vectors, --out is .npz, .safetensors or .parquet: user_factors, item_factors, user_bias, item_bias,
    intercept, users and items. A score is the product of two vectors plus the biases and the intercept.
    """
    from openloop.commands.predict import PredictRequest
    from openloop.commands.predict import predict as ask
    from openloop.commands.table_files import refuse_overwriting

    wanted = request(PredictRequest, ctx)
    refuse_overwriting([out, *files(json)], wanted.inputs)
    with progress() as step:
        done = ask(wanted, step)
    say(done.to_json() if json == "-" else done.summary())
    for path in files(json):
        done.to_json(path)
    tell_written(out, *files(json))
