"""Overlap of the p of rows and of the grid: how well rows represent the grid, and which rows weigh most."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from openloop.core.feedback import Array, Feedback, Floats, distinct
from openloop.core.propensities import Propensities
from openloop.core.weights import Diagnostics, WeightSummary, diagnose, mass_flag
from openloop.propensity.checks.balance import plain
from openloop.propensity.checks.held_out import CELLS, at_cells, check_cells, some_of

BINS = 30
HEAVIEST = 5
QUANTILES = (0.5, 0.9, 0.99, 1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Heavy:
    """A row with one of the largest weights, and its share of the sum of all."""

    user: Any
    item: Any
    p: float
    weight: float
    share: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Overlap:
    """A log-spaced histogram of p over the rows and over `cells` cells of the grid, as shares.

    `coefficient` is Σ_b min(rows_b, grid_b), 1 where both are alike. `below` is the share of the grid whose p is
    smaller than that of every row: cells for which none like them was observed. All three are None where p of an
    unobserved cell is not defined.
    """

    edges: tuple[float, ...]
    observed: tuple[float, ...]
    smallest: float
    grid: tuple[float, ...] | None = None
    coefficient: float | None = None
    below: float | None = None
    cells: int = 0


def row_weights(feedback: Feedback, p: Floats) -> Floats:
    """1/(p·s); where the share s of a part is unknown, 1/p, right up to a factor."""
    return 1.0 / p if feedback.share is None else 1.0 / (p * feedback.share)


def weigh(feedback: Feedback, p: Propensities) -> tuple[Diagnostics, tuple[Heavy, ...]]:
    """The diagnostics of the weights, and the heaviest rows."""
    w = row_weights(feedback, p.used)
    found = described(
        WeightSummary.of(w), {q: float(np.quantile(w, q)) for q in QUANTILES}, len(distinct(feedback.user)),
        feedback.n_users * feedback.n_items, p.clipped if p.floor else None, scaled=feedback.share is not None,
    )  # fmt: skip
    heaviest = min(HEAVIEST, len(w))
    most, total = np.flatnonzero(w >= np.partition(w, -heaviest)[-heaviest]), float(w.sum())
    rows = [
        Heavy(
            user=plain(feedback.users.ids[feedback.user[n]]), item=plain(feedback.items.ids[feedback.item[n]]),
            p=float(p.used[n]), weight=float(w[n]), share=float(w[n]) / total,
        )
        for n in most[np.lexsort((most, -w[most]))][:HEAVIEST]  # of equal ones the first
    ]  # fmt: skip
    return found, tuple(rows)


def described(
    summary: WeightSummary, quantiles: dict[float, float], users: int, cells: int, raised: float | None, *, scaled: bool
) -> Diagnostics:  # fmt: skip
    """The diagnostics of weights whose quantiles are at hand, while the histogram of a summary has them nearly."""
    found = replace(diagnose(summary, users, cells, raised), quantiles=quantiles)
    if not scaled or found.mass is None:
        return replace(found, mass=None)
    return found.flagged(*mass_flag(found.mass))


def observed_only(p: Floats) -> Overlap:
    """The histogram of the rows alone."""
    edges = _edges(float(p.min()), float(p.max()))
    return Overlap(edges=_numbers(edges), observed=_numbers(_shares(p, edges)), smallest=float(p.min()))


def overlap(model: Any, feedback: Feedback, p: Floats, rng: Any = 0) -> Overlap:
    """The p of the rows beside those of the grid, or of a uniform sample of a large grid."""
    check_cells(model)
    draw = np.random.default_rng(rng)
    cell = some_of(feedback.n_users * feedback.n_items, CELLS, draw)
    return spread(p, None, at_cells(model, feedback.users, feedback.items, cell), len(cell))


def spread(p: Floats, rows: Array | None, grid: Floats, cells: int) -> Overlap:
    """The p of rows, of `rows` each, beside those of the grid, of which each represents as many of the `cells`."""
    edges = _edges(float(min(p.min(), grid.min())), float(max(p.max(), grid.max())))
    own, all_cells = _shares(p, edges, rows), _shares(grid, edges)
    return Overlap(
        edges=_numbers(edges), observed=_numbers(own), grid=_numbers(all_cells), smallest=float(p.min()),
        coefficient=float(np.minimum(own, all_cells).sum()),
        # p of a row may be computed in another block than that of its cell
        below=float(np.mean(grid < p.min() * (1 - 1e-9))), cells=cells,
    )  # fmt: skip


def _edges(low: float, high: float) -> Floats:
    if high / low < 1.01:  # one p, or nearly: a bin around it
        low, high = low / 1.1, high * 1.1
    edges = np.geomspace(low, high, BINS + 1)
    edges[[0, -1]] = low * (1 - 1e-9), high * (1 + 1e-9)
    return edges


def _shares(p: Floats, edges: Floats, times: Array | None = None) -> Floats:
    return np.histogram(p, edges, weights=times)[0] / (len(p) if times is None else times.sum())


def _numbers(values: Floats) -> tuple[float, ...]:
    return tuple(values.tolist())
