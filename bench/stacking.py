"""A stack of three factorisations with Exposure on a log as large as MovieLens 20M, against one of the factorisations.

`Stack([MF, (MF, 0.5), (MF, 0), Exposure], folds=4)` fits twelve factorisations to three quarters of the rows, three to
all of them, and four decompositions of who saw what. Its limits are (K + 1)·3 = 15 times the time of one MF on all rows
and 1.5 times its memory. Every fit has 64 factors and makes the same number of sweeps, so the ratio does not depend on
when one settles.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from bench.factorisation import FACTORS, REG, THREADS, load
from bench.factorisation import make as make_log
from bench.harness import Result, Side, compare, make_input, race

NAME = "Stack against one MF"
FOLDS, SWEEPS = 4, 10
TARGET, MEMORY_TARGET = 3 * (FOLDS + 1), 1.5
MODULE = "bench.stacking"


def run(folder: Path, size: str, *, install: bool = True) -> list[Result]:  # noqa: ARG001, nothing is installed
    make_input(MODULE, folder, size)
    found = race({name: Side(call=f"{MODULE}:{name}") for name in ("one", "stack")}, folder, 1)
    one, stack = found["one"], found["stack"]
    # On a busy machine the clock also measures others; the processor's does not.
    cpu = [side.value["cpu"] for side in (stack, one)]
    note = (
        f"{SWEEPS} sweeps a fit; {stack.value['factors']} factors against {one.value['factors']}; processor seconds "
        f"{cpu[0]:.3g} and {cpu[1]:.3g}, {cpu[0] / cpu[1]:.3g} times as many"
    )
    memory = f"of the fits alone; whole processes, input included: {stack.peak >> 20:,} and {one.peak >> 20:,} MiB"
    return [
        compare(NAME, stack.best, one.best, target=TARGET, note=note),
        compare(f"{NAME}, memory", stack.grown, one.grown, target=MEMORY_TARGET, note=memory, unit="B"),
    ]


def make(folder: Path, size: str) -> None:
    make_log(folder, size)


def one(folder: Path) -> Any:
    return _timed(folder, _factorisation())


def stack(folder: Path) -> Any:
    import openloop as ol

    bases = [_factorisation(), (_factorisation(), 0.5), (_factorisation(), 0), ol.learners.Exposure(rank=8)]
    return _timed(folder, ol.learners.Stack(bases, folds=FOLDS))


def _factorisation() -> Any:
    import openloop as ol

    return ol.learners.MF(FACTORS, REG, iterations=SWEEPS, tol=0, threads=THREADS)


def _timed(folder: Path, model: Any) -> Any:
    import openloop as ol

    log, (U, I) = load(folder / "log.npz")
    w = log.pop("weight")
    feedback = ol.Feedback(**log, users=ol.Vocabulary.range(U), items=ol.Vocabulary.range(I))

    def timed() -> dict[str, Any]:
        cpu = time.process_time()
        model.fit(feedback, w)
        return {"factors": model.user_factors_.shape[1], "cpu": time.process_time() - cpu}

    return timed
