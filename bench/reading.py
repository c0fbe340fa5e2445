"""`ol.read` of an event log, against Polars reading and sorting the same columns.

Both read users, items and times from one Parquet file of int64 ids with repeats, and order them. openloop checks and
codes the ids, and keeps the first row of each pair besides.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from bench.harness import Result, Side, compare, make_input, race

# rows, users, items
SIZES = {"full": (20_000_000, 1_000_000, 100_000), "quick": (200_000, 10_000, 2_000)}
ROUNDS = {"full": 3, "quick": 2}
TARGET = 1.3
MODULE = "bench.reading"
COLUMNS = ["user", "item", "timestamp"]


def run(folder: Path, size: str, **_: Any) -> list[Result]:
    make_input(MODULE, folder, size)
    found = race({name: Side(call=f"{MODULE}:{name}") for name in ("ours", "peer")}, folder, ROUNDS[size])
    ours, peer = found["ours"], found["peer"]
    if ours.value != peer.value:
        raise AssertionError(f"{ours.value} pairs by openloop, {peer.value} by Polars")
    note = f"{SIZES[size][0]:,} rows, {ours.value:,} distinct pairs; peak {ours.peak / peer.peak:.2f} of Polars'"
    return [compare("reading events", ours.best, peer.best, target=TARGET, note=note)]


def make(folder: Path, size: str) -> None:
    import polars as pl

    rows, users, items = SIZES[size]
    rng = np.random.default_rng(0)
    # A few users and items have many rows, so two rows in five repeat a pair.
    drawn = {
        name: np.minimum((rng.pareto(1.1, rows) * size / 300).astype(np.int64), size - 1)
        for name, size in (("user", users), ("item", items))
    }
    pl.DataFrame(drawn | {"timestamp": rng.integers(10**9, 2 * 10**9, rows)}).write_parquet(folder / "events.parquet")


def ours(folder: Path) -> Any:
    import openloop as ol

    def timed() -> Any:
        log = ol.read(folder / "events.parquet", time="timestamp", duplicates="first")
        return lambda: len(log)

    return timed


def peer(folder: Path) -> Any:
    import polars as pl

    def timed() -> Any:
        rows = pl.read_parquet(folder / "events.parquet", columns=COLUMNS).sort(COLUMNS)
        return lambda: rows.select("user", "item").n_unique()

    return timed
