"""Checkpoints of chains: where every chain is and what was kept, in a file written whole or not at all."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from openloop.core.feedback import Array
from openloop.errors import FormatError, InputError
from openloop.support.atomic import FilePath, replacing

SECONDS = 60.0  # between two checkpoints


@dataclass(slots=True, kw_only=True, eq=False)
class Progress:
    """How far chains have come: sweeps done, states, and by chain what was kept and watched."""

    sweep: int
    states: list[Any]
    draws: list[list[dict[str, Array]]]
    traces: list[list[dict[str, float]]]


class Clock:
    """When the next checkpoint is due."""

    def __init__(self) -> None:
        self.last = time.monotonic()

    def due(self) -> bool:
        """Whether it is time; then the clock starts again."""
        now = time.monotonic()
        if now - self.last < SECONDS:
            return False
        self.last = now
        return True


def check_checkpoint(who: str, path: Any) -> FilePath | None:
    """A path of a file in a folder that there is, or None."""
    if path is None:
        return None
    if not isinstance(path, str | os.PathLike) or not os.fspath(path):
        raise InputError(f"{who}: checkpoint must be the path of a file, or None, got {path!r}; pass a path.")
    file = Path(os.fsdecode(path)).expanduser()
    if file.is_dir():
        raise InputError(f"{who}: checkpoint must be the path of a file, {str(file)!r} is a folder; name a file in it.")
    if not file.parent.is_dir():
        raise InputError(f"{who}: checkpoint={str(file)!r} is in no folder; create {str(file.parent)!r} first.")
    return file


def resumed(sampler: Any, plan: Any) -> Progress:
    """Where the checkpoint of a plan ends, or the beginning of all chains where there is none."""
    held = _read(plan) if plan.checkpoint is not None and Path(plan.checkpoint).exists() else {}
    states = [sampler.begin(plan.seed, chain) for chain in range(plan.chains)]
    at = Progress(sweep=0, states=states, draws=[[] for _ in states], traces=[[] for _ in states])
    if not held:
        return at
    at.sweep = int(held.pop("sweep"))
    for chain in range(plan.chains):
        own = {name.partition(".")[2]: x for name, x in held.items() if name.partition(".")[0] == str(chain)}
        at.states[chain] = replace(at.states[chain], **_part(own, "state"))
        at.draws[chain], at.traces[chain] = _records(_part(own, "draw")), _records(_part(own, "trace"))
    return at


def save(at: Progress, plan: Any) -> None:
    """Write the checkpoint; what an interrupted sweep has added already is left out."""
    watched = max(at.sweep - plan.burn, 0)
    arrays: dict[str, Any] = {"mark": np.array(plan.mark), "sweep": np.array(at.sweep)}
    for chain, state in enumerate(at.states):
        arrays |= {f"{chain}.state.{f.name}": getattr(state, f.name) for f in fields(state)}
        arrays |= _columns(f"{chain}.draw", at.draws[chain][: watched // plan.thin])
        arrays |= _columns(f"{chain}.trace", at.traces[chain][:watched])
    with replacing(plan.checkpoint) as temporary, temporary.open("wb") as file:
        np.savez(file, **arrays)


def _columns(name: str, records: list[dict[str, Any]]) -> dict[str, Array]:
    return {f"{name}.{key}": np.stack([record[key] for record in records]) for key in (records[0] if records else ())}


def _records(columns: dict[str, Array]) -> list[dict[str, Any]]:
    n = len(next(iter(columns.values()))) if columns else 0
    return [{name: x[k] for name, x in columns.items()} for k in range(n)]


def _part(arrays: dict[str, Array], kind: str) -> dict[str, Array]:
    return {name.partition(".")[2]: x for name, x in arrays.items() if name.partition(".")[0] == kind}


def read_checkpoint(who: str, path: FilePath, mark: str, needed: Sequence[str]) -> dict[str, Array]:
    """The arrays of a checkpoint, which must be of the fit that has this mark."""
    try:
        with Path(path).open("rb") as opened, np.load(opened, allow_pickle=False) as file:  # NumPy leaves bad ones open
            held = {name: file[name] for name in file.files}
        own, _ = str(held.pop("mark")), [held[name] for name in needed]
    except (OSError, EOFError, ValueError, KeyError, BadZipFile) as error:
        raise FormatError(
            f"{who}: checkpoint {str(path)!r} cannot be read ({error}); delete it, or give another checkpoint=."
        ) from error
    if own != mark:
        raise InputError(
            f"{who}: checkpoint {str(path)!r} is of another log, of other parameters or of another rng; delete it, or "
            "give another checkpoint=."
        )
    return held


def _read(plan: Any) -> dict[str, Array]:
    path = plan.checkpoint
    held = read_checkpoint(plan.who, path, plan.mark, ["sweep"])
    if held["sweep"] > plan.sweeps:
        raise InputError(
            f"{plan.who}: checkpoint {str(path)!r} has {held['sweep']:,} sweeps, and sweeps={plan.sweeps:,} asks for "
            "fewer; raise sweeps=, or give another checkpoint=."
        )
    return held
