"""The bootstrap of a ratio over users, against `scipy.stats.bootstrap`, which resamples users one by one.

openloop draws Poisson weights inside one matrix product and stores none; SciPy resamples pairs of rows, one
replicate a batch so that memory stays small. SciPy runs few replicates, and its time is scaled to as many as
openloop's: its work is the same for each.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from bench.harness import Result, Side, compare, make_input, race

# users, replicates, SciPy's replicates
SIZES = {"full": (1_000_000, 10_000, 30), "quick": (20_000, 1_000, 500)}
ROUNDS = {"full": 3, "quick": 2}
TARGET = 1 / 30
MEMORY = 2**30
MODULE = "bench.bootstrap"


def run(folder: Path, size: str, **_: Any) -> list[Result]:
    make_input(MODULE, folder, size)
    found = race({name: Side(call=f"{MODULE}:{name}") for name in ("ours", "peer")}, folder, ROUNDS[size])
    ours, peer = found["ours"], found["peer"]
    _, replicates, few = SIZES[size]
    note = (
        f"SciPy took {peer.best:.3g} s for {few} replicates, scaled to {replicates:,}; "
        f"standard errors {ours.value['stderr']:.3e} and {peer.value['stderr']:.3e}"
    )
    peak = "peak of the whole process, input included"
    return [
        compare("bootstrap", ours.best, peer.best * replicates / few, target=TARGET, note=note),
        compare("bootstrap, memory", ours.peak, target=MEMORY, note=peak, unit="B"),
    ]


def make(folder: Path, size: str) -> None:
    users, replicates, few = SIZES[size]
    rng = np.random.default_rng(0)
    weight = rng.gamma(2.0, size=users)
    gain = weight * rng.random(users)
    np.savez(folder / "sums.npz", X=np.column_stack([gain, weight]), replicates=replicates, few=few)


def load(folder: Path) -> tuple[Any, int, int]:
    with np.load(folder / "sums.npz") as file:
        return file["X"], int(file["replicates"]), int(file["few"])


def ours(folder: Path) -> Any:
    from openloop.kernels.bootstrap import bootstrap_sums

    X, replicates, _ = load(folder)

    def timed() -> dict[str, Any]:
        totals = bootstrap_sums(X, replicates, seed=0)
        ratios = totals[:, 0] / totals[:, 1]
        return {"stderr": float(ratios.std(ddof=1)), "interval": np.quantile(ratios, [0.025, 0.975]).tolist()}

    return timed


def peer(folder: Path) -> Any:
    from scipy.stats import bootstrap

    X, _, few = load(folder)
    gain, weight = X.T.copy()

    def ratio(a: Any, b: Any, axis: int = -1) -> Any:
        return a.sum(axis=axis) / b.sum(axis=axis)

    def timed() -> dict[str, Any]:
        found = bootstrap(
            (gain, weight), ratio, n_resamples=few, paired=True, batch=1, method="percentile",
            rng=np.random.default_rng(0),
        )  # fmt: skip
        low, high = map(float, found.confidence_interval)
        return {"stderr": float(found.standard_error), "interval": [low, high]}

    return timed
