"""Where strata of propensity begin and end: edges of equal mass, equal count or equal width.

Edges come from the scored rows. Strata are right-closed, and edges are midpoints between distinct values.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from openloop.core.feedback import Floats
from openloop.errors import InputError

Bins = Literal["mass", "count", "width"]
LEAST_ROWS = 30  # in a stratum of equal mass: fewer say nothing of their own spread
ROUNDING = 1e-9  # relative: cumulated sums that should reach a share and miss it by rounding


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Ladder:
    """Rows by steps of ascending p: a step is one value, or a range between `low` and `high` that no edge may cut."""

    low: Floats
    high: Floats
    rows: Floats
    mass: Floats  # Σ1/p

    @classmethod
    def of(cls, values: Floats, rows: npt.ArrayLike) -> Ladder:
        """A step for each distinct value, given how many rows have it."""
        rows = np.asarray(rows, np.float64)
        return cls(low=values, high=values, rows=rows, mass=rows / values)

    def refined(self, steps: npt.NDArray[np.int64], finer: Ladder) -> Ladder:
        """The same with the steps `at` replaced by finer ones."""
        remaining = np.setdiff1d(np.arange(len(self.low)), steps)
        order = np.argsort(np.concatenate([self.low[remaining], finer.low]), kind="stable")

        def merged(values: Floats, other: Floats) -> Floats:
            return np.concatenate([values[remaining], other])[order]

        return Ladder(
            low=merged(self.low, finer.low), high=merged(self.high, finer.high),
            rows=merged(self.rows, finer.rows), mass=merged(self.mass, finer.mass),
        )  # fmt: skip

    def edge(self, step: int) -> float:
        """The midpoint between a step and the next."""
        return float((self.high[step] + self.low[step + 1]) / 2)

    def at(self, places: Floats) -> npt.NDArray[np.int64]:
        """The steps that hold some places of the sorted rows, counted from 0."""
        return np.searchsorted(np.cumsum(self.rows), places, side="right")

    def raw(self, strata: int, bins: Bins) -> Floats:
        """Edges of equal count or width, not yet between two values; steps of these places are single values."""
        if bins == "width":
            return np.linspace(self.low[0], self.high[-1], strata + 1)[1:-1]
        before, after, between = _positions(self, strata)
        low, high = self.low[self.at(before)], self.low[self.at(after)]
        return low + (high - low) * between

    def strata(self, edges: tuple[float, ...]) -> npt.NDArray[np.int64]:
        """The stratum of each step."""
        return np.searchsorted(np.array(edges), self.low, side="left")

    def places(self, strata: int) -> npt.NDArray[np.int64]:
        """The steps at which Σw first reaches j/strata of the whole, j = 1 … strata − 1."""
        reached = np.cumsum(self.mass)
        return np.searchsorted(reached, (1 - ROUNDING) * reached[-1] * np.arange(1, strata) / strata)


def edges(propensity: Floats, strata: int, bins: Bins = "mass") -> tuple[float, ...]:
    """The inner edges of the strata; fewer where values tie.

    "mass": equal Σ1/p, so that strata have equal shares of the population. "count": equally many rows. "width": equally
    wide in p. Strata of equal mass have at least 30 rows: one with fewer is joined with the next (see `by_mass`). Where
    there are no more distinct values than strata, each value is a stratum of its own, however few its rows: joining two
    of them would make one mean of two chances of being seen, and there is nothing to average inside.
    """
    return of_ladder(Ladder.of(*_counted(propensity)), strata, bins)


def of_ladder(ladder: Ladder, strata: int, bins: Bins) -> tuple[float, ...]:
    """As `edges`, of a ladder whose steps `cut_by` are single values."""
    check_strata(strata)
    if bins == "mass":
        return by_mass(ladder, strata)
    values = np.unique(np.concatenate([ladder.low, ladder.high]))
    raw = values[:-1] if len(values) <= strata else ladder.raw(strata, bins)

    def below(q: float) -> float:
        return values[max(np.searchsorted(values, q, side="right") - 1, 0)]

    def above(q: float) -> float:
        return values[min(np.searchsorted(values, q, side="right"), len(values) - 1)]

    return snap(raw, below, above)


def cut_by(ladder: Ladder, strata: int, bins: Bins) -> npt.NDArray[np.int64]:
    """The steps of a ladder in which an edge may lie, which must be known value by value."""
    if len(ladder.low) <= strata:
        return np.arange(len(ladder.low))
    if bins == "mass":
        return np.unique(ladder.places(strata))
    if bins == "count":
        return np.unique(ladder.at(np.concatenate(_positions(ladder, strata)[:2])))
    step = np.searchsorted(ladder.low, ladder.raw(strata, bins), side="right") - 1
    return np.unique(step)


def _positions(ladder: Ladder, strata: int) -> tuple[Floats, Floats, Floats]:
    """Of each quantile j/strata the places of sorted rows before and after it, from 0, and how far it is between."""
    place = (ladder.rows.sum() - 1.0) * np.arange(1, strata) / strata
    return np.floor(place), np.ceil(place), place - np.floor(place)


def check_strata(strata: int) -> None:
    """There is at least one stratum."""
    if strata < 1:
        raise InputError(f"strata must be at least 1, got {strata}.")


def by_mass(ladder: Ladder, strata: int) -> tuple[float, ...]:
    """Edges of equal Σ1/p. A stratum with too few rows goes on to the next edge, the last one back to the one before.

    That leaves more strata than an equal mass for fewer of them would: only where p is least are rows few.
    """
    last = len(ladder.low) - 1
    if last < strata:
        return tuple(ladder.edge(step) for step in range(last))
    inner = sorted({int(step) for step in ladder.places(strata) if step < last})
    return tuple(ladder.edge(step) for step in _filled(inner, np.cumsum(ladder.rows)))


def _filled(steps: list[int], rows: Floats) -> Iterator[int]:
    """The steps that end strata with enough rows; `rows` are cumulated."""
    before = 0.0
    for step in steps:
        if rows[step] - before >= LEAST_ROWS and rows[-1] - rows[step] >= LEAST_ROWS:
            before = rows[step]
            yield step


def _counted(propensity: Floats) -> tuple[Floats, Floats]:
    """The distinct values, sorted, and the rows of each."""
    ordered = np.sort(propensity)
    first = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
    return ordered[first], np.diff(first, append=len(ordered)).astype(np.float64)


def snap(raw: npt.ArrayLike, below: Any, above: Any) -> tuple[float, ...]:
    """Each raw edge moved to the midpoint between the distinct values around it; doubles and outer ones go."""
    edges: list[float] = []
    for q in np.asarray(raw, np.float64):
        low, high = float(below(q)), float(above(q))
        if high > low and (not edges or (low + high) / 2 > edges[-1]):
            edges.append((low + high) / 2)
    return tuple(edges)
