"""What commands that learn have in common: a log with its weights, and a model that is saved."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from openloop.commands.log_files import LogRequest
from openloop.commands.table_files import check_extension, refuse_overwriting
from openloop.core.feedback import Feedback, Floats
from openloop.core.propensities import Propensities
from openloop.core.weights import effective_size
from openloop.data.columns import Column
from openloop.data.reading import read
from openloop.errors import InputError
from openloop.support.atomic import FilePath
from openloop.support.progress import Step, silent


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnRequest(LogRequest):
    """A log, how its rows are weighted, and where the model is saved; the requests of commands extend it.

    `users` and `items` are sizes of a population with the ids 0 … n-1.
    """

    out: FilePath
    users: int | None = None
    items: int | None = None
    propensity: Column = None
    weight: Column = None
    floor: float = 0.0

    def __post_init__(self) -> None:
        LogRequest.__post_init__(self)
        _check_weights(self)
        check_extension(self.out, [".safetensors"])
        refuse_overwriting([self.out], [self.log])

    @property
    def weighted(self) -> bool:
        """Whether rows differ in weight."""
        return self.propensity is not None or self.weight is not None or self.duplicates == "count"

    def propensities(self, log: Feedback) -> Propensities | None:
        """The p of the log's rows, where a column was named."""
        if log.propensity is None:
            return None
        return Propensities(values=log.propensity, floor=self.floor, fingerprint=log.fingerprint)


@dataclass(frozen=True, slots=True, kw_only=True)
class Weighing:
    """Where sample weights came from, and how much they leave of the rows; `raised` is the share below the floor."""

    column: Column  # None: rows of a pair, counted
    inverse: bool  # of propensities
    counts: bool = False  # times the number of a pair's rows, or the sum of their weights
    effective_size: float
    largest_share: float
    raised: float = 0.0

    @classmethod
    def of(cls, w: Floats, **source: Any) -> Weighing:
        """Effective size (Σw)²/Σw², and the largest weight's share of Σw."""
        return cls(effective_size=effective_size(w), largest_share=float(1 / np.sum(w / w.max())), **source)

    def text(self, rows: int) -> str:
        """The same in one line."""
        counts = "the rows of each pair, counted" if self.counts else ""
        source = "" if self.column is None else f"column {self.column!r}"
        source = f"1/p of {source}" if self.inverse else f"{source}, summed" if source and counts else source
        source = f"{source} times {counts}" if self.inverse and counts else source or counts
        floor = f", the floor raises {self.raised:.1%} of p" if self.raised else ""
        return (
            f"weights: {source}{floor}; {self.effective_size:,.0f} effective of {rows:,} rows, "
            f"the largest has {self.largest_share:.2%} of the sum"
        )


def read_log(wanted: LearnRequest, step: Step = silent) -> Feedback:
    """The log with its column of propensities or weights."""
    step("reading the log", 0.0)
    return read(
        wanted.log, **wanted.reading, propensity=wanted.propensity, weight=wanted.weight, users=wanted.users,
        items=wanted.items,
    )  # fmt: skip


def weighing(wanted: LearnRequest, log: Feedback) -> Weighing | None:
    """What the weights 1/p, times the log's own, leave of the rows; None where all are equal."""
    counts, p = wanted.duplicates == "count", wanted.propensities(log)
    if p is not None:
        w = p.weights if log.weight is None else p.weights * log.weight
        return Weighing.of(w, column=wanted.propensity, inverse=True, raised=p.clipped, counts=counts)
    if log.weight is not None:
        return Weighing.of(log.weight, column=wanted.weight, inverse=False, counts=counts)
    return None


def weights_line(found: Weighing | None, log: Feedback) -> str:
    """A line about the weights."""
    return "weights: none" if found is None else found.text(len(log))


def _check_weights(wanted: LearnRequest) -> None:
    if wanted.propensity is not None and wanted.weight is not None:
        raise InputError("--propensity makes the weights 1/p, and --weight names others; leave one of them out.")
    if wanted.floor and wanted.propensity is None:
        raise InputError("--floor bounds propensities, and there are none; pass --propensity COLUMN, or leave it out.")
    if not 0 <= wanted.floor <= 1:
        raise InputError(f"--floor must lie in [0, 1], got {wanted.floor:g}; 0 means no floor.")
