"""ADG's updates against LightFM's WARP, on the positives of MovieLens-1M-half, with 1 and with 2 threads.

An update is one positive looked at: LightFM's epoch looks at each once. Both have 50 factors and item biases, begin
at random, and give up the search for a violator after the same number of draws. LightFM also learns user biases and
a step size for every number (Adagrad); openloop's steps have one rate.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from bench.cornac_ranking import POSITIVE, invented, movielens
from bench.environments import environment
from bench.harness import Measured, Result, Side, SideError, compare, data_folder, make_input, missing, race

NAME = "ADG against WARP"
PEER = "lightfm-next"
FACTORS = 50
GAMMA = 100
EPOCHS = {"full": 5, "quick": 2}
ROUNDS = {"full": 3, "quick": 2}
THREADS = (1, 2)
TARGET = 1.0
MODULE = "bench.violators"


def run(folder: Path, size: str, *, install: bool = True) -> list[Result]:
    if size == "full" and data_folder("ml-1m-half") is None:
        return [missing(NAME, "ml-1m-half is neither in $OPENLOOP_DATA nor in ../shared/data")]
    updates = make_input(MODULE, folder, size)
    reason, python = "", Path()
    try:
        python = environment(PEER, install=install)
    except SideError as error:
        reason = str(error)
    return [_line(folder, size, threads, updates, python, reason) for threads in THREADS]


def _line(folder: Path, size: str, threads: int, updates: int, python: Path, reason: str) -> Result:
    name = f"{NAME}, {threads} thread{'s' * (threads > 1)}"
    sides = {"ours": Side(call=f"{MODULE}:ours", rest=(str(threads),))}
    if reason:
        return missing(name, reason, race(sides, folder, ROUNDS[size])["ours"].best)
    sides["peer"] = Side(call=f"{MODULE}:peer", rest=(str(threads),), python=python)
    found = race(sides, folder, ROUNDS[size])
    ours, peer = found["ours"], found["peer"]
    note = f"{_rate(updates, ours)} updates a second against {_rate(updates, peer)}; first call {ours.first:.2g} s"
    return compare(name, ours.best, peer.best, target=TARGET, note=note)


def _rate(updates: int, side: Measured) -> str:
    return f"{updates / side.best / 1e6:.3g} M"


def make(folder: Path, size: str) -> int:
    user, item, rating = movielens() if size == "full" else invented()
    liked = rating >= POSITIVE
    shape = (int(user.max()) + 1, int(item.max()) + 1)
    np.savez(folder / "likes.npz", user=user[liked], item=item[liked], shape=shape, epochs=EPOCHS[size])
    return EPOCHS[size] * int(liked.sum())


def load(folder: Path) -> tuple[Any, Any, tuple[int, int], int]:
    with np.load(folder / "likes.npz") as file:
        U, I = file["shape"].tolist()
        return file["user"], file["item"], (U, I), int(file["epochs"])


def ours(folder: Path, threads: str) -> Any:
    from openloop.core.feedback import Feedback
    from openloop.learners import ADG

    user, item, (U, I), epochs = load(folder)
    log = Feedback.from_arrays(user, item, np.ones(len(user)), users=U, items=I)
    model = ADG(FACTORS, gamma=GAMMA, updates=epochs * len(user), threads=int(threads))

    def timed() -> int:
        model.fit(log)
        return model.updates

    return timed


def peer(folder: Path, threads: str) -> Any:
    from lightfm import LightFM
    from scipy.sparse import coo_matrix

    user, item, shape, epochs = load(folder)
    likes = coo_matrix((np.ones(len(user), np.float32), (user, item)), shape=shape)
    tries = int(np.ceil((shape[1] - 1) / GAMMA))

    def timed() -> int:
        model = LightFM(no_components=FACTORS, loss="warp", max_sampled=tries, random_state=0)
        model.fit(likes, epochs=epochs, num_threads=int(threads))
        return epochs * len(user)

    return timed
