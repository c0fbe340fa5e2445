"""`evaluate` of 10 M shuffled rows and two shuffled tables of models: mae, mse, recall@10 × naive, ips, snips.

Rows live in Polars, DuckDB, Parquet files or memory. Both sides of a race import this file, so it speaks to trees
before and after `ol.scan`. Peaks of memory count from where the tables are loaded.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

USERS = {"full": 200_000, "million": 20_000, "quick": 200}
ROWS, ITEMS = 50, 20_011  # of each user; a prime number of items
NAMES = ("log", "a", "b")
METRICS, ESTIMATORS = ("mae", "mse", "recall@10"), ("naive", "ips", "snips")
BUDGET = 128 * 2**20  # bytes in memory of a spilled log


def make(folder: Path, size: str) -> None:
    """Parquet files of a log with p, and of two models with scores and ranks of the same pairs in other orders."""
    import polars as pl

    n_users = USERS[size]
    rng = np.random.default_rng(0)
    # Item j of a user is a + b·j modulo a prime, so that no pair stands twice.
    a, b = rng.integers(ITEMS, size=n_users), rng.integers(1, ITEMS, n_users)
    rating = rng.integers(1, 6, n_users * ROWS).astype(np.float64)
    p = rng.uniform(0.005, 0.5, n_users * ROWS)
    for name in NAMES:
        place = rng.permutation(n_users * ROWS)
        user, j = np.divmod(place, ROWS)
        columns: dict[str, Any] = {"user": user, "item": (a[user] + b[user] * j) % ITEMS}
        if name == "log":
            columns |= {"rating": rating[place], "p": p[place], "guess": (rating + rng.normal(size=len(p)))[place]}
        else:
            score = np.clip(rating + rng.normal(0, 1.5, len(p)), 1, 5)
            rank = np.argsort(rng.random((n_users, ROWS)), axis=1).ravel() + 1
            columns |= {"score": score[place], "rank": rank[place]}
        pl.DataFrame(columns).write_parquet(folder / f"{name}.parquet", row_group_size=500_000)


# -- sides ---------------------------------------------------------------------------------------------------


def polars(folder: Path) -> Callable[[], Any]:
    """Polars frames in memory."""
    import polars as pl

    return partial(_evaluated, folder, *(pl.read_parquet(folder / f"{name}.parquet") for name in NAMES))


def duckdb(folder: Path) -> Callable[[], Any]:
    """Tables of a DuckDB file."""
    import duckdb

    base = duckdb.connect(folder / f"{os.getpid()}.duckdb")  # one process at a time may open such a file
    for name in NAMES:
        base.execute(f"create table if not exists {name} as from '{folder / name}.parquet'")
    return partial(_evaluated, folder, *(base.table(name) for name in NAMES), base)


def parquet(folder: Path) -> Callable[[], Any]:
    """Parquet files, whose rows are spilled beyond a budget; older trees part files by user on disk."""
    import polars as pl

    frames = [pl.scan_parquet(folder / f"{name}.parquet") for name in NAMES]
    if _is_before_scan():
        return partial(_parted, folder, *frames)
    from openloop.blocks import store

    store._half_of_free_memory = lambda: BUDGET  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
    return partial(_evaluated, folder, *frames)


def memory(folder: Path) -> Callable[[], Any]:
    """`ol.read` and `evaluate`, the models' tables in Polars."""
    import polars as pl

    import openloop as ol

    log, a, b = (pl.read_parquet(folder / f"{name}.parquet") for name in NAMES)

    def read_and_evaluate() -> Any:
        held = ol.read(log, propensity="p", users=range(_users(folder)), items=range(ITEMS))
        return _values(ol.evaluate({"a": a, "b": b}, held, metrics=METRICS, estimators=ESTIMATORS, threshold=4.0))

    return read_and_evaluate


def columns(folder: Path) -> Callable[[], Any]:
    """A model that is a column of the log: there is nothing to join."""
    import polars as pl

    log = pl.read_parquet(folder / "log.parquet")
    return partial(_evaluate, {"guess": "guess"}, log, folder, metrics=["mae"], estimators=["snips"])


def group_by(folder: Path) -> Callable[[], Any]:
    """Six sums by user in plain Polars: what the estimate of a column cannot do without."""
    import polars as pl

    log = pl.read_parquet(folder / "log.parquet")
    w, d = 1 / pl.col("p"), (pl.col("rating") - pl.col("guess")).abs()
    sums = [pl.len(), d.sum().alias("d"), w.sum().alias("w"), (w * d).sum().alias("wd")]
    sums += [(w * w * d).sum().alias("wwd"), (w * w * d * d).sum().alias("wwdd")]
    return lambda: [log.lazy().group_by("user").agg(sums).collect(engine="streaming").height]


def _users(folder: Path) -> int:
    import polars as pl

    return pl.scan_parquet(folder / "log.parquet").select(pl.len()).collect().item() // ROWS


def _is_before_scan() -> bool:
    import openloop as ol

    return "user" in inspect.signature(ol.evaluate).parameters


def _evaluated(folder: Path, log: Any, a: Any, b: Any, *_base: Any) -> Any:
    return _evaluate({"a": a, "b": b}, log, folder, metrics=METRICS, estimators=ESTIMATORS)


def _evaluate(models: Any, log: Any, folder: Path, **asked: Any) -> Any:
    import openloop as ol

    population = _users(folder), ITEMS
    if _is_before_scan():
        names = {name: name for name in ("user", "item", "rating")}
        evaluate: Any = ol.evaluate
        return _values(evaluate(models, log, "p", population=population, threshold=4.0, **names, **asked))

    scanned = ol.scan(log, propensity="p", users=population[0], items=population[1])
    return _values(ol.evaluate(models, scanned, threshold=4.0, **asked))


def _values(result: Any) -> list[float]:
    return [estimate.value for estimate in result.estimates.values()]


def _parted(folder: Path, *frames: Any) -> Any:
    """What the command of older trees did with large files."""
    from contextlib import ExitStack
    from importlib import import_module

    from openloop.evaluation import prepared

    by_user = import_module("openloop.sources.frames.parting").by_user
    question: Any = import_module("openloop.moments.question").Question
    with ExitStack() as until:
        (log, a, b), parts = by_user(frames, until)
        asked = question(
            metrics=METRICS, estimators=ESTIMATORS, population=(_users(folder), ITEMS), threshold=4.0, parts=parts,
            user="user", item="item", rating="rating",
        )  # fmt: skip
        with prepared({"a": a, "b": b}, log, "p", asked) as ready:
            return _values(ready.compare())
