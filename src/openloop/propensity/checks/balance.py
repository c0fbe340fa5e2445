"""Sums that correct propensities reproduce: counts of users and items, and means of covariates over the grid."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from openloop.core.covariates import Covariates
from openloop.core.feedback import Array, Feedback, Floats, Vocabulary
from openloop.errors import UndefinedError
from openloop.propensity.base import BLOCK, MAX_GRID, CellModel, counts, row_counts, tally
from openloop.propensity.checks.held_out import at_cells, check_cells

POINTS = 400  # of a margin that are kept to draw it


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One user or item: Σp of its cells, and how many rows the log has of it."""

    id: Any
    expected: float
    count: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Margin:
    """Σp against counts, over the users or over the items.

    `off` is Σ|Σp − n|/Σn, `chance` what it would be about if all p were right. `furthest` is the id with the
    largest |Σp − n|, `furthest_relative` that with the largest |Σp − n|/n among those with rows, `empty` how many
    have none. `correlation` is None where counts or Σp are all the same. `points` are a part of the ids.
    """

    side: str
    expected: float
    count: float
    correlation: float | None
    off: float
    chance: float
    furthest: Point
    furthest_relative: Point
    empty: int
    points: tuple[Point, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """The mean of a covariate over the grid, over the rows, and over the weighted rows.

    `before` and `after` are the standardised differences, (mean of rows − mean of grid)/sd of grid, without and
    with weights; None for a covariate that is the same for everyone. A count is raised by the very row that is
    looked at, which makes a difference even under right p: `own` is about how much.
    """

    side: str
    name: str
    grid: float
    sd: float
    observed: float
    weighted: float
    before: float | None
    after: float | None
    own: float = 0.0


def margins(model: Any, feedback: Feedback, floor: float = 0.0) -> tuple[Margin, Margin]:
    """Σp against counts by user and by item; the counts of a part are of the log it was split from."""
    found = counts(model, feedback)
    each = float(row_counts(model, feedback).mean())
    users, items = _sums(model, feedback, floor)
    return (
        margin("user", feedback.users, users, found[0], each),
        margin("item", feedback.items, items, found[1], each),
    )


def _sums(model: Any, feedback: Feedback, floor: float) -> tuple[Floats, Floats]:
    U, I = feedback.n_users, feedback.n_items
    own = getattr(type(model), "margins", CellModel.margins)
    if own is not CellModel.margins and floor == 0:
        return model.margins()
    check_cells(model)
    if U * I > MAX_GRID:
        raise UndefinedError(
            f"{type(model).__name__}: the sums of p need all {U:,} × {I:,} cells, more than {MAX_GRID:,}; "
            "call model.margins(), which visits all of them, if the model has it."
        )
    by_user, by_item, size = np.empty(U), np.zeros(I), max(1, BLOCK // I)
    for start in range(0, U, size):
        stop = min(start + size, U)
        p = at_cells(model, feedback.users, feedback.items, np.arange(start * I, stop * I)).reshape(-1, I)  # (B, I)
        by_user[start:stop] = p.sum(axis=1)
        by_item += p.sum(axis=0)
    return by_user, by_item


def margin(side: str, ids: Vocabulary, expected: Floats, count: Floats, each: float) -> Margin:
    """Σp against counts of one side; a count represents `each` rows of the log."""
    gap, total = np.abs(expected - count), float(count.sum())
    relative = np.where(count > 0, gap / np.maximum(count, 1e-300), -1.0)
    some = np.linspace(0, len(ids) - 1, min(len(ids), POINTS)).round().astype(np.int64)

    def point(at: Any) -> Point:
        return Point(id=plain(ids.ids[at]), expected=float(expected[at]), count=float(count[at]))

    # A count is about Poisson, a row of a part counts as 1/s rows: E|Σp − n| = √(2/π · Σp/s)
    noise = float(np.sqrt(2 / np.pi * np.maximum(expected, 0.0) * each).sum())
    return Margin(
        side=side, expected=float(expected.sum()), count=total, correlation=_correlation(expected, count),
        off=float(gap.sum()) / total, chance=noise / total, furthest=point(int(gap.argmax())),
        furthest_relative=point(int(relative.argmax())), empty=int(np.sum(count == 0)),
        points=tuple(point(at) for at in np.argsort(expected, kind="stable")[some]),
    )  # fmt: skip


def _correlation(x: Floats, y: Floats) -> float | None:
    if min(np.ptp(x) / max(x.max(), 1e-300), np.ptp(y) / y.max()) < 1e-9:
        return None
    return float(np.corrcoef(x, y)[0, 1])


def plain(value: Any) -> Any:
    """An id as a Python number or text."""
    return value.item() if isinstance(value, np.generic) else value


def balance(
    feedback: Feedback, weights: Floats, user: Covariates | None, item: Covariates | None
) -> tuple[Difference, ...]:
    """Each covariate, and log(1 + rows) of each user and of each item, between rows and grid."""
    sides = (("user", feedback.user, feedback.users, user), ("item", feedback.item, feedback.items, item))
    return named(
        [
            d
            for side, code, ids, given in sides
            for d in differences(side, np.bincount(code, minlength=len(ids)), tally(code, weights, len(ids)), given)
        ]
    )


def named(found: list[Difference]) -> tuple[Difference, ...]:
    """The differences of users and items, told apart where their names are one."""
    names = [d.name for d in found]
    # One name for a covariate of users and one of items: the side tells them apart.
    return tuple(replace(d, name=f"{d.name} of {d.side}") if names.count(d.name) > 1 else d for d in found)


def differences(side: str, rows: Array, weight: Floats, given: Covariates | None = None) -> list[Difference]:
    """The differences of one side, whose ids have so many rows and so much weight, (N,) each."""
    log = np.log1p(rows)
    X = log[:, None] if given is None else np.column_stack([log, given.values])  # (N, C)
    names = [f"log count of {side}", *(() if given is None else given.names)]
    grid, sd, constant = X.mean(axis=0), X.std(axis=0), np.ptp(X, axis=0) == 0
    observed, weighted = rows @ X / rows.sum(), weight @ X / weight.sum()
    # (mean over rows − mean over the grid) / sd over the grid
    scale = np.where(constant, 1.0, sd)
    before, after = (observed - grid) / scale, (weighted - grid) / scale
    # Under right p a cell's own row is independent of the others': Σ w·log n − Σ w·log(n − 1)
    own = np.r_[float(weight @ (log - np.log(np.maximum(rows, 1)))) / weight.sum() / scale[0], np.zeros(len(names) - 1)]
    return [
        Difference(
            side=side, name=names[c], grid=float(grid[c]), sd=float(sd[c]), observed=float(observed[c]),
            weighted=float(weighted[c]), before=None if constant[c] else float(before[c]),
            after=None if constant[c] else float(after[c]), own=float(own[c]),
        )
        for c in range(len(names))
    ]  # fmt: skip
