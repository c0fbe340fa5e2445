"""An audit with its rows in memory and with its rows on disk: how the two differ, if they do."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator
from typing import Any

RUNS = ("created", "seconds", "command")  # what differs from run to run
RELATIVE, ABSOLUTE = 1e-9, 1e-11
STREAMED = ", streamed from disk"
NAMED = re.compile(r"(model '\w+') \([^)]*\)")  # errors of read tables name their files, those of streamed ones do not
UNREAD = re.compile(r"^.*cut short or of another format[^:]*: ")  # only where rows are read it is known of which file
DAMAGED = re.compile(r"(File out of specification): [^;]*")  # of several damages, which is met first differs
TIED = "lists that end among tied items"
# The part of a sentence that has gamma.
REVERSED = re.compile(r"; (?:could reverse once propensities|no reweighting of the scored rows)[^;]*(?=;|\.$)")


def unlike(run: Callable[..., Any], *words: Any) -> tuple[int, str | None]:
    """The exit code of an audit in memory, and how its answer differs from that of streamed rows; None: not at all.

    Everything is compared: the exit code, what an error says after the name of the command, each number of the JSON and
    each text, except for what the JSON of streamed rows says is not computed.
    """
    memory, stream = (run("audit", *words, "--json", "-", mode) for mode in ("--no-stream", "--stream"))
    if memory.exit_code != stream.exit_code:
        told = (f"exit {x.exit_code}: {x.stderr[-300:]!r}" for x in (memory, stream))
        return memory.exit_code, " and ".join(told)
    if memory.exit_code not in (0, 3):
        same = errors(memory) == errors(stream)
        return memory.exit_code, None if same else f"{errors(memory)!r} and {errors(stream)!r}"
    kept, other = json.loads(memory.stdout), json.loads(stream.stdout)
    _leave_out(kept, other["not_computed"])
    return memory.exit_code, next(differences(kept, other), None)


def errors(ended: Any) -> str:
    """What a command says of its end."""
    told = ended.stderr.partition("openloop: ")[2]
    return DAMAGED.sub(r"\1", UNREAD.sub("", NAMED.sub(r"\1", told)))


def _leave_out(kept: dict[str, Any], absent: dict[str, str]) -> None:
    """Leave out of an audit what another one says it has not computed."""
    bounds = {part.removeprefix("bounds of ") for part in absent if part.startswith("bounds")}
    kept["sensitivity"] = [
        c for c in kept["sensitivity"]
        if c["against"] != "gamma" or f"{c['metric']} by {c['estimator']} against gamma" not in bounds
    ]  # fmt: skip
    for c in kept["contrasts"]:
        if f"gamma of {c['metric']} by {c['estimator']}" in absent:
            c["gamma"] = None
    if f"gamma of {kept['metric']} by {kept['estimator']}" in absent:
        verdict = kept["verdict"]
        verdict["sentences"] = [REVERSED.sub("", sentence) for sentence in verdict["sentences"]]
    if any(part.endswith("tied items") for part in absent):
        for notes in (kept["notes"], kept["comparison"]["notes"]):
            notes[:] = [note for note in notes if not note.startswith(TIED)]
    kept["not_computed"] = absent


def differences(a: Any, b: Any, where: str = "") -> Iterator[str]:
    """The places at which two answers differ."""
    if isinstance(a, dict) and isinstance(b, dict):
        for key in dict.fromkeys([*a, *b]):
            if key not in a or key not in b:
                yield f"{where}/{key}: only in {'memory' if key in a else 'the stream'}"
            elif key not in RUNS:
                yield from differences(a[key], b[key], f"{where}/{key}")
    elif isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
        for at, (x, y) in enumerate(zip(a, b, strict=True)):
            yield from differences(x, y, f"{where}/{at}")
    elif not _alike(a, b):
        yield f"{where}: {a!r} and {b!r}"


def _alike(a: Any, b: Any) -> bool:
    if isinstance(a, float | int) and isinstance(b, float | int):
        return math.isclose(a, b, rel_tol=RELATIVE, abs_tol=ABSOLUTE)
    return a == (b.removesuffix(STREAMED) if isinstance(b, str) else b)
