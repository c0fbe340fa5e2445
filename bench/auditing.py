"""`openloop audit` of a log as large as MovieLens 20M: 5 models × 6 metrics × 5 estimators, absolute limits, no peer.

The log is Parquet, nine tenths of it excluded as the training part. Each model is two tables: scores of the held-out
tenth, and the top 100 of every user. Propensities are fitted by popularity to the whole. The command runs in a process
of its own, report and JSON included; its time and its peak of resident memory are those of the whole process.

The same with a tenth of the users, and so of the rows, gives the exponent with which time grows.
"""

from __future__ import annotations

import math
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from bench.harness import Result, SideError, compare, make_input
from bench.offsets import offsets_log

# users, items, rows
SIZES = {"full": (138_493, 26_744, 20_000_000), "tenth": (13_849, 26_744, 2_000_000), "quick": (300, 200, 6_000)}
MODELS, TOP = {"full": 5, "tenth": 5, "quick": 2}, 100
TIMES = {"full": 3, "quick": 1}
METRICS = ("recall@10", "ndcg@10", "dcg@50", "hit@10", "mae", "mse")
ESTIMATORS = ("snips", "ips", "clipped@1000", "stratified", "naive")
SECONDS, BYTES, REPORT_SECONDS = 60.0, 8 * 2**30, 5.0
MODULE = "bench.auditing"


def run(folder: Path, size: str, **_: Any) -> list[Result]:
    lines: list[Result] = []
    sizes = ("tenth", "full") if size == "full" else ("quick",)
    seconds: dict[str, float] = {}
    for name in sizes:
        own = folder / name
        own.mkdir()
        make_input(MODULE, own, name)
        seconds[name], peak = audited(own, report=True)
        users, items, rows = SIZES[name]
        what = f"audit of {rows:,} rows"
        big = name == "full"
        asked = f"{MODELS[name]} models × {len(METRICS)} metrics × {len(ESTIMATORS)} estimators"
        note = f"{users:,} users × {items:,} items; {asked}"
        lines.append(compare(what, seconds[name], target=SECONDS if big else None, note=note))
        lines.append(compare(f"{what}, memory", peak, target=BYTES if big else None, unit="B"))
    if "full" in seconds:
        grown = SIZES["full"][2] / SIZES["tenth"][2]
        exponent = math.log(seconds["full"] / seconds["tenth"]) / math.log(grown)
        lines[-2] = compare(
            lines[-2].name, seconds["full"], target=SECONDS, note=f"{lines[-2].note}; time ~ rows^{exponent:.2f}"
        )
    return [*lines, _report(folder / sizes[0], seconds[sizes[0]], TIMES[size])]


def audited(folder: Path, *, report: bool) -> tuple[float, int]:
    """Seconds and peak of resident bytes of the command."""
    made = len(list(folder.glob("scores*.parquet")))
    models = [f"m{m}={folder / f'{kind}{m}.parquet'}" for m in range(made) for kind in ("scores", "top")]
    options = [f"--metric={name}" for name in METRICS] + [f"--estimator={name}" for name in ESTIMATORS]
    options += [f"--exclude={folder / 'train.parquet'}", "--propensity=popularity", f"--json={folder / 'audit.json'}"]
    options += [f"--report={folder / 'report.html'}"] if report else []
    command = [
        str(Path(sys.executable).with_name("openloop")),
        "audit",
        str(folder / "test.parquet"),
        *models,
        *options,
    ]
    start = time.perf_counter()
    with (folder / "said.txt").open("w") as said:
        process = subprocess.Popen(command, stdout=said, stderr=said)
        _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in (0, 3):
        raise SideError(f"openloop audit ended with {process.returncode}: {(folder / 'said.txt').read_text()[-300:]}")
    return time.perf_counter() - start, used.ru_maxrss * 1024


def _report(folder: Path, first: float, times: int) -> Result:
    """The page alone: what the command takes with it (the `first` was measured) less without, the best of a few."""
    with_page = min([first, *(audited(folder, report=True)[0] for _ in range(times - 1))])
    without = min(audited(folder, report=False)[0] for _ in range(times))
    return compare(
        "report of it", max(with_page - without, 0.0), target=REPORT_SECONDS, note="with --report less without"
    )


# -- the input -----------------------------------------------------------------------------------------------


def make(folder: Path, size: str) -> None:
    """Files of a log in two parts, and of models: noisy tastes, and lists of what is popular and was not seen."""
    import polars as pl

    U, I, n = SIZES[size]
    rng = np.random.default_rng(0)
    log = offsets_log(U, I, n, rng)
    user, item = log["user"], log["item"]
    rating = np.clip(np.rint(3.5 + rng.normal(0, 1, len(user))), 1, 5).astype(np.float32)
    held = rng.random(len(user)) < 0.1
    for name, part in (("test", held), ("train", ~held)):
        rows = {"user": user[part], "item": item[part], "rating": rating[part]}
        pl.DataFrame(rows).write_parquet(folder / f"{name}.parquet")
    popularity = np.bincount(item, minlength=I)
    train = user[~held].astype(np.int64) * I + item[~held]  # sorted, as the log is
    for m in range(MODELS[size]):
        score = rating[held] + rng.normal(0, 0.6 + 0.1 * m, int(held.sum()))
        rows = {"user": user[held], "item": item[held], "score": score.astype(np.float32)}
        pl.DataFrame(rows).write_parquet(folder / f"scores{m}.parquet")
        order = np.argsort(-popularity * rng.lognormal(0, 0.2 * m, I), kind="stable")
        pl.DataFrame(_lists(U, order, train, rng)).write_parquet(folder / f"top{m}.parquet")


def _lists(U: int, order: np.ndarray, train: np.ndarray, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """The first items of an order that a user's coin chose and that are not in its training part."""
    I, reach = len(order), min(len(order), 10 * TOP)
    found: list[dict[str, np.ndarray]] = []
    for start in range(0, U, 2048):
        end = min(start + 2048, U)
        seen = np.zeros((end - start, I), bool)
        seen.ravel()[train[slice(*np.searchsorted(train, [start * I, end * I]))] - start * I] = True
        free = ~seen[:, order[:reach]] & (rng.random((end - start, reach), np.float32) < 0.5)
        rank = np.cumsum(free, axis=1, dtype=np.int32)
        row, column = np.nonzero(free & (rank <= TOP))
        found.append({
            "user": (start + row).astype(np.int32), "item": order[column].astype(np.int32), "rank": rank[row, column],
        })  # fmt: skip
    return {name: np.concatenate([part[name] for part in found]) for name in ("user", "item", "rank")}
