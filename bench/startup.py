"""How long a new process takes to import, to show its help, and for its first fit; absolute limits, no peer.

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

from bench.harness import Result, compare, missing

IMPORT = "import time; s = time.perf_counter(); import openloop; print(time.perf_counter() - s)"
IMPORT_TARGET = 0.3
HELP_TARGET = 0.5
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
    return [*_started(TIMES[size]), *_first_fits(folder, size)]


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


def wall(command: list[str], **settings: str) -> tuple[float, Any]:
    """Seconds of a whole process, and how it ended."""
    start = time.perf_counter()
    try:
        ran = subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ | settings)
    except FileNotFoundError as error:
        ran = subprocess.CompletedProcess(command, 127, "", str(error))
    return time.perf_counter() - start, ran
