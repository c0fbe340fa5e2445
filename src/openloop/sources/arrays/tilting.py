"""Sums under tilted weights, from rows held as arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from openloop.core.feedback import Array, Floats, distinct
from openloop.core.tilts import CLUSTERS, Against, TiltedSums, Tilts
from openloop.kernels.reweighting import Weighting, WeightParts, item_sums, part_sums, tilted_sums
from openloop.sources.arrays.rows import Rows
from openloop.sources.observation import View
from openloop.sources.tilts import GRIDS, TiltPlan, place, planned, popularity_factors, rating_factors

if TYPE_CHECKING:
    from openloop.sources.arrays.source import Scored

STEPS = 2520  # of the scale of ratings: all scales of up to ten steps have these and no others
NEAR = 1e-9  # of a step


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RowFactors:
    """The factors of a row's weight at each grid point: one for its level, and one for its item."""

    level: Array  # (n,) of every scored row
    by_level: Floats  # (L, G)
    by_item: Floats  # (I, G)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Tilter:
    """The tilts of all scored rows, from which a metric's sums are taken."""

    plan: TiltPlan
    item: npt.NDArray[np.int32]  # of every scored row
    factors: Mapping[Against, RowFactors]

    @classmethod
    def of(cls, scored: Scored, view: View) -> Tilter:
        """The tilts that a log has."""
        log, rows = scored.log, view.rows
        plan = planned(
            weighted=rows.probability is not None,
            span=(float(log.rating.min()), float(log.rating.max())),
            positives=log.positives or bool(rows.relevant.all()),
            by_items=scored.by_items,
            typical=float(np.median(log.rows_of_items[log.item])),
        )
        return cls.over(plan, rows, log.item, log.rows_of_items)

    @classmethod
    def over(cls, plan: TiltPlan, rows: Rows, item: npt.NDArray[np.int32], rows_of_items: Array) -> Tilter:
        """The tilts that are planned, of all scored rows and their items."""
        made = {"rho": partial(_by_rating, rows, item, len(rows_of_items), raked=plan.raked),
                "kappa": partial(_by_popularity, rows_of_items, len(rows))}  # fmt: skip
        return cls(plan=plan, item=item, factors={what: made[what]() for what in plan.against})

    def sums(
        self,
        rows: Rows,
        gains: Mapping[str, Floats],
        pairs: Sequence[tuple[str, str]],
        keep: npt.NDArray[np.bool_] | None,
    ) -> Tilts:
        """The sums of the rows that count for a metric; `keep` says which of the scored rows these are, None: all."""
        models, clusters = tuple(gains), min(CLUSTERS, len(rows.cells))
        weight = rows.weight()
        kept: Any = slice(None) if keep is None else keep
        base = rows.once("1", lambda: np.ones(len(rows))) if weight is None else weight
        found = [
            TiltedSums(
                against=what, grid=GRIDS[what], raked=self.plan.raked,
                sums=tilted_sums(
                    Weighting(base, f.level[kept], self.item[kept], f.by_level, f.by_item),
                    list(gains.values()), rows.user, clusters,
                ),
            )
            for what, f in self.factors.items()
        ]  # fmt: skip
        parts = None
        if weight is not None and pairs:
            fixed = np.broadcast_to(0.0, len(rows)) if rows.certain is None else rows.certain
            places = np.array([[models.index(m) for m in pair] for pair in pairs])
            parts = part_sums(WeightParts(weight, fixed), list(gains.values()), places, rows.user, clusters)
        return Tilts(models=models, pairs=tuple(pairs), parts=parts, sums=tuple(found), notes=self.plan.notes)


def _by_rating(rows: Rows, item: Array, items: int, *, raked: bool) -> RowFactors:
    """ρ^−r, and with raking h_i(ρ) = Σ_i w / Σ_i wρ^−r over all scored rows of an item."""
    level, r = _levels(rows.rating)
    by_level = rating_factors(r)  # (L, G)
    by_item, weight = np.ones((items, by_level.shape[1])), rows.weight()
    if raked and weight is not None:
        tilted = item_sums(weight, level, item, by_level, items)  # (I, G)
        np.divide(tilted[:, :1], tilted, out=by_item, where=tilted > 0)  # at ρ = 1 nothing is tilted
    return RowFactors(level=level, by_level=by_level, by_item=by_item)


def _levels(rating: Floats) -> tuple[Array, Floats]:
    """The level of each rating, and r of each level: steps of the scale, or else the ratings themselves."""
    low, high = float(rating.min()), float(rating.max())
    steps = (rating - low) * (STEPS / (high - low))
    level = np.rint(steps)
    if np.abs(steps - level).max() < NEAR:
        return level.astype(np.int16), place(np.arange(STEPS + 1.0), (0.0, float(STEPS)))
    values = distinct(rating)
    return np.searchsorted(values, rating).astype(np.int32), place(values, (low, high))


def _by_popularity(rows_of_items: Array, rows: int) -> RowFactors:
    by_item = popularity_factors(rows_of_items)
    return RowFactors(level=np.zeros(rows, np.int16), by_level=np.ones((1, by_item.shape[1])), by_item=by_item)
