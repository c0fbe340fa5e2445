"""`python -m bench.plan`: the constants of `openloop doctor --plan`, measured; see `learners/blocks/costs.py`.

A pass over rows that are in memory, for several numbers of factors and of rows per user, gives CPU seconds per row
and per user, with and without factors, by least squares. Passes on Spark give those per job, and, with many items,
those per byte of sums, and what a Python worker and the driver hold. CPU seconds: a busy machine stretches the clock.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from bench.projected import REG, cpu, session, timed, write_log
from openloop.learners import MF
from openloop.learners.blocks import spark as spark_blocks
from openloop.learners.blocks.disk import DiskBlocks

ROWS, ITEMS = 1_000_000, 5_000
USERS, FACTORS = (20_000, 100_000), (16, 64, 128)
MANY = 4_800_000, 100_000, 100_000, 64  # rows, users, items and factors of 4 blocks, or of 12
WARM, PASSES = 25, 10  # iterations first: a user's problem takes as long as it is hard, and a JVM compiles


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench.plan", description=__doc__)
    parser.add_argument("part", nargs="?", choices=["memory", "job", "driver", "executors"])
    part = parser.parse_args().part
    with tempfile.TemporaryDirectory() as folder:
        if part is None:
            for each in ("memory", "job", "driver", "executors"):  # each in a process of its own, whose peak is its own
                subprocess.run([sys.executable, "-m", "bench.plan", each], check=True)
        elif part == "memory":
            in_memory(Path(folder))
        elif part == "job":
            on_spark(Path(folder), (ROWS, USERS[0], ITEMS, 64))
        else:
            if part == "executors":
                spark_blocks.BLOCK_ROWS = 1  # 12 blocks: so large are their sums that executors add them
            on_spark(Path(folder), MANY, warm=3, passes=3)


def fitted(frame: Any, factors: int, warm: int) -> Any:
    model = MF(factors, REG, solver="projected", iterations=warm, tol=0.0).fit(frame, sample_weight="w")
    return model._on_frame  # noqa: SLF001 (a pass is inside a fit)


def in_memory(home: Path) -> None:
    """seconds = n·(A + B·K) + U·(C + D·K)."""
    told, design = [], []
    for users in USERS:
        folder = home / str(users)
        folder.mkdir()
        log = pl.read_parquet(write_log(folder, ROWS, users, ITEMS))
        for factors in FACTORS:
            fit = fitted(log, factors, WARM)
            seconds, n, own = usual(fit), len(log), log["user"].n_unique()
            told.append(seconds)
            design.append((n, n * factors, own, own * factors))
            print(f"{len(log):,} rows, {users:,} users, {factors} factors: {seconds:.3f} s of CPU a pass", flush=True)
    found = np.linalg.lstsq(np.array(design, float), np.array(told), rcond=None)[0]
    print("per row {:.3g} s, per row × factor {:.3g} s, per user {:.3g} s, per user × factor {:.3g} s".format(*found))
    print("predicted / measured:", *np.round(np.array(design) @ found / told, 2))


def usual(fit: Any, passes: int = PASSES) -> float:
    """The median over passes: a neighbour on the machine slows some of them."""
    return float(np.median([clocked(fit) for _ in range(passes)]))


def clocked(fit: Any) -> float:
    begun = time.process_time()
    fit.blocks.total(fit.ask)
    return time.process_time() - begun


def on_spark(folder: Path, size: tuple[int, int, int, int], warm: int = WARM, passes: int = PASSES) -> None:
    rows, users, items, factors = size
    call = f"write_log(Path({str(folder)!r}), {rows}, {users}, {items})"
    subprocess.run(
        [sys.executable, "-c", f"from bench.projected import *; {call}"], check=True
    )  # this process stays small
    spark = session(folder)
    base = peak(os.getpid())
    fit = fitted(spark.read.parquet(str(folder / "log")), factors, warm)
    most = peak(os.getpid()) - base
    here, own = descended(pl.read_parquet(folder / "log"), factors)
    alone = usual(here, passes)
    mine, whole = (
        time.process_time(),
        timed(lambda: cpu(spark), lambda: fit.blocks.total(here.ask), passes),
    )  # items are in one order
    python, numbers = (time.process_time() - mine) / passes, items * (factors + 1)
    moved = 8 * numbers * fit.blocks.count
    print(f"{rows:,} rows, {users:,} users, {items:,} items, {factors} factors, {fit.blocks.count} blocks; CPU seconds")
    print(f"  a pass: {alone:.2f} in memory, {whole:.2f} on Spark, {python:.2f} of these in the driver's Python")
    print(f"  beside the pass, an iteration: {own:.2f}, so {own / numbers:.3g} per number of Q")
    print(f"  sums: {moved / 2**20:.0f} MiB, so {(whole - alone) / moved:.3g} per byte, what a job takes included")
    print(f"  peaks: driver {base / 2**20:.0f} MiB and {most / numbers:.0f} bytes per number of Q; workers", end=" ")
    print(*(round(peak(pid) / 2**20) for pid in workers(spark)), f"MiB; Q {4 * numbers / 2**20:.0f} MiB", flush=True)
    spark.stop()


def descended(frame: Any, factors: int, iterations: int = WARM) -> tuple[Any, float]:
    """A fit in memory, and the CPU seconds that an iteration takes beside its pass."""
    passes, total = list[float](), DiskBlocks.total

    def measured(self: Any, ask: Any) -> Any:
        begun = time.process_time()
        got = total(self, ask)
        passes.append(time.process_time() - begun)
        stamps.append(time.process_time())
        return got

    stamps: list[float] = []
    DiskBlocks.total = measured
    fit = fitted(frame, factors, iterations)
    DiskBlocks.total = total
    between = stamps[-1] - stamps[0] - sum(passes[1:])
    return fit, between / (len(passes) - 1)


def workers(spark: Any) -> Iterator[int]:
    """The Python processes that the JVM started."""
    jvm = int(spark.sparkContext._jvm.java.lang.ProcessHandle.current().pid())  # noqa: SLF001 (PySpark's only way)
    table = subprocess.run(["ps", "-eo", "pid,ppid"], capture_output=True, text=True, check=True).stdout.splitlines()[
        1:
    ]
    parents = {int(pid): int(parent) for pid, parent in map(str.split, table)}
    daemons = {pid for pid, parent in parents.items() if parent == jvm}
    return (pid for pid, parent in parents.items() if parent in daemons)


def peak(pid: int) -> int:
    """The most memory that a process held."""
    told = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    return 1024 * int(told.partition("VmHWM:")[2].split()[0])


if __name__ == "__main__":
    main()
