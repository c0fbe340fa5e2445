"""One measured function in a process of its own: `python -m bench.worker module:function folder ...`.

`function(folder, ...)` loads its input and returns what is to be timed. Each line on stdin is a turn: the timed
function is called, more than once when it is fast, and the answer is one line of JSON. Where the timed function
returns a function, that one works out the value when the clock has stopped. A function that returns a value instead
of one to be timed has done its work. A peer's interpreter runs this file too, so that it and the top level of the
cases import the standard library and numpy only.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import time
from importlib import import_module
from pathlib import Path
from typing import Any

# A turn of a fast function lasts about as long: it repeats, and its best call counts. Tests, which look at values
# alone, set 0.
TURN_SECONDS = float(os.environ.get("BENCH_TURN_SECONDS", "0.5"))
TURN_CALLS = 10
STATUS = Path("/proc/self/status")


def main(call: str, folder: str, *rest: str) -> None:
    # Libraries print; what they print must not stand between the answers.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def answer(**content: Any) -> None:
        answers.write(json.dumps(content) + "\n")
        answers.flush()

    module, _, name = call.partition(":")
    timed = getattr(import_module(module), name)(Path(folder), *rest)
    answer(value=None if callable(timed) else timed, resident=resident_bytes())
    for _ in sys.stdin:
        calls: list[float] = []
        cpu: list[float] = []
        while not calls or (sum(calls) < TURN_SECONDS and len(calls) < TURN_CALLS):
            start, work = time.perf_counter(), processor_seconds()
            value = timed()
            calls.append(time.perf_counter() - start)
            cpu.append(processor_seconds() - work)
        answer(calls=calls, cpu=cpu, peak=peak_bytes(), value=value() if callable(value) else value)


def processor_seconds() -> float:
    """Of this process and of those that it started and that ended."""
    ended = os.times()
    return time.process_time() + ended.children_user + ended.children_system


def peak_bytes() -> int:
    """The largest resident size so far, of this process or of one that it started and that ended."""
    own, ended = (resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    unit = 1 if sys.platform == "darwin" else 1024
    # Linux lets ru_maxrss begin at the size of the process that started this one; VmHWM does not.
    return max(from_status("VmHWM") if STATUS.exists() else own * unit, ended * unit)


def resident_bytes() -> int:
    """The resident size now; where the system does not tell, the largest so far."""
    return from_status("VmRSS") if STATUS.exists() else peak_bytes()


def from_status(name: str) -> int:
    line = next(line for line in STATUS.read_text().splitlines() if line.startswith(name))
    return int(line.split()[1]) * 1024


if __name__ == "__main__":
    main(*sys.argv[1:])
