"""How long a new process takes to import, to show its help, to begin an audit, and for its first fit; no peer.

The first fit of `MF` is timed alone, with openloop and the learner imported: once with nothing compiled yet, as after
an installation, and then with what that left in the cache.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from bench.harness import Result, compare, missing

IMPORT = "import time; s = time.perf_counter(); import openloop; print(time.perf_counter() - s)"
IMPORT_TARGET = 0.3
HELP_TARGET = 0.5
LINE_TARGET = 1.5
USERS, ITEMS = 200, 100
FIT = """
import time
import numpy as np
import openloop as ol
user, item = np.nonzero(np.random.default_rng(0).random((200, 100)) < 0.2)
log, model = ol.Feedback.from_arrays(user, item, 1.0 + (user + item) % 5), ol.learners.MF()
s = time.perf_counter(); model.fit(log, np.ones(len(log))); print(time.perf_counter() - s)
"""
COMPILED_TARGET = 15.0
CACHED_TARGET = 1.0
TIMES = {"full": 7, "quick": 1}


def run(folder: Path, size: str, **_: Any) -> list[Result]:
    return [*_started(TIMES[size]), _first_line(folder, TIMES[size]), *_first_fits(folder, size)]


def _started(times: int) -> list[Result]:
    python = [sys.executable, "-c"]
    bare = min(wall([*python, "pass"])[0] for _ in range(times))
    imported = min(float(wall([*python, IMPORT])[1].stdout) for _ in range(times))
    helped = [wall([str(Path(sys.executable).with_name("openloop")), "--help"]) for _ in range(times)]
    first = compare("import openloop", imported, target=IMPORT_TARGET)
    failed = helped[0][1]
    if failed.returncode:
        return [first, missing("openloop --help", _reason(failed))]
    note = f"the whole process, of which a bare interpreter takes {bare:.2g} s"
    return [first, compare("openloop --help", min(s for s, _ in helped), target=HELP_TARGET, note=note)]


def _first_line(folder: Path, times: int) -> Result:
    """How long it takes until `openloop audit` says anything, on stdout or stderr; it is not waited for."""
    name = "openloop audit, its first line"
    words = [str(Path(sys.executable).with_name("openloop")), "audit", *_audit_files(folder)]
    heard = [until_first_line(words) for _ in range(times)]
    failed = next((line for _, line in heard if not line.startswith("reading ")), None)
    if failed is not None:
        return missing(name, failed.strip() or "nothing was said")
    return compare(name, min(seconds for seconds, _ in heard), target=LINE_TARGET, note="imports included")


def _audit_files(folder: Path) -> list[str]:
    """A log and two models' scores of all its pairs, as words of the command."""
    rng = np.random.default_rng(0)
    user, item = np.nonzero(rng.random((USERS, ITEMS)) < 0.2)
    pairs = pl.DataFrame({"user": user, "item": item})
    numbers = {"log": ("rating", 1.0 + (user + item) % 5)}
    numbers |= {name: ("score", rng.uniform(1, 5, len(user))) for name in ("a", "b")}
    for name, (column, values) in numbers.items():
        pairs.with_columns(pl.Series(column, values)).write_parquet(folder / f"{name}.parquet")
    return [str(folder / "log.parquet"), *(f"{name}={folder / name}.parquet" for name in ("a", "b"))]


def _first_fits(folder: Path, size: str) -> list[Result]:
    """From an empty cache, and from the one that is left; a trial takes the cache as it is, and compiles nothing."""
    cache = {"NUMBA_CACHE_DIR": str(folder / "cache")} if size == "full" else {}
    names = {"first fit, compiling": COMPILED_TARGET} if size == "full" else {}
    names |= {"first fit, from the cache": CACHED_TARGET}
    lines: list[Result] = []
    for name, target in names.items():
        ran = [wall([sys.executable, "-c", FIT], **cache)[1] for _ in range(1 if "compiling" in name else TIMES[size])]
        if ran[0].returncode:
            return [*lines, missing(name, _reason(ran[0]))]
        lines.append(
            compare(name, min(float(r.stdout) for r in ran), target=target, note="MF().fit alone, after imports")
        )
    return lines


def _reason(failed: Any) -> str:
    return (failed.stderr.strip().splitlines() or [f"status {failed.returncode}"])[-1]


def until_first_line(command: list[str]) -> tuple[float, str]:
    """Seconds until a process has written a line, and that line; the process is ended then."""
    start = time.perf_counter()
    try:
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
            line = process.stdout.readline() if process.stdout else ""
            seconds = time.perf_counter() - start
            process.kill()
    except FileNotFoundError as error:
        return time.perf_counter() - start, str(error)
    return seconds, line


def wall(command: list[str], **settings: str) -> tuple[float, Any]:
    """Seconds of a whole process, and how it ended."""
    start = time.perf_counter()
    try:
        ran = subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ | settings)
    except FileNotFoundError as error:
        ran = subprocess.CompletedProcess(command, 127, "", str(error))
    return time.perf_counter() - start, ran
