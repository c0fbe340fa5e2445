"""`python -m bench.load [audits|rows]`: many audits in one process, and one of very many rows; memory and time of both.

`audits`: the same audit again and again, JSON and report included, in one process; its resident memory must not grow.
`rows`: `openloop audit` of a log and two models with a row for each of its pairs, from Parquet to a report, in a
process of its own that may have 6 GiB of memory (`prlimit`), so that it scans the files. `write` makes its files alone.
Numbers go between marks of docs/reliability.md.
"""

from __future__ import annotations

import argparse
import gc
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from bench.harness import ROOT
from bench.pages import placed
from openloop.support.atomic import write_text

if TYPE_CHECKING:
    import polars as pl

PAGE = ROOT / "docs" / "reliability.md"
AUDITS, WARM, GROWTH = 200, 50, 16 * 2**20  # audits, those until caches are full, and bytes that may come after
ROWS, MOST = 100_000_000, 6 * 2**30
PER_USER, ITEMS, BLOCK = 100, 100_003, 20_000  # rows of a user, a prime, and users at a time
MODELS = {"a": 0.6, "b": 0.7}  # names, and how far their scores are off


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench.load", description=__doc__)
    parser.add_argument("part", nargs="?", choices=["audits", "rows", "write"])
    parser.add_argument("--audits", type=int, default=AUDITS, help=f"default {AUDITS}")
    parser.add_argument("--rows", type=float, default=ROWS, help=f"default {ROWS:g}")
    parser.add_argument("--folder", help="where the files of the rows are made, and deleted; else a temporary one")
    parser.add_argument("--print", action="store_true", help="leave docs/reliability.md alone")
    given = parser.parse_args()
    if given.part == "write":
        write_inputs(Path(given.folder), int(given.rows) // PER_USER)
        return
    fine = True
    for part in ("audits", "rows") if given.part is None else (given.part,):
        line, good = many_audits(given.audits) if part == "audits" else many_rows(int(given.rows), given.folder)
        fine &= good
        print(line, flush=True)
        if not given.print:
            place(part, line)
    sys.exit(not fine)


def place(part: str, line: str) -> None:
    """Put a line between its marks."""
    marks = f"<!-- bench.load {part} -->", f"<!-- end of bench.load {part} -->"
    write_text(PAGE, placed(PAGE, PAGE.read_text(encoding="utf-8"), line, marks))


# -- many audits -------------------------------------------------------------------------------------------------------


def many_audits(times: int) -> tuple[str, bool]:
    """What is held after some audits and after all of them, and whether that is about the same."""
    import openloop as ol

    world = ol.simulate.movie_lovers(users=300, items=80)
    log = world.observe(0)
    rng = np.random.default_rng(0)
    models = {name: world.ratings + rng.normal(0, off, world.ratings.shape) for name, off in MODELS.items()}
    held: list[int] = []
    with tempfile.TemporaryDirectory() as folder:
        for number in range(times):
            found = ol.audit(models, log, metrics=["mae", "recall@10"], threshold=4, check=False)
            found.to_json(Path(folder) / "audit.json")
            ol.report(found, Path(folder) / "audit.html")
            del found
            gc.collect()
            held.append(resident())
            if number % 20 == 19:
                print(f"{number + 1} audits: {held[-1] / 2**20:,.0f} MiB", file=sys.stderr, flush=True)
    warm = held[min(WARM, times) - 1]
    line = (
        f"{times} audits in one process, each with its JSON and report: {held[0] / 2**20:,.0f} MiB after the first, "
        f"{warm / 2**20:,.0f} MiB after {min(WARM, times)}, {held[-1] / 2**20:,.0f} MiB after the last."
    )
    return line, held[-1] - warm <= GROWTH


def resident() -> int:
    """Bytes of resident memory."""
    pages = Path("/proc/self/statm").read_text(encoding="ascii").split()[1]
    return int(pages) * resource.getpagesize()


# -- many rows ---------------------------------------------------------------------------------------------------------


def many_rows(rows: int, folder: str | None = None) -> tuple[str, bool]:
    """The time and the peak of memory of an audit from disk, and whether the peak is below the limit."""
    users = rows // PER_USER
    with tempfile.TemporaryDirectory(dir=folder) as name:
        home = Path(name)
        # A process of its own: the peak of one that is started counts what the process that starts it has held.
        subprocess.run([sys.executable, "-m", "bench.load", "write", "--rows", str(rows), "--folder", name], check=True)
        size = sum(file.stat().st_size for file in home.iterdir())
        seconds, peak, processor = audited(home)
    line = (
        f"An audit of {users * PER_USER:,} rows ({users:,} users, {ITEMS:,} items, {len(MODELS)} models with as many "
        f"rows each, {size / 2**30:.1f} GiB of Parquet) by `openloop audit` within {MOST / 2**30:.0f} GiB, "
        f"report and JSON included: {seconds / 60:.1f} min on {os.cpu_count()} cores ({processor / 60:.1f} min of "
        f"processor time), at most {peak / 2**30:.1f} GiB of resident memory."
    )
    return line, peak < MOST


def write_inputs(home: Path, users: int) -> None:
    from openloop.commands.table_files import write_blocks

    write_blocks(home / "log.parquet", blocks(users, None))
    for number, name in enumerate(MODELS):
        write_blocks(home / f"{name}.parquet", blocks(users, number))


def blocks(users: int, model: int | None) -> Iterator[pl.DataFrame]:
    """The rows of the log, or of a model: each user has items at even steps, so no pair is there twice."""
    import polars as pl

    for first in range(0, users, BLOCK):
        user = np.repeat(np.arange(first, min(first + BLOCK, users), dtype=np.int64), PER_USER)
        rng = np.random.default_rng(first)
        start, stride = (np.repeat(rng.integers(1, ITEMS, len(user) // PER_USER), PER_USER) for _ in range(2))
        item = (start + stride * np.tile(np.arange(PER_USER), len(user) // PER_USER)) % ITEMS
        rating = rng.integers(1, 6, len(user)).astype(np.float32)
        columns = {"user": user, "item": item}
        if model is None:
            columns |= {"rating": rating, "propensity": (0.05 + 0.15 * rating + 0.1 * item / ITEMS).astype(np.float32)}
        else:
            off = list(MODELS.values())[model]
            columns |= {
                "score": (rating + np.random.default_rng([first, model]).normal(0, off, len(user))).astype("f4")
            }
        yield pl.DataFrame(columns)


def audited(home: Path) -> tuple[float, int, float]:
    """Seconds on the clock, the peak of resident bytes, and processor seconds of the command."""
    models = [f"{name}={home / f'{name}.parquet'}" for name in MODELS]
    outputs = ["--json", str(home / "audit.json"), "--report", str(home / "audit.html")]
    words = ["audit", str(home / "log.parquet"), *models, "--metric", "mae", "--propensity", "propensity"]
    began = time.perf_counter()
    limited = ["prlimit", f"--data={MOST}", sys.executable]
    process = subprocess.Popen([*limited, "-m", "openloop", *words, *outputs], stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in (0, 3):
        raise RuntimeError(f"openloop audit ended with {process.returncode}")
    return time.perf_counter() - began, used.ru_maxrss * 1024, used.ru_utime + used.ru_stime


if __name__ == "__main__":
    main()
