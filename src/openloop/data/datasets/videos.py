"""Data sets of short videos, from Kuaishou: KuaiRec (watch ratios) and KuaiRand (clicks)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from openloop.core.feedback import Feedback, Vocabulary
from openloop.data.datasets import tables
from openloop.data.datasets.finding import Files
from openloop.data.datasets.records import Data
from openloop.data.reading import read

_WATCHED = {"user_id": pl.Int64, "video_id": pl.Int64, "watch_ratio": pl.Float64, "timestamp": pl.Float64}
_SHOWN = {"user_id": pl.Int64, "video_id": pl.Int64, "is_click": pl.Float64, "time_ms": pl.Int64}


def kuairec(name: str, files: Files) -> Data:
    """big_matrix.csv is the log; small_matrix.csv holds nearly every cell of some users and videos."""
    big, small = (_table(files[role], _WATCHED, "timestamp") for role in ("big", "small"))
    log, block = _both(big, small, rating="watch_ratio", time="timestamp")
    notes = (
        "ratings are watch ratios: how long a video was played over how long it is",
        f"open_loop is the small matrix: {_count(small, 'user_id'):,} users × {_count(small, 'video_id'):,} videos",
        "the small matrix is almost fully observed: a block of the grid, not a uniform sample of it",
        *_repeats("log", log),
        *_repeats("open_loop", block),
    )
    return Data(name=name, log=log, open_loop=block, notes=notes)


def kuairand(name: str, files: Files) -> Data:
    """log_standard_*.csv are what the system recommended; log_random_*.csv what was inserted at random."""
    standard, random = (_table(files[role], _SHOWN, "time_ms") for role in ("standard", "random"))
    log, drawn = _both(standard, random, rating="is_click", time="time_ms")
    notes = (
        "ratings are clicks, 1 or 0: every row is a video that was shown",
        "open_loop holds videos that were drawn at random from a pool and shown in place of recommended ones",
        *_repeats("log", log),
        *_repeats("open_loop", drawn),
    )
    return Data(name=name, log=log, open_loop=drawn, notes=notes)


def shown(files: Files) -> pl.LazyFrame:
    """Every impression of KuaiRand with all its columns; `is_rand` is 1 where a video was inserted at random."""
    return pl.concat([tables.scan(path, _SHOWN) for role in files.values() for path in role], how="vertical_relaxed")


def watched(files: Files) -> pl.LazyFrame:
    """Every row of KuaiRec with all its columns, and the matrix that it belongs to."""
    named = ((path, role) for role, paths in files.items() for path in paths)
    parts = [tables.scan(path, _WATCHED).with_columns(matrix=pl.lit(role)) for path, role in named]
    return pl.concat(parts, how="diagonal_relaxed")


def _table(paths: tuple[Path, ...], types: dict[str, Any], time: str) -> pl.DataFrame:
    """The rows of all files in order of time: the latest row of a repeated pair is then the last."""
    rows = pl.concat([tables.columns(path, types, gaps=(time,)) for path in paths])
    return rows.sort(time, nulls_last=False, maintain_order=True)


def _both(first: pl.DataFrame, second: pl.DataFrame, *, rating: str, time: str) -> tuple[Feedback, Feedback]:
    """Two logs over the users and videos of both."""
    users, items = (
        Vocabulary.of(np.concatenate([first[side].drop_nulls().to_numpy(), second[side].drop_nulls().to_numpy()]))
        for side in ("user_id", "video_id")
    )

    def feedback(rows: pl.DataFrame) -> Feedback:
        timed = time if rows[time].null_count() == 0 else None  # some rows of the small matrix have no time
        return read(
            rows, user="user_id", item="video_id", rating=rating, time=timed, users=users, items=items,
            duplicates="last",
        )  # fmt: skip

    return feedback(first), feedback(second)


def _repeats(what: str, log: Feedback) -> tuple[str, ...]:
    again = log.input_rows - len(log)
    return (f"{what}: {again:,} rows repeat a pair; its latest row counts",) if again else ()


def _count(rows: pl.DataFrame, column: str) -> int:
    return rows[column].n_unique()
