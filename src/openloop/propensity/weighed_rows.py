"""`WeighedRows`: the rows whose weights are balanced, and whether they are enough for the means asked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from openloop.core.feedback import Feedback, Floats
from openloop.core.weights import effective_size
from openloop.propensity.frames.level_cells import LevelCells
from openloop.propensity.frames.log_frame import LogFrame
from openloop.propensity.frames.lookups import RATING
from openloop.propensity.solvers.calibration import Raked
from openloop.propensity.targets import Target

ROWS_EACH = 25  # effective rows for each mean that is balanced: with fewer, weights follow the chance of the rows
KEPT = 0.5  # of the effective rows: if balancing leaves fewer, the rows are not like the population


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class WeighedRows:
    """What is balanced: the rows of a log, or cells of an item and a level that hold several rows, and their Σw."""

    rows: Any  # Feedback | LevelCells
    w: Floats  # (n,)
    size: int  # rows of the log
    typical: float  # rows, in the whole log, of the item of the median row
    alone: bool  # weights differ by the rating alone, or not at all

    @classmethod
    def of(cls, log: Feedback | LogFrame, inner: Any, levels: Any) -> WeighedRows:
        """The rows with the weights of a model that was fitted to them."""
        if isinstance(log, LogFrame):
            parts = inner.frame_parts()
            cells = LevelCells.of(log, parts, levels)
            alone = cells.ends[0] == cells.ends[1] or all(lookup.key == RATING for lookup in parts[0])
            return cls(rows=cells, w=cells.w, size=log.rows, typical=log.seen[1].typical, alone=alone)
        before = inner.predict(log)
        w = 1.0 / before.used  # (n,)
        typical = float(np.median(log.rows_of_items[log.item]))
        return cls(rows=log, w=w, size=len(log), typical=typical, alone=before.by_rating or bool(np.ptp(w) == 0))


def item_factors(feedback: Any, w: Floats, tilted: Floats, *, by_item: bool) -> Floats:
    """h_i = Σ_i w/Σ_i w·exp(μᵀh), or one factor for all; items without rows have the latter."""
    factors = np.full(feedback.n_items, w.sum() / tilted.sum())
    if by_item:
        before, after = (np.bincount(feedback.item, x, minlength=feedback.n_items) for x in (w, tilted))
        np.divide(before, after, out=factors, where=after > 0)
    return factors


def thin(targets: Sequence[Target], w: Floats, found: Raked) -> str:
    """Why the weighted rows cannot carry the targets: these are too many, or too far from the rows. Else empty."""
    K, before, after = sum(len(target.names) for target in targets), effective_size(w), effective_size(w * found.factor)
    if before < K * ROWS_EACH:
        return (
            f"{K} means are balanced, but {before:,.0f} effective rows are enough for {before / ROWS_EACH:.0f} only "
            f"({ROWS_EACH} rows per mean); balance fewer models"
        )
    if len(targets) == 1 and after < KEPT * before:
        return (
            f"balancing leaves {after:,.0f} of {before:,.0f} effective rows: predictions of these rows differ from "
            "those of all cells; if models were trained on other rows of the log, pass those as exclude="
        )
    return ""
