"""Moments of ratings and predictions in one Polars frame, against a bare group-by that sums the same columns.

The bare group-by makes the sums by user that ips and snips of mae and mse need. openloop also checks the
values, counts users and items, and sums what the weights' diagnostics and the variance over cells need.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from bench.harness import Result, Side, compare, make_input, race

# users, rows a user, items: a prime number
SIZES = {"full": (500_000, 100, 20_011), "quick": (300, 20, 211)}
ROUNDS = {"full": 6, "quick": 2}
TARGET = 1.5
MEMORY = 3.0
METRICS = ("mae", "mse")
ESTIMATORS = ("ips", "snips")
MODULE = "bench.moments"


def run(folder: Path, size: str, **_: Any) -> list[Result]:
    held = make_input(MODULE, folder, size)
    found = race({name: Side(call=f"{MODULE}:{name}") for name in ("ours", "peer")}, folder, ROUNDS[size])
    ours, peer = found["ours"], found["peer"]
    gap = max(abs(ours.value[name] / peer.value[name] - 1) for name in peer.value)
    values = f"values differ by {gap:.0e} of themselves"
    peaks = f"peak of the whole process beside its input; the bare group-by's is {peer.peak / held:.2f} of it"
    return [
        compare("moments", ours.best, peer.best, target=TARGET, note=values),
        compare("moments, memory", ours.peak, held, target=MEMORY, note=peaks, unit="B"),
    ]


def make(folder: Path, size: str) -> int:
    return write_rows(folder, *SIZES[size])


def write_rows(folder: Path, n_users: int, n_rows: int, n_items: int) -> int:
    """The file that the sides read; how many bytes its columns take."""
    rng = np.random.default_rng(0)
    rows = rng.permutation(n_users * n_rows)
    user, j = rows // n_rows, rows % n_rows
    # Item j of a user is a + b·j modulo a prime, so that no pair stands twice.
    a, b = rng.integers(n_items, size=n_users), rng.integers(1, n_items, n_users)
    columns = {
        "user": user.astype(np.int32),
        "item": ((a[user] + b[user] * j) % n_items).astype(np.int32),
        "rating": rng.integers(1, 6, len(rows)).astype(np.float64),
        "propensity": rng.uniform(0.005, 0.5, len(rows)),
        "prediction": rng.uniform(1, 5, len(rows)),
    }
    np.savez(folder / "rows.npz", population=(n_users, n_items), **columns)
    return sum(column.nbytes for column in columns.values())


def load(folder: Path) -> tuple[Any, tuple[int, int]]:
    import polars as pl

    with np.load(folder / "rows.npz") as file:
        n_users, n_items = file["population"].tolist()
        # Column by column: a file mapped into memory, or read as a whole, would count beside the frame.
        columns = [pl.Series(name, file[name]) for name in file.files if name != "population"]
    return pl.DataFrame(columns), (n_users, n_items)


def ours(folder: Path) -> Any:
    import openloop as ol

    frame, (n_users, n_items) = load(folder)
    named = {"user": "user", "item": "item", "rating": "rating", "propensity": "propensity"}

    def timed() -> dict[str, float]:
        scanned = ol.scan(frame, **named, users=n_users, items=n_items)
        result = ol.evaluate({"a": "prediction"}, scanned, metrics=METRICS, estimators=ESTIMATORS)
        return {f"{e} {m}": result["a", m, e].value for m in METRICS for e in ESTIMATORS}

    return timed


def peer(folder: Path) -> Any:
    import polars as pl

    frame, (n_users, n_items) = load(folder)
    error, weight = pl.col("prediction") - pl.col("rating"), 1.0 / pl.col("propensity")
    columns = {"n": pl.lit(1.0), "weight": weight, "mae": error.abs(), "mse": error * error}
    columns |= {f"weighted {m}": weight * columns[m] for m in METRICS}

    def timed() -> dict[str, float]:
        named = frame.lazy().select("user", **columns)
        sums = named.group_by("user").agg(pl.col(*columns).sum()).collect().sum()
        top = {m: sums[f"weighted {m}"].item() for m in METRICS}
        below = {"ips": float(n_users * n_items), "snips": sums["weight"].item()}
        return {f"{e} {m}": top[m] / below[e] for m in METRICS for e in ESTIMATORS}

    return timed
