"""A scanned log in two parts: each reads the whole and passes on its own rows, which are the same at every reading."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import date
from typing import Any

import numpy as np
import polars as pl

from openloop.core.vocabulary import Bools
from openloop.data import values
from openloop.data.columns import InputTable
from openloop.data.cutting import cut
from openloop.data.scanning import Log
from openloop.errors import ColumnError, InputError
from openloop.support.arguments import generator

Choose = Callable[[pl.DataFrame], Bools]  # which rows of the next batch are of test


def split_scan(log: Log, test: Any, by: str, rng: Any) -> tuple[Log, Log]:
    """Train and test: rows or users by a draw that is the same at every reading, or the latest rows."""
    if log.table.frame is not None:
        raise InputError("split: the rows stay on Spark; split the frame there (randomSplit), and scan the parts.")
    if by == "time":
        chooser, share, split = _by_time(log, test), None, "time"
    elif by in ("row", "user") and isinstance(test, float) and 0 < test < 1:
        seed = int(generator("split", rng).integers(2**62))
        chooser, share, split = _drawn(log, test, seed, by), test, "random" if by == "row" else "user"
    else:
        raise InputError(
            "split: a scanned log is split by row, user or time, with test= a share between 0 and 1, got "
            f"by={by!r} and test={test!r}; read it with ol.read for others."
        )
    origin = object()
    parts = [
        replace(
            log, source=None, table=_part(log, chooser, wanted), share=own, origin=origin, split=split,
        )
        for wanted, own in ((False, None if share is None else 1 - share), (True, share))
    ]  # fmt: skip
    return parts[0], parts[1]


def _part(log: Log, chooser: Callable[[], Choose], wanted: bool) -> InputTable:  # noqa: FBT001 (which part)
    """The rows of one part, read along with all others."""
    table, needed = log.table, [log.columns[role] for role in ("user", "item", "time") if role in log.columns]

    def batches(columns: Sequence[str], size: int | None) -> Iterator[pl.DataFrame]:
        choose = chooser()
        for batch in table.batches(list(dict.fromkeys([*columns, *needed])), size):
            yield batch.filter(pl.Series(choose(batch) == wanted)).select(columns)

    return replace(table, batches=batches, scan=None)


def _drawn(log: Log, test: float, seed: int, by: str) -> Callable[[], Choose]:
    """Rows, or all rows of users, each with the chance `test`."""

    def chooser() -> Choose:
        if by == "user":
            column = log.columns["user"]
            return lambda batch: _uniform(batch[column], seed) < test
        rng = np.random.default_rng(seed)
        return lambda batch: rng.random(batch.height) < test

    return chooser


def _uniform(ids: pl.Series, seed: int) -> np.ndarray[Any, np.dtype[np.float64]]:
    """A number in [0, 1) for each id, the same for equal ones."""
    return ids.hash(seed).to_numpy() / 2.0**64


def _by_time(log: Log, test: float | str | date) -> Callable[[], Choose]:
    """The latest rows; the times are read once to find the cut."""
    if "time" not in log.columns:
        raise ColumnError("split: by='time' needs the time column; scan the log with time= and its name.")
    column, what = log.columns["time"], f"{log.table.name}: time column {log.columns['time']!r}"
    times = np.concatenate([values.times(batch[column], what) for batch in log.table.batches([column], 1_000_000)])
    late = cut(times, test)
    first = times[late].min() if late.any() else np.inf

    def chooser() -> Choose:
        return lambda batch: values.times(batch[column], what) >= first

    return chooser
