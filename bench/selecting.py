"""`ol.select` on Coat with its published propensities, 4 folds × 20 settings, against independent L-BFGS fits.

The peer is what a grid search does with the solver of the paper: `MF(solver="lbfgs")` for every fold and setting, one
after the other. Both fit the same folds with the same weights and λ to the same `tol`; select's time includes
validation and the last fit on all rows, the peer's only the fits. The peer has one BLAS thread: on vectors this short
two of them take several times as long.
"""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from bench.harness import Result, Side, compare, data_folder, make_input, missing, race

NAME = "select on Coat, 4 × 20"
FACTORS = (5, 10, 20, 40)
REGS = (1.0, 3.0, 5.0, 7.0, 10.0)
FOLDS = 4
SETTINGS = {"full": tuple(product(FACTORS, REGS)), "quick": ((5, 3.0), (5, 10.0))}
ROUNDS = {"full": 2, "quick": 1}
SECONDS, TARGET = 30.0, 1 / 20
MODULE = "bench.selecting"


def run(folder: Path, size: str, **_: Any) -> list[Result]:
    if size == "full" and data_folder("coat") is None:
        return [missing(NAME, "coat is neither in $OPENLOOP_DATA nor in ../shared/data")]
    make_input(MODULE, folder, size)
    sides = {side: Side(call=f"{MODULE}:{side}", rest=(size,)) for side in ("ours", "peer")}
    found = race(sides, folder, ROUNDS[size])
    ours, peer = found["ours"], found["peer"]
    note = f"chosen {ours.value}; the first call took {ours.first:.3g} s"
    fits = f"{peer.value} fits by L-BFGS one after the other, without validation"
    return [
        compare(NAME, ours.best, target=SECONDS, note=note),
        compare(f"{NAME}, against L-BFGS", ours.best, peer.best, target=TARGET, note=fits),
    ]


def make(folder: Path, size: str) -> None:
    if size == "full":
        source = Path(str(data_folder("coat")))
        ratings, p = (np.loadtxt(source / f"{name}.ascii") for name in ("train", "propensities"))
    else:
        p, rng = np.full((40, 30), 0.3), np.random.default_rng(0)
        ratings = rng.integers(1, 6, p.shape) * (rng.random(p.shape) < p)
    np.savez(folder / "coat.npz", ratings=ratings, p=p)


def load(folder: Path) -> Any:
    import openloop as ol

    with np.load(folder / "coat.npz") as file:
        ratings, p = file["ratings"], file["p"]
    user, item = np.nonzero(ratings)
    U, I = ratings.shape
    return ol.Feedback.from_arrays(user, item, ratings[user, item], users=U, items=I, propensity=p[user, item])


def grid(size: str) -> list[dict[str, Any]]:
    return [{"factors": factors, "reg": reg} for factors, reg in SETTINGS[size]]


def ours(folder: Path, size: str) -> Any:
    import openloop as ol

    log = load(folder)

    def timed() -> dict[str, Any]:
        return ol.select(ol.learners.MF(), log, grid=grid(size), folds=FOLDS, threads=2, rng=0).best

    return timed


def peer(folder: Path, size: str) -> Any:
    from threadpoolctl import threadpool_limits

    import openloop as ol
    import openloop.learners.solvers.lbfgs  # loads the BLAS that is to be limited

    log = load(folder)

    def timed() -> int:
        parts = [train for train, _ in ol.folds(log, FOLDS, 0)]
        with threadpool_limits(1, "blas"):
            for train, setting in product(parts, grid(size)):
                reg = setting["reg"] * len(train) / len(log)  # as select scales it to a fold
                learner = ol.learners.MF(setting["factors"], reg, solver="lbfgs", iterations=10_000)
                learner.fit(train, 1 / train.propensity)
        return len(parts) * len(grid(size))

    return timed
