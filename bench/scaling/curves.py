"""The curves: sizes of their points, who is measured there, and what was measured, kept point by point."""

from __future__ import annotations

import hashlib
import json
import math
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.environments import environment
from bench.harness import ROOT, Side, SideError, make_input, race
from openloop.support.atomic import write_text

RESULTS = ROOT / "bench" / "results" / "scaling"
INPUTS = "bench.scaling.inputs"
ROUNDS, CLOCK_ROUNDS = 2, 6  # in CPU seconds, and by the clock, which whatever else runs disturbs
SWEEPS = 3
THREADS = 2  # unless a curve is over them
ENOUGH = 0.9  # of the cores that threads could use: with fewer a curve over threads is about what else runs
COUNTS = [2**k for k in range(int(math.log2(os.cpu_count() or 1)) + 1)]  # 1, 2, … as far as there are cores

Size = Mapping[str, int]
Sides = Callable[[Size], dict[str, Side]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """Points that differ in one size."""

    axis: str
    values: Sequence[int]
    at: Size = field(default_factory=dict[str, int])  # where it is, beside the base of its case
    label: str = ""  # of the axis, where it is not its name
    input: str = ""  # where it is not that of its case
    sides: Sides | None = None  # likewise


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalingCase:
    """A verb or a model whose growth is measured."""

    name: str
    title: str
    input: str  # of bench.scaling.inputs
    base: Size
    curves: Sequence[Curve]
    sides: Sides  # "openloop", and at most one other
    words: str  # what grows how, and why

    def points(self) -> Iterator[tuple[Curve, dict[str, Any]]]:
        """Each point of each curve as the sizes of its input; some are the same."""
        for curve in self.curves:
            for value in curve.values:
                yield curve, {"input": curve.input or self.input, **self.base, **curve.at, curve.axis: value}


# -- who is measured ------------------------------------------------------------------------------------------


def here(call: str, size: Size, *rest: Any) -> Side:
    """A side that runs in this environment, on this tree, with so many threads of every kind."""
    names = ("NUMBA_NUM_THREADS", "POLARS_MAX_THREADS", "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS")
    threads = str(size.get("threads", THREADS))
    settings = dict.fromkeys(names, threads)
    return Side(call=call, rest=tuple(map(str, rest)), source=ROOT / "src", settings=settings)


def evaluate(size: Size) -> dict[str, Side]:
    return {"openloop": here("bench.moments:ours", size), "bare group-by": here("bench.moments:peer", size)}


def ranks(size: Size) -> dict[str, Side]:
    threads = size.get("threads", THREADS)
    return {"openloop": here("bench.ranks:ours", size, threads), "bare product": here("bench.ranks:workers", size)}


def factorisation(size: Size) -> dict[str, Side]:
    rest = SWEEPS, size["factors"], size.get("threads", THREADS)
    ours = here("bench.factorisation:ours", size, *rest)
    try:
        python = environment("implicit")
    except SideError as error:
        print(f"mf without implicit: {error}")
        return {"openloop": ours}
    return {"openloop": ours, "implicit": Side(call="bench.factorisation:implicit", rest=ours.rest, python=python)}


def logistic(size: Size) -> dict[str, Side]:
    """scikit-learn has a row for each cell, with a column for each product: only few of them."""
    ours = {"openloop": here("bench.logistic:ours", size)}
    numbers = size["users"] * size["items"] * (size["covariates"] ** 2 + 2)
    return ours | ({"scikit-learn": here("bench.logistic:sparse", size)} if numbers <= 1.2e6 else {})


def offsets(size: Size) -> dict[str, Side]:
    return {"openloop": here("bench.offsets:offsets", size)}


def audit(size: Size) -> dict[str, Side]:
    return {"openloop": here(f"{INPUTS}:audited", size, size["factors"], size["models"])}


# -- what was measured ----------------------------------------------------------------------------------------


def read(case: ScalingCase, folder: Path = RESULTS) -> dict[str, Any]:
    """What was measured so far."""
    path = folder / f"{case.name}.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def complete(case: ScalingCase, kept: Mapping[str, Any]) -> bool:
    """Whether all points are there, but for those over threads, which a busy machine leaves out."""
    return all(json.dumps(point) in kept for curve, point in case.points() if curve.axis != "threads")


def measured(case: ScalingCase, folder: Path = RESULTS, *, say: Callable[[str], None] = print) -> dict[str, Any]:
    """Seconds of CPU, by the clock, and bytes of each side at each point; those of an earlier run are not run again."""
    path, kept = folder / f"{case.name}.json", read(case, folder)
    points = list({json.dumps(point): (curve, point) for curve, point in case.points()}.items())
    folder.mkdir(parents=True, exist_ok=True)
    for n, (name, (curve, point)) in enumerate(points, 1):
        if name in kept:
            continue
        if curve.axis == "threads" and (free := free_cores(max(curve.values))) < ENOUGH * max(curve.values):
            say(f"{case.name}: threads are left out, as {free:.1f} of {max(curve.values)} cores are free")
        else:
            say(f"{case.name}: {n} of {len(points)}, {name}")
            kept[name] = _measure(curve, curve.sides or case.sides, point)
            write_text(path, json.dumps(kept, indent=1))
    return kept


def _measure(curve: Curve, sides: Sides, point: Mapping[str, Any]) -> dict[str, Any]:
    size = {name: value for name, value in point.items() if name != "input"}
    with tempfile.TemporaryDirectory() as folder:
        try:
            make_input(INPUTS, Path(folder), json.dumps(point))
            asked = sides(size)
            found = race(asked, Path(folder), CLOCK_ROUNDS if curve.axis == "threads" else ROUNDS)
        except SideError as error:
            raise SystemExit(f"bench.scaling: {point}: {error}") from error
    return {name: {"cpu": min(m.cpu), "clock": m.best, "bytes": m.peak} for name, m in found.items()}


def free_cores(threads: int) -> float:
    """How many cores so many threads get, over a second of work that needs nothing else."""
    block = bytes(2**22)

    def work(end: float) -> None:
        while time.perf_counter() < end:
            hashlib.blake2b(block)  # without the lock of the interpreter

    start, cpu = time.perf_counter(), time.process_time()
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(work, [start + 1.0] * threads))
    return (time.process_time() - cpu) / (time.perf_counter() - start)


def exponent(xs: Sequence[float], ys: Sequence[float]) -> float:
    """b of y ~ xᵇ, by the first and the last point."""
    return math.log(ys[-1] / ys[0]) / math.log(xs[-1] / xs[0])
