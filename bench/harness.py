"""Functions side by side, each in its own process, in turns; their best times and peak memory as ratios.

The harness knows nothing about the cases: a side is the name of a function and the interpreter that runs it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO, Any

ROOT = Path(__file__).resolve().parents[1]
FOREIGN = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")
ROUNDS = {"full": 5, "quick": 2}


class SideError(Exception):
    """A side that cannot be measured, and why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """`call` is "module:function"; the function takes the input folder and `rest`, and returns what is timed.

    `source` is the folder that openloop is imported from; None: where it is installed. `settings` are variables of
    the environment.
    """

    call: str
    rest: tuple[str, ...] = ()
    python: Path | str = sys.executable
    source: Path | None = None
    settings: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def environment(self) -> dict[str, str]:
        """The caller's settings, less those that make an interpreter import packages from elsewhere."""
        own = {name: value for name, value in os.environ.items() if name not in FOREIGN}
        found = {} if self.source is None else {"PYTHONPATH": str(self.source)}
        return own | found | dict(self.settings)


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """The calls of one side: seconds of each by the clock and of CPU, the peak of resident bytes, and the last value.

    `start` is how many bytes were resident before the first call, the input and the libraries among them.
    """

    seconds: tuple[float, ...]
    peak: int
    value: Any
    start: int = 0
    cpu: tuple[float, ...] = ()

    @property
    def first(self) -> float:
        """The first call, which also loads what is loaded or compiled on first use."""
        return self.seconds[0]

    @property
    def best(self) -> float:
        """The least disturbed call."""
        return min(self.seconds)

    @property
    def grown(self) -> int:
        """The memory that the calls themselves took."""
        return self.peak - self.start


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """One line of the table: `ratio` is ours / peer; without a peer, `target` limits ours itself."""

    name: str
    ours: float | None
    peer: float | None = None
    ratio: float | None = None
    target: float | None = None
    met: bool | None = None
    note: str = ""
    unit: str = "s"


def compare(
    name: str,
    ours: float,
    peer: float | None = None,
    *,
    target: float | None = None,
    note: str = "",
    unit: str = "s",
) -> Result:
    """The line for a measured pair, or for a number that is its own measure; no target: for information."""
    ratio = None if peer is None else ours / peer
    judged = ours if ratio is None else ratio
    met = None if target is None else bool(judged <= target)
    return Result(name=name, ours=ours, peer=peer, ratio=ratio, target=target, met=met, note=note, unit=unit)


def missing(name: str, reason: str, ours: float | None = None) -> Result:
    """The line for a comparison that could not be made."""
    return Result(name=name, ours=ours, note=f"not measured: {reason}")


class Worker:
    """A running side; it waits between its turns."""

    def __init__(self, side: Side, folder: Path, errors: IO[str]) -> None:
        self._call, self._errors = side.call, errors
        self._process = subprocess.Popen(
            [str(side.python), "-m", "bench.worker", side.call, str(folder), *side.rest],
            cwd=ROOT, env=side.environment,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True,
        )  # fmt: skip
        answer = self._answer()
        self.made, self.start = answer["value"], answer["resident"]

    def turn(self) -> dict[str, Any]:
        """The timed calls of one turn."""
        assert self._process.stdin is not None  # noqa: S101 (it was opened as a pipe)
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        return self._answer()

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None  # noqa: S101 (it was opened as a pipe)
        line = self._process.stdout.readline()
        if not line:
            status = self._process.wait()
            self._errors.seek(0)
            said = self._errors.read().strip().splitlines() or ["no message"]
            raise SideError(f"{self._call} ended with status {status}: {said[-1]}")
        return json.loads(line)

    def close(self) -> None:
        """End it, by ending its turns."""
        self._process.communicate()


def race(sides: Mapping[str, Side], folder: Path, rounds: int) -> dict[str, Measured]:
    """Each side in turn, `rounds` times, so that what else the machine does disturbs all alike."""
    with ExitStack() as stack:
        workers: dict[str, Worker] = {}
        for name, side in sides.items():
            errors = stack.enter_context(tempfile.TemporaryFile("w+"))
            workers[name] = Worker(side, folder, errors)
            stack.callback(workers[name].close)
        turns = [{name: worker.turn() for name, worker in workers.items()} for _ in range(rounds)]
    return {
        name: Measured(
            seconds=tuple(seconds for turn in turns for seconds in turn[name]["calls"]),
            peak=turns[-1][name]["peak"],
            value=turns[-1][name]["value"],
            start=workers[name].start,
            cpu=tuple(seconds for turn in turns for seconds in turn[name]["cpu"]),
        )
        for name in sides
    }


def make_input(module: str, folder: Path, size: str) -> Any:
    """What the case's `make` returns; it makes the input in a process of its own, and this one stays small."""
    with tempfile.TemporaryFile("w+") as errors:
        worker = Worker(Side(call=f"{module}:make", rest=(size,)), folder, errors)
        worker.close()
    return worker.made


def data_folder(name: str) -> Path | None:
    """A data set's folder, in $OPENLOOP_DATA or else in ../shared/data."""
    places = [ROOT.parent / "shared" / "data" / name]
    if "OPENLOOP_DATA" in os.environ:
        places.insert(0, Path(os.environ["OPENLOOP_DATA"]) / name)
    return next((place for place in places if place.is_dir()), None)


def table(results: list[Result]) -> str:
    """The results as aligned text, notes below."""
    head = ("case", "ours", "peer", "ours / peer", "target", "met")
    body = [head, *(_cells(r) for r in results)]
    widths = [max(len(line[c]) for line in body) for c in range(len(head))]
    lines = ["  ".join(map(str.ljust, line, widths)).rstrip() for line in body]
    return "\n".join([*lines, "", *(f"{r.name}: {r.note}" for r in results if r.note)])


def _cells(r: Result) -> tuple[str, ...]:
    limit = "" if r.target is None else f"≤ {_amount(r.target, r.unit) if r.ratio is None else _ratio(r.target)}"
    met = "" if r.met is None else "yes" if r.met else "NO"
    return (r.name, _amount(r.ours, r.unit), _amount(r.peer, r.unit), _ratio(r.ratio), limit, met)


def _ratio(x: float | None) -> str:
    if x is None:
        return ""
    return f"1/{1 / x:.3g}" if x < 0.2 else f"{x:.3g}"


def _amount(x: float | None, unit: str) -> str:
    if x is None:
        return ""
    return f"{x / 2**20:,.0f} MiB" if unit == "B" else f"{x:.3g} s"


def write(results: list[Result], path: Path) -> None:
    """The results as JSON."""
    text = json.dumps([asdict(r) for r in results], indent=2, ensure_ascii=False)
    path.write_text(text + "\n", encoding="utf-8")
