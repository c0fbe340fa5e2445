"""The ways in which a command is hit, and what may come of it: old or new bytes, nothing left, and a next run."""

from __future__ import annotations

import random
import signal
from collections.abc import Iterator

from tests.faults.harness import RENAMES, STEPS, Bench, Count

KILLED, TERMINATED = signal.SIGKILL, signal.SIGTERM


WHENS = ("before", "after")


def attack(bench: Bench, each: int, seed: int, *, again: bool) -> Iterator[tuple[str, Count]]:
    """Hit a command `each` times in each way; `again` runs it to its end after each time, else only after the last."""
    draw = random.Random(seed)
    bench.restore()
    for number, calls, name in ((TERMINATED, STEPS, "steps"), (KILLED, RENAMES, "renames")):  # a kill leaves something
        moments = [("kill", draw.uniform(0, 1.05)) for _ in range(each)]
        yield f"{number.name} at any moment", _hits(bench, number, moments, again)
        places = [("aim", draw.randint(1, bench.steps[name]), WHENS[k % 2], calls) for k in range(each)]
        yield f"{number.name} at its {name}", _hits(bench, number, places, again)
    if not again:
        count = Count()
        bench.judge_next("after all", count)
        yield "the next run", count


def _hits(bench: Bench, number: signal.Signals, hits: list[tuple], again: bool) -> Count:
    count = Count()
    for way, *where in hits:
        if again:
            bench.restore()
        code = getattr(bench, way)(number, *where)
        what = f"{number.name} {where[:2]}"
        bench.judge(number, code, what, count)
        if again:
            bench.judge_next(what, count)
    return count
