"""Exact ranks of all held-out items, against the bare matrix product that makes the same scores.

Both sides make the same float32 scores in the same blocks of users. The product is run in two ways: one thread
of BLAS in each of as many workers as openloop uses, and the ordinary product with a BLAS of many threads. The
target counts against the faster.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from bench.harness import ROUNDS, Result, Side, compare, make_input, race

SIZES = {"full": (30_000, 20_000, 64), "quick": (600, 500, 16)}  # users, items, factors
HELD_OUT = 20
TARGET = 2.0
MODULE = "bench.ranks"


def run(folder: Path, size: str, **_: Any) -> list[Result]:
    make_input(MODULE, folder, size)
    sides = {name: Side(call=f"{MODULE}:{name}") for name in ("ours", "workers", "blas")}
    found = race(sides, folder, ROUNDS[size])
    ours, workers, blas = found["ours"], found["workers"], found["blas"]
    note = f"product in workers {workers.best:.3g} s, with many BLAS threads {blas.best:.3g} s"
    peaks = "peaks of the whole processes, input included"
    return [
        compare("ranks", ours.best, min(workers.best, blas.best), target=TARGET, note=note),
        compare("ranks, memory", ours.peak, workers.peak, note=peaks, unit="B"),
    ]


def make(folder: Path, size: str) -> None:
    write_factors(folder, *SIZES[size])


def write_factors(folder: Path, n_users: int, n_items: int, n_factors: int, held_out: int = HELD_OUT) -> None:
    """The file that the sides read."""
    rng = np.random.default_rng(0)
    counts = rng.poisson(held_out, n_users)
    np.savez(
        folder / "factors.npz",
        P=rng.standard_normal((n_users, n_factors), np.float32),
        Q=rng.standard_normal((n_items, n_factors), np.float32),
        ptr=np.concatenate([[0], np.cumsum(counts)]),
        item=rng.integers(n_items, size=counts.sum()).astype(np.int32),
    )


def ours(folder: Path, threads: str = "") -> Any:
    from openloop.kernels.ranking import factor_ranks

    P, Q, ptr, item = load(folder)

    def timed() -> list[int]:
        h, e = factor_ranks(P, Q, None, ptr, item, threads=int(threads) if threads else None)
        return [int(h.sum()), int(e.sum())]

    return timed


def workers(folder: Path) -> Any:
    import numba
    from threadpoolctl import threadpool_limits

    P, Qt, blocks = blocked(folder)
    n = numba.config.NUMBA_NUM_THREADS
    # A buffer for each worker, as the kernel has: block b belongs to worker b mod n.
    out = [np.empty((blocks[0].stop, Qt.shape[1]), np.float32) for _ in range(n)]

    def multiply(worker: int) -> None:
        for block in blocks[worker::n]:
            np.matmul(P[block], Qt, out=out[worker][: block.stop - block.start])

    def timed() -> None:
        with threadpool_limits(1, "blas"), ThreadPoolExecutor(n) as pool:
            list(pool.map(multiply, range(n)))

    return timed


def blas(folder: Path) -> Any:
    P, Qt, blocks = blocked(folder)
    out = np.empty((blocks[0].stop, Qt.shape[1]), np.float32)

    def timed() -> None:
        for block in blocks:
            np.matmul(P[block], Qt, out=out[: block.stop - block.start])

    return timed


def load(folder: Path) -> tuple[Any, ...]:
    with np.load(folder / "factors.npz") as file:
        return tuple(file[name] for name in ("P", "Q", "ptr", "item"))


def blocked(folder: Path) -> tuple[Any, Any, list[slice]]:
    """P, Qᵀ laid out as the kernel lays it out, and the kernel's blocks of users."""
    from openloop.kernels.ranking import block_users

    P, Q, *_ = load(folder)
    step = min(block_users(len(Q), len(P)), len(P))
    blocks = [slice(first, min(first + step, len(P))) for first in range(0, len(P), step)]
    return P, np.ascontiguousarray(Q.T), blocks
