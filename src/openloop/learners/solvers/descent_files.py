"""Checkpoints of a projected fit: Q, what L-BFGS remembers and the objective so far, after each iteration."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np

from openloop.learners.checkpoints import check_checkpoint, read_checkpoint
from openloop.learners.solvers.projected import Ask, Descent
from openloop.support.atomic import FilePath, replacing


def mark_of(ask: Ask, rows: int, content: int) -> str:
    """A mark of what is fitted: the start, which tells items, factors and rng, and a checksum of the rows."""
    settings = f"{ask.Q.shape} {ask.Q.dtype} {rows} {content} {ask.c!r} {ask.scale!r} {ask.until}"
    digest = hashlib.blake2b(settings.encode())
    digest.update(np.ascontiguousarray(ask.Q).data)
    digest.update(ask.penalty.data)
    return digest.hexdigest()[:32]


def begun(checkpoint: FilePath | None, ask: Ask, mark: str) -> Descent:
    """Where the checkpoint ends, or the start where there is none."""
    path = check_checkpoint("MF", checkpoint)
    if path is None or not Path(path).exists():
        return Descent(Q=ask.Q)
    held = read_checkpoint("MF", path, mark, ["Q", "values", "steps", "changes"])
    steps, changes = list(held["steps"]), list(held["changes"])
    return Descent(Q=held["Q"], steps=steps, changes=changes, values=held["values"].tolist())


def save(checkpoint: FilePath | None, at: Descent, mark: str) -> None:
    """Write the checkpoint, whole or not at all."""
    if checkpoint is None:
        return
    none = np.empty((0, *at.Q.shape), at.Q.dtype)
    held: dict[str, Any] = {
        "mark": np.array(mark), "Q": at.Q, "values": np.array(at.values),
        "steps": np.stack(at.steps) if at.steps else none, "changes": np.stack(at.changes) if at.changes else none,
    }  # fmt: skip
    with replacing(Path(checkpoint).expanduser()) as temporary, temporary.open("wb") as file:
        np.savez(file, **held)
