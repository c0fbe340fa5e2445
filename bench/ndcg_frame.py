"""nDCG@10 of recommendations given as a frame (user, item, rank), against RecTools.

Both sides get the same pandas frames. For information: Polars frames, and reading the log into a Feedback
first. RecTools' default divides by the gain of k relevant items, however few a user has; with
`divide_by_achievable=True` its ideal is openloop's, and the values agree. The target counts against the faster.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from bench.environments import environment
from bench.harness import ROUNDS, Result, Side, SideError, compare, make_input, missing, race

NAME = "nDCG@10 of a frame"
METRIC = "ndcg@10"
SIZES = {"full": (100_000, 10_007), "quick": (300, 211)}  # users, items: a prime number
LISTED = 20
TARGET = 1.0
OURS = ("ours_pandas", "ours_polars", "ours_feedback")
PEERS = ("peer", "peer_achievable")
MODULE = "bench.ndcg_frame"


def run(folder: Path, size: str, *, install: bool = True) -> list[Result]:
    make_input(MODULE, folder, size)
    sides = {name: Side(call=f"{MODULE}:{name}") for name in OURS}
    try:
        python = environment("rectools", install=install)
    except SideError as error:
        return [missing(NAME, str(error), race(sides, folder, ROUNDS[size])["ours_pandas"].best)]
    sides |= {name: Side(call=f"{MODULE}:{name}", python=python) for name in PEERS}
    found = race(sides, folder, ROUNDS[size])
    default, same = (found[name] for name in PEERS)
    gap = max(abs(found[name].value - same.value) for name in OURS)
    note = (
        f"RecTools by default {default.best:.3g} s and {default.value:.6f}, with openloop's ideal {same.best:.3g} s "
        f"and {same.value:.6f}; ours {found['ours_pandas'].value:.6f}, which differs by {gap:.0e}"
    )
    peer = min(default.best, same.best)
    return [
        compare(NAME, found["ours_pandas"].best, peer, target=TARGET, note=note),
        compare(f"{NAME}, Polars", found["ours_polars"].best, peer),
        compare(f"{NAME}, Feedback", found["ours_feedback"].best, peer, note="from Polars, ol.read included"),
    ]


def make(folder: Path, size: str) -> None:
    n_users, n_items = SIZES[size]
    rng = np.random.default_rng(0)
    # Item j of a user is a + b·j modulo a prime, so that no pair stands twice. 20 are listed, some of 60 liked.
    a, b = rng.integers(n_items, size=n_users), rng.integers(1, n_items, n_users)
    item = (a[:, None] + b[:, None] * np.arange(60)) % n_items  # (U, 60)
    liked = rng.random(item.shape) < 0.17
    liked[:, 0] |= ~liked.any(axis=1)
    user, j = np.nonzero(liked)
    order = rng.permutation(len(user))
    log = {"user": user[order], "item": item[user, j][order], "rating": np.ones(len(user))}
    listed = {
        "user": np.repeat(np.arange(n_users), LISTED),
        "item": item[:, :LISTED].ravel(),
        "rank": np.tile(np.arange(1, LISTED + 1), n_users),
    }
    for name, columns in {"log": log, "listed": listed, "sizes": {"population": (n_users, n_items)}}.items():
        np.savez(folder / f"{name}.npz", **columns)


def load(folder: Path, name: str) -> dict[str, Any]:
    with np.load(folder / f"{name}.npz") as file:
        return {column: file[column] for column in file.files}


def frame_side(folder: Path, frame: Any) -> Any:
    import openloop as ol

    log, listed = (frame(load(folder, name)) for name in ("log", "listed"))
    n_users, n_items = load(folder, "sizes")["population"].tolist()

    def timed() -> float:
        scanned = ol.scan(log, user="user", item="item", rating="rating", users=n_users, items=n_items)
        result = ol.evaluate({"a": listed}, scanned, metrics=[METRIC], estimators=["naive"], threshold=1)
        return result["a", METRIC, "naive"].value

    return timed


def ours_pandas(folder: Path) -> Any:
    import pandas as pd

    return frame_side(folder, pd.DataFrame)


def ours_polars(folder: Path) -> Any:
    import polars as pl

    return frame_side(folder, pl.DataFrame)


def ours_feedback(folder: Path) -> Any:
    import polars as pl

    import openloop as ol

    log, listed = (pl.DataFrame(load(folder, name)) for name in ("log", "listed"))
    n_users, n_items = load(folder, "sizes")["population"].tolist()

    def timed() -> float:
        feedback = ol.read(
            log, user="user", item="item", rating="rating", users=np.arange(n_users), items=np.arange(n_items)
        )
        result = ol.evaluate({"a": listed}, feedback, metrics=[METRIC], estimators=["naive"], threshold=1)
        return result["a", METRIC, "naive"].value

    return timed


def peer(folder: Path) -> Any:
    return rectools_side(folder)


def peer_achievable(folder: Path) -> Any:
    return rectools_side(folder, divide_by_achievable=True)


def rectools_side(folder: Path, **options: Any) -> Any:
    import pandas as pd
    from rectools.metrics import NDCG

    names = {"user": "user_id", "item": "item_id"}
    log, listed = (pd.DataFrame(load(folder, name)).rename(columns=names) for name in ("log", "listed"))
    return lambda: float(NDCG(k=10, **options).calc(listed, log))
