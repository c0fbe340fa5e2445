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
    for number in (KILLED, TERMINATED):
        moments = [draw.uniform(0, 1.05) for _ in range(each)]
        yield f"{number.name} at any moment", _hits(bench, number, [("kill", moment) for moment in moments], again)
    for number, calls, name in ((KILLED, RENAMES, "renames"), (TERMINATED, STEPS, "steps")):
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
        # Left by an earlier kill: what is there when this one begins is swept by the next that writes.
        bench.judge(number, code, what, count, left=again)
        if again:
            bench.judge_next(what, count)
    return count
