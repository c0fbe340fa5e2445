"""`python -m bench.cluster FOLDER`: docs/cluster_audit.py by spark-submit on a local cluster, from Parquet to a report.

Writes a log of `--rows` ratings, 1 to 5, of 138,493 users × 26,744 items, as many as MovieLens 20M has. A cell is seen
by the user's activity and the item's popularity, and `BIAS` times as often for each star: p fitted without ratings is
off by so much. Tells clock time, CPU seconds of all processes together and the peak of their resident memory.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import polars as pl

ROOT = Path(__file__).resolve().parents[1]
USERS, ITEMS, BATCH, BIAS = 138_493, 26_744, 2_000_000, 1.25
PAGE, TICK = os.sysconf("SC_PAGE_SIZE"), os.sysconf("SC_CLK_TCK")


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench.cluster", description=__doc__)
    parser.add_argument("folder", type=Path, help="where log, report and what lies between are written")
    parser.add_argument("--rows", type=float, default=1e7)
    parser.add_argument("--factors", type=int, default=16)
    parser.add_argument("--iterations", type=int, default=15)
    asked = parser.parse_args()
    folder = asked.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / "log").exists():
        call = f"write_log(Path({str(folder / 'log')!r}), {int(asked.rows)})"  # elsewhere: this process stays small
        subprocess.run([sys.executable, "-c", f"from bench.cluster import *; {call}"], check=True)
    submitted(folder, asked.factors, asked.iterations)


# -- a log -----------------------------------------------------------------------------------------------------


def write_log(path: Path, rows: int, users: int = USERS, items: int = ITEMS) -> None:
    """Parquet files of uid, sku and stars; no pair twice."""
    rng = np.random.default_rng(0)
    path.mkdir()
    popular = np.cumsum(1 / (np.arange(items) + 50.0) ** 0.9)
    V, W = (rng.standard_normal((n, 8), np.float32) * 0.5 for n in (users, items))
    quality = rng.standard_normal(items).astype(np.float32) * 0.4
    parts = max(1, -(-rows // BATCH))
    for part in range(parts):  # each of other users: pairs differ between files
        own = np.arange(part, users, parts)
        activity = np.cumsum(rng.lognormal(0, 1.0, len(own)))
        n = int(3.5 * rows / parts)
        u = own[np.searchsorted(activity, rng.random(n) * activity[-1])]
        cell = np.unique(u * items + np.searchsorted(popular, rng.random(n) * popular[-1]))
        u, i = cell // items, cell % items
        y = 3.0 + quality[i] + np.einsum("nk,nk->n", V[u], W[i]) + 0.7 * rng.standard_normal(len(u), np.float32)
        stars = np.clip(np.rint(y), 1, 5)
        kept = np.flatnonzero(rng.random(len(u)) < BIAS ** (stars - 5))
        kept = rng.permutation(kept)[: rows // parts]
        frame = {"uid": u[kept], "sku": i[kept], "stars": stars[kept].astype(np.float32)}
        pl.DataFrame(frame).write_parquet(path / f"{part:04}.parquet")


# -- a local cluster -------------------------------------------------------------------------------------------


def submitted(folder: Path, factors: int, iterations: int) -> None:
    import pyspark

    home = Path(pyspark.__file__).parent
    (folder / "numba").mkdir(exist_ok=True)
    shutil.rmtree(folder / "work", ignore_errors=True)
    places = os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    environment = os.environ | {
        "SPARK_HOME": str(home), "SPARK_LOCAL_IP": "127.0.0.1", "PYTHONPATH": places,
        "PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable,
        "OPENBLAS_NUM_THREADS": "1", "NUMBA_CACHE_DIR": str(folder / "numba"),
    }  # fmt: skip
    settings = {
        "spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1", "spark.driver.memory": "1500m",
        "spark.executor.memory": "2g", "spark.ui.enabled": "false", "spark.log.level": "ERROR",
        "spark.sql.shuffle.partitions": "8", "spark.local.dir": str(folder / "local"),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
    }  # fmt: skip
    command = [str(home / "bin" / "spark-submit"), "--master", "local-cluster[2,1,2048]"]
    command += [f"--conf={name}={value}" for name, value in settings.items()]
    command += [str(ROOT / "docs" / "cluster_audit.py"), str(folder / "log"), str(folder / "work")]
    command += [str(folder / "report.html"), "--user=uid", "--item=sku", "--rating=stars"]
    command += [f"--factors={factors}", f"--iterations={iterations}"]
    begun = time.perf_counter()
    with subprocess.Popen(command, env=environment, cwd=folder, stdout=subprocess.PIPE, text=True) as process:
        watch = Watch(process.pid)
        for line in process.stdout or ():
            print(f"{time.perf_counter() - begun:5.0f} s  {watch.cpu():5.0f} s of CPU  {line}", end="", flush=True)
        code = process.wait()
        watch.over.set()
        watch.join()
    print(f"{time.perf_counter() - begun:.0f} s by the clock, {watch.cpu():.0f} s of CPU, {watch.peak / 2**30:.2f} GiB")
    sys.exit(code)


class Watch(threading.Thread):
    """CPU seconds of a process and all that it starts, and the peak of the memory that they hold together."""

    def __init__(self, root: int) -> None:
        super().__init__(daemon=True)
        self.root, self.over = root, threading.Event()
        self.peak, self.seen = 0, dict[int, int]()
        self.start()

    def run(self) -> None:
        """Look twice a second."""
        while not self.over.wait(0.5):
            family = descendants(self.root)
            self.peak = max(self.peak, sum(map(resident, family)))
            self.seen |= {pid: used for pid in family if (used := own_ticks(pid))}

    def cpu(self) -> float:
        """Seconds of all processes that were seen."""
        return sum(list(self.seen.values())) / TICK


def descendants(root: int) -> set[int]:
    table = subprocess.run(["ps", "-eo", "pid,ppid"], capture_output=True, text=True, check=True).stdout.splitlines()
    parents = {int(pid): int(parent) for pid, parent in map(str.split, table[1:])}
    known = {root}
    while more := {pid for pid, parent in parents.items() if parent in known} - known:
        known |= more
    return known


def own_ticks(pid: int) -> int:
    """User and system time of a process alone; 0 where it has ended."""
    told = stat(pid)
    return sum(map(int, told[11:13])) if told else 0


def resident(pid: int) -> int:
    told = stat(pid)
    return int(told[21]) * PAGE if told else 0


def stat(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):  # it ended in between
        return []


if __name__ == "__main__":
    main()
