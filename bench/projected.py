"""`python -m bench.projected`: passes and ranks of a projected fit on Spark against memory, and fits from disk.

Times are CPU seconds, of this process, of the JVM and of its Python workers together, as a machine that does other
things too stretches the clock and not the work. There are two sizes: at the smaller one, what Spark takes for any job
is much of it. `--disk ROWS` fits from a Parquet file of so many rows instead, within `--memory`, and tells the time and
the peak of resident memory. `--hard` has the system refuse what is allocated beyond `--memory` (RLIMIT_DATA: private
memory, not the pages of mapped files, which it can take back at any time).
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from bench.worker import peak_bytes

FACTORS, REG, RANKS = 64, 5.0, 4
BATCH = 5_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """A log, and how often its passes are measured."""

    rows: int
    users: int
    items: int
    every: int  # a tenth of the rows of each `every`-th user is held out
    warm: int  # passes before those that are measured: a JVM compiles for some 25, and a fit has some fifty
    passes: int


SMALL = Size(rows=1_000_000, users=20_000, items=5_000, every=1, warm=25, passes=10)
LARGE = Size(rows=10_000_000, users=138_000, items=27_000, every=7, warm=3, passes=3)  # after SMALL: the JVM is warm
QUICK = Size(rows=50_000, users=2_000, items=500, every=1, warm=5, passes=5)


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench.projected", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a small log")
    parser.add_argument("--disk", type=float, metavar="ROWS", help="fit so many rows from disk")
    parser.add_argument("--memory", default="4 GiB", help="for --disk")
    parser.add_argument("--hard", action="store_true", help="for --disk: fail rather than allocate more than --memory")
    parser.add_argument("--iterations", type=int, default=3, help="for --disk; a pass each, and one at the start")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if asked.disk:
            from_disk(Path(folder), int(asked.disk), asked.memory, asked.iterations, hard=asked.hard)
        else:
            spark = session(Path(folder))
            for size in [QUICK] if asked.quick else [SMALL, LARGE]:
                against_memory(Path(folder) / str(size.rows), spark, size)
            spark.stop()


# -- a log -----------------------------------------------------------------------------------------------------


def write_log(folder: Path, rows: int, users: int, items: int) -> Path:
    """Parquet files of user, item, rating and w, users and items as skewed as those of MovieLens; no pair twice."""
    rng, path = np.random.default_rng(0), folder / "log"
    path.mkdir()
    popular = np.cumsum(1 / (np.arange(items) + 20.0) ** 0.95)
    V, W = (rng.standard_normal((n, 8), np.float32) * 0.45 for n in (users, items))
    parts = max(1, -(-rows // BATCH))
    for part in range(parts):  # each of other users: pairs differ between files
        own = np.arange(part, users, parts)
        activity = np.cumsum(rng.lognormal(0, 1.1, len(own)))
        n = int(1.3 * rows / parts)
        u = own[np.searchsorted(activity, rng.random(n) * activity[-1])]
        i = np.searchsorted(popular, rng.random(n) * popular[-1])
        cell = np.unique(u * items + i)
        cell = rng.permutation(cell)[: rows // parts]
        u, i = cell // items, cell % items
        y = 3.5 + np.einsum("nk,nk->n", V[u], W[i]) + rng.standard_normal(len(u), np.float32) * 0.6
        frame = {"user": u.astype(np.int32), "item": i.astype(np.int32), "rating": y.astype(np.float32)}
        pl.DataFrame(frame | {"w": rng.lognormal(0, 1, len(u))}).write_parquet(path / f"{part:04}.parquet")
    return path


# -- Spark against memory --------------------------------------------------------------------------------------


def against_memory(folder: Path, spark: Any, size: Size) -> None:
    folder.mkdir()
    path = write_log(folder, size.rows, size.users, size.items)
    log = pl.read_parquet(path)
    some = log.filter(pl.col("user") % size.every == 0)
    pairs = some.select("user", "item").sample(fraction=0.1, seed=0)
    pairs.write_parquet(folder / "held.parquet")
    here = measured(time.process_time, size, log, lambda model: model.ranks(pairs))
    frame, held = (spark.read.parquet(str(file)) for file in (path, folder / "held.parquet"))
    there = measured(lambda: cpu(spark), size, frame, lambda model: model.ranks(held).toArrow())
    print(f"{size.rows:,} rows, {size.users:,} users, {size.items:,} items, {FACTORS} factors; CPU seconds")
    print(f"{'':8}{'blocks':>10}{'a pass':>10}{f'ranks of {len(pairs):,}':>20}")
    for name, (made, one, ranks) in {"memory": here, "Spark": there}.items():
        print(f"{name:8}{made:10.2f}{one:10.2f}{ranks:20.2f}")
    print(f"{'ratio':8}{'':10}{there[1] / here[1]:10.2f}{there[2] / here[2]:20.2f}", flush=True)


def measured(
    clock: Callable[[], float], size: Size, frame: Any, ranks: Callable[[Any], Any]
) -> tuple[float, float, float]:
    """What making blocks and warming up takes, a pass, and the ranks of what is held out."""
    from openloop.learners import MF

    begun = clock()
    model = MF(FACTORS, REG, solver="projected", iterations=size.warm, tol=0.0).fit(frame, sample_weight="w")
    fit: Any = model._on_frame  # noqa: SLF001 (a pass is inside a fit)
    for _ in range(RANKS):  # compiled
        ranks(model)
    made = clock() - begun
    one = timed(clock, lambda: fit.blocks.total(fit.ask), size.passes)
    ranked = timed(clock, lambda: ranks(model), RANKS)
    model.release()
    return made, one, ranked


def timed(clock: Callable[[], float], work: Callable[[], Any], times: int) -> float:
    begun = clock()
    for _ in range(times):
        work()
    return (clock() - begun) / times


def session(folder: Path) -> Any:
    os.environ |= {"SPARK_LOCAL_IP": "127.0.0.1", "OPENBLAS_NUM_THREADS": "1"}
    os.environ |= {"PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable}
    from pyspark.sql import SparkSession

    settings = {
        "spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1", "spark.driver.memory": "3g",
        "spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false", "spark.log.level": "ERROR",
        "spark.local.dir": str(folder / "local"), "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.sql.shuffle.partitions": "4",
    }  # fmt: skip
    return SparkSession.builder.master("local[2]").config(map=settings).getOrCreate()


def cpu(spark: Any) -> float:
    """Seconds of CPU of this process, of the JVM, and of all that it started."""
    jvm = int(spark.sparkContext._jvm.java.lang.ProcessHandle.current().pid())  # noqa: SLF001 (PySpark's only way)
    table = subprocess.run(["ps", "-eo", "pid,ppid"], capture_output=True, text=True, check=True).stdout.splitlines()[
        1:
    ]
    parents = {int(pid): int(parent) for pid, parent in map(str.split, table)}
    known = {jvm}
    while more := {pid for pid, parent in parents.items() if parent in known} - known:
        known |= more
    return time.process_time() + sum(map(ticks, known)) / os.sysconf("SC_CLK_TCK")


def ticks(pid: int) -> int:
    """User and system time of a process, and of its children that ended."""
    try:
        told = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except FileNotFoundError:  # it ended in between
        return 0
    return sum(map(int, told.rpartition(")")[2].split()[11:15]))


# -- from disk -------------------------------------------------------------------------------------------------


def from_disk(folder: Path, rows: int, memory: str, iterations: int, *, hard: bool = False) -> None:
    from openloop.learners import MF
    from openloop.learners.blocks.disk import DiskBlocks
    from openloop.support.sizes import bytes_of

    users, items = max(rows // 72, 1_000), min(27_000, rows // 100)
    call = f"write_log(Path({str(folder)!r}), {rows}, {users}, {items})"
    program = [sys.executable, "-c", f"from bench.projected import *; {call}"]
    subprocess.run(program, check=True)  # in a process of its own: this one stays small
    print(f"{rows:,} rows, {users:,} users, {items:,} items, {FACTORS} factors, memory={memory}", flush=True)
    if hard:
        resource.setrlimit(resource.RLIMIT_DATA, (limit := bytes_of("--memory", memory), limit))
    total, begun, passes = DiskBlocks.total, clocks(), list[Any]()

    def measured(self: Any, ask: Any) -> Any:
        start = clocks()
        got = total(self, ask)
        passes.append(clocks() - start)
        print(f"pass {len(passes)}: {passes[-1][0]:.1f} s by the clock, {passes[-1][1]:.1f} s of CPU", flush=True)
        return got

    DiskBlocks.total = measured
    model = MF(FACTORS, REG, solver="projected", iterations=iterations, tol=0.0, checkpoint=folder / "fit.npz")
    model.fit(folder / "log", sample_weight="w", blocks=folder / "blocks", memory=memory)
    made, size = clocks() - begun - sum(passes), sum(f.stat().st_size for f in (folder / "blocks").rglob("*.npy"))
    print(f"blocks made in {made[0]:.0f} s by the clock, {made[1]:.0f} s of CPU ({size / 2**30:.2f} GiB)")
    print(f"{len(passes)} passes of {np.mean(passes, 0)[0]:.1f} s by the clock, {np.mean(passes, 0)[1]:.1f} s of CPU")
    print(f"{peak_bytes() / 2**30:.2f} GiB at the peak{', none refused' if hard else ''}")


def clocks() -> Any:
    """Seconds by the clock, and of CPU."""
    return np.array([time.perf_counter(), time.process_time()])


if __name__ == "__main__":
    main()
