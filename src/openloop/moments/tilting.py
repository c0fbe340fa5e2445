"""Sums under tilted weights, of the rows of a block, by cluster of users."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from openloop.blocks.block import Block
from openloop.blocks.store import BUCKETS
from openloop.core.feedback import Array, Floats
from openloop.core.tilts import Against, TiltedSums, Tilts
from openloop.core.vocabulary import Int64s, Ints
from openloop.kernels.reweighting import Owners, Weighting, WeightParts, item_sums, part_sums, tilted_sums
from openloop.moments.rows import Rows
from openloop.moments.tilt_plan import GRIDS, TiltPlan, place, popularity_factors, rating_factors

Clusters = tuple[Int64s, int]  # the cluster of each user, and how many there are

PER_BUCKET = 40  # clusters of a bucket: 10,240 in all, enough for a jackknife over any number of users
STEPS = 2520  # of the scale of ratings: all scales of up to ten steps have these and no others
NEAR = 1e-9  # of a step


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RatingScale:
    """What r, the place of a rating on a scale of 0 to 4, is made of: steps of the scale, or the ratings themselves."""

    span: tuple[float, float]
    values: Floats | None = None  # the distinct ratings, where they are no steps

    @classmethod
    def of(cls, values: Floats) -> RatingScale:
        """The scale of these distinct ratings."""
        span = float(values[0]), float(values[-1])
        steps = (values - span[0]) * (STEPS / (span[1] - span[0]))
        return cls(span=span, values=None if np.abs(steps - np.rint(steps)).max() < NEAR else values)

    @property
    def factors(self) -> Floats:
        """ρ^−r of each level, (L, G)."""
        if self.values is None:
            return rating_factors(place(np.arange(STEPS + 1.0), (0.0, float(STEPS))))
        return rating_factors(place(self.values, self.span))

    def level(self, rating: Floats) -> Array:
        """The level of each rating."""
        if self.values is None:
            return np.rint((rating - self.span[0]) * (STEPS / (self.span[1] - self.span[0]))).astype(np.int16)
        return np.searchsorted(self.values, rating).astype(np.int32)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Tilter:
    """The tilts that a log has, from which the sums of a metric are taken."""

    plan: TiltPlan
    scale: RatingScale | None  # None: no tilt by rating
    by_item: Floats  # (I, G) of the tilt by popularity, or h_i(ρ) where each item's Σw stays; else 1

    def sums(
        self, rows: Rows, item: Ints, clusters: Clusters, gains: Mapping[str, Floats], pairs: Sequence[tuple[str, str]]
    ) -> dict[str, Floats]:
        """The sums of the rows that count for a metric, by tilt, and those of pairs as "parts"; `item` is the rows'."""
        cluster, n_clusters = clusters
        weight = rows.weight()
        base = np.ones(len(rows)) if weight is None else weight
        owners, made = Owners(rows.user, cluster), dict[str, Floats]()
        for what in self.plan.against:
            level, by_level = self._levels(what, rows)
            tilted = Weighting(base, level, item, by_level, self.by_item)
            made[what] = tilted_sums(tilted, list(gains.values()), owners, n_clusters)
        if weight is not None and pairs:
            certain = np.broadcast_to(0.0, len(rows)) if rows.certain is None else rows.certain
            models = list(gains)
            both = np.array([[models.index(m) for m in pair] for pair in pairs])
            parts = WeightParts(weight, certain)
            made["parts"] = part_sums(parts, list(gains.values()), both, owners, n_clusters)
        return made

    def _levels(self, what: Against, rows: Rows) -> tuple[Array, Floats]:
        if what == "rho" and self.scale is not None:
            return self.scale.level(rows.rating), self.scale.factors
        return np.zeros(len(rows), np.int16), np.ones((1, self.by_item.shape[1]))

    def tilts(self, sums: Mapping[str, Floats], models: Sequence[str], pairs: Sequence[tuple[str, str]]) -> Tilts:
        """The tilts of a metric from the sums of all clusters."""
        return Tilts(
            models=tuple(models), pairs=tuple(pairs), parts=sums.get("parts"), notes=self.plan.notes,
            sums=tuple(
                TiltedSums(against=what, grid=GRIDS[what], raked=self.plan.raked, sums=sums[what])
                for what in self.plan.against
            ),
        )  # fmt: skip


def clusters_of(block: Block, n_users: int) -> Clusters:
    """The clusters of a block's users: each its own, or so many of each bucket where users are more."""
    if n_users <= PER_BUCKET * BUCKETS:
        return np.arange(block.n_users), block.n_users
    return dealt_to_clusters(block, PER_BUCKET)


def dealt_to_clusters(block: Block, per_bucket: int) -> Clusters:
    """So many clusters of each bucket, which its users are dealt to in turn."""
    bucket = np.repeat(np.arange(block.n_buckets), np.diff(block.user_start))
    within = (np.arange(block.n_users) - block.user_start[:-1][bucket]) % per_bucket
    return bucket * per_bucket + within, block.n_buckets * per_bucket


def tilter_of_rows(plan: TiltPlan, rows: Rows, item: Ints, rows_of_items: Array) -> Tilter:
    """The tilts of rows that are all at hand."""
    scale = RatingScale.of(np.unique(rows.rating)) if "rho" in plan.against else None
    if not plan.raked or scale is None:
        return Tilter(plan=plan, scale=scale, by_item=item_factors(plan, rows_of_items))
    by_item = raking_factors([tilted_item_sums(rows, item, scale)], len(rows_of_items))
    return Tilter(plan=plan, scale=scale, by_item=by_item)


def item_factors(plan: TiltPlan, rows_of_items: Array) -> Floats:
    """The factor of each item where its Σw need not stay."""
    if "kappa" in plan.against:
        return popularity_factors(rows_of_items)
    return np.ones((len(rows_of_items), len(GRIDS["rho"])))


def tilted_item_sums(rows: Rows, item: Ints, scale: RatingScale) -> list[tuple[Ints, Floats]]:
    """The items of each bucket, and their Σw·ρ^−r over all scored rows."""
    weight, level = np.asarray(rows.weight()), scale.level(rows.rating)
    found: list[tuple[Ints, Floats]] = []
    for start, end in zip(rows.row_start[:-1], rows.row_start[1:], strict=True):
        part = slice(start, end)
        items, code = np.unique(item[part], return_inverse=True)
        found.append((items, item_sums(weight[part], level[part], code, scale.factors, len(items))))
    return found


def raking_factors(blocks: Iterable[Sequence[tuple[Ints, Floats]]], n_items: int) -> Floats:
    """h_i(ρ) = Σ_i w / Σ_i wρ^−r, by which each item's Σw stays what it is; bucket after bucket."""
    total = np.zeros((n_items, len(GRIDS["rho"])))
    for items, sums in (bucket for buckets in blocks for bucket in buckets):
        total[items] += sums
    factors = np.ones(total.shape)
    np.divide(total[:, :1], total, out=factors, where=total > 0)  # at ρ = 1 nothing is tilted
    return factors
