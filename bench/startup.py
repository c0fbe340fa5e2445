"""How long `import openloop` and `openloop --help` take in a new process; absolute limits, no peer."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from bench.harness import Result, compare, missing

IMPORT = "import time; s = time.perf_counter(); import openloop; print(time.perf_counter() - s)"
IMPORT_TARGET = 0.3
HELP_TARGET = 0.5


def run(_folder: Path, size: str, **_: Any) -> list[Result]:
    times = {"full": 7, "quick": 2}[size]
    python = [sys.executable, "-c"]
    bare = min(wall([*python, "pass"])[0] for _ in range(times))
    imported = min(float(wall([*python, IMPORT])[1].stdout) for _ in range(times))
    helped = [wall([str(Path(sys.executable).with_name("openloop")), "--help"]) for _ in range(times)]
    first = compare("import openloop", imported, target=IMPORT_TARGET)
    failed = helped[0][1]
    if failed.returncode:
        reason = (failed.stderr.strip().splitlines() or [f"status {failed.returncode}"])[-1]
        return [first, missing("openloop --help", reason)]
    note = f"the whole process, of which a bare interpreter takes {bare:.2g} s"
    return [first, compare("openloop --help", min(s for s, _ in helped), target=HELP_TARGET, note=note)]


def wall(command: list[str]) -> tuple[float, Any]:
    """Seconds of a whole process, and how it ended."""
    start = time.perf_counter()
    try:
        ran = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError as error:
        ran = subprocess.CompletedProcess(command, 127, "", str(error))
    return time.perf_counter() - start, ran
