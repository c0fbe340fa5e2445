"""Sums under tilted weights, by group-bys in the engine: items' sums are joined back, and users' sums leave it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np

from openloop.core.feedback import Array, Floats
from openloop.core.metric import Metric, reaches
from openloop.core.tilts import CLUSTERS, Against, TiltedSums, Tilts
from openloop.core.weights import repeated_quantile
from openloop.sources.frames.collecting import FrameTally
from openloop.sources.frames.item_cells import ITEM, item_table
from openloop.sources.frames.joining import Joined
from openloop.sources.frames.parting import Division
from openloop.sources.frames.rows import FrameColumns, FrameSetting, Key, Pass, Reduced, reduce_all
from openloop.sources.plan import LogFacts
from openloop.sources.question import Question
from openloop.sources.terms import parts
from openloop.sources.tilts import GRIDS, TiltPlan, place, planned
from openloop.sources.whole import WholeLog
from openloop.support.frames import collected


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemCounts:
    """How many rows each item has: of the whole log as a frame (i, n), and the median over the scored rows."""

    frame: Any
    typical: float

    @classmethod
    def of(cls, rows: Any, others: Any | None, known: WholeLog | None) -> ItemCounts:
        """The counts of the scored rows, and of the other rows of the same log; unless those of the log are `known`."""
        scored = _counted(rows, "scored")
        whole = scored.with_columns(nw.col("scored").alias("n"))
        if known is not None:
            whole = scored.join(item_table(rows, known, n=known.rows.astype(np.float64)), on=ITEM, how="inner")
        elif others is not None:
            joined = scored.join(_counted(others, "others"), on=ITEM, how="left")
            whole = joined.with_columns((nw.col("scored") + nw.col("others").fill_null(0.0)).alias("n")).drop("others")
        table = collected(whole.select("scored", "n")).sort("n")
        n, weight = (table[name].cast(nw.Float64()).to_numpy() for name in ("n", "scored"))
        return cls(frame=whole.select(ITEM, "n"), typical=repeated_quantile(n, weight, 0.5))


def _counted(rows: Any, name: str) -> Any:
    return rows.select(ITEM, nw.lit(1.0).alias(name)).group_by(ITEM).agg(nw.col(name).sum())


def _tilt(g: int) -> str:
    return f"tilt{g}"


def with_rating_tilts(
    frame: Any, rows: Any, weight: str, span: tuple[float, float], parts: Division, *, raked: bool
) -> Any:
    """The frame with a column wρ^−r for each ρ; raked, h_i(ρ) = Σ_i w / Σ_i wρ^−r over all scored `rows` beside it."""
    r = place(nw.col("y"), span)
    columns = [
        (nw.col(weight) * (r * -math.log(rho)).exp()).alias(_tilt(g)) for g, rho in enumerate(GRIDS["rho"])
    ]  # fmt: skip
    tilted, names = frame.with_columns(*columns), [_tilt(g) for g in range(len(columns))]
    if not raked:
        return tilted
    sums = FrameTally.divided(
        rows, parts, lambda own: own.with_columns(*columns).select(ITEM, *names), names, by=[ITEM]
    ).small
    held = sums.select(ITEM, *((nw.col(names[0]) / nw.col(name)).alias(f"h_{name}") for name in names))
    joined = tilted.join(held, on=ITEM, how="inner")
    return joined.with_columns(*((nw.col(name) * nw.col(f"h_{name}")).alias(name) for name in names))


def with_popularity_tilts(frame: Any, counts: ItemCounts) -> Any:
    """The frame with a column n_i^−κ for each κ."""
    joined = frame.join(counts.frame, on=ITEM, how="inner")
    logs = nw.col("n").log()
    return joined.with_columns(*((logs * -kappa).exp().alias(_tilt(g)) for g, kappa in enumerate(GRIDS["kappa"])))


def tilted_columns(against: Against, gains: Mapping[str, Any]) -> dict[Key, Any]:
    """Σw and Σwδ of each model at each point of the grid."""
    found: dict[Key, Any] = {}
    for g in range(len(GRIDS[against])):
        w = nw.col(_tilt(g))
        found["w", g] = w
        found |= {(model, g): w * gain for model, gain in gains.items()}
    return found


def part_columns(x: FrameColumns, gains: Mapping[str, Any], pairs: Sequence[tuple[str, str]]) -> dict[Key, Any]:
    """D, A and B of each pair."""
    return {
        (term, a, b): column for a, b in pairs for term, column in parts(x, gains[a] - gains[b])
    }  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameTilter:
    """The tilts of a joined frame's scored rows."""

    joined: Joined
    rows_for: Callable[[str], Any]  # the rows that count for a kind of metric
    setting: Callable[[Metric], FrameSetting]
    counts: ItemCounts | None  # None: nothing depends on them
    span: tuple[float, float]  # of the ratings
    plan: TiltPlan
    parts: Division  # ranges of users
    places: Callable[[Array], Array]  # of users, by their ids

    @classmethod
    def of(
        cls,
        joined: Joined,
        rows_for: Callable[[str], Any],
        setting: Callable[[Metric], FrameSetting],
        about: LogFacts,
        parts: Division,
        places: Callable[[Array], Array],
        asked: Question,
    ) -> FrameTilter:
        """The tilts that a log has; what models were trained on and is excluded is a part of the whole log."""
        weighted, by_items, whole = bool(joined.weights), asked.by_items, asked.whole
        positives = bool(reaches(about.span[0], about.threshold)) or (whole is not None and whole.positives)
        counts = None
        if by_items if weighted else positives:  # else nothing depends on how many rows an item has
            counts = ItemCounts.of(joined.frame, None if joined.excluded is None else joined.excluded.pairs, whole)
        plan = planned(
            weighted=weighted, span=about.span, positives=positives, by_items=by_items,
            typical=math.inf if counts is None else counts.typical,
        )  # fmt: skip
        return cls(
            joined=joined, rows_for=rows_for, setting=setting, counts=counts, span=about.span, plan=plan,
            parts=parts, places=places,
        )  # fmt: skip

    def tilts(self, metrics: Sequence[Metric], pairs: Sequence[tuple[str, str]]) -> list[Tilts]:
        """The sums of each metric's gains by cluster of users."""
        wanted = [self._wanted(metric, pairs) for metric in metrics]
        if not any(wanted):  # of all metrics, or of none
            return [Tilts(models=self.joined.models, notes=self.plan.notes) for _ in metrics]
        passes = [
            Pass(frame=self._frame(m), columns=own, parts=self.parts) for m, own in zip(metrics, wanted, strict=True)
        ]
        return [self._found(_clustered(reduced, self.places(reduced.ids)), pairs) for reduced in reduce_all(passes)]

    def _wanted(self, metric: Metric, pairs: Sequence[tuple[str, str]]) -> dict[Key, Any]:
        setting, models = self.setting(metric), self.joined.models
        columns = [FrameColumns(m, metric.on, setting, ranked=self.joined.ranked[m]) for m in range(len(models))]
        gains = {model: metric.gain(x) for model, x in zip(models, columns, strict=True)}
        wanted = part_columns(columns[0], gains, pairs) if self.joined.weights else {}
        for against in self.plan.against:
            wanted |= tilted_columns(against, gains)
        return wanted

    def _found(self, sums: Mapping[Key, Floats], pairs: Sequence[tuple[str, str]]) -> Tilts:
        parted = _parts(sums, pairs) if self.joined.weights and pairs else None
        return Tilts(
            models=self.joined.models, pairs=tuple(pairs), parts=parted,
            sums=tuple(self._tilted(sums, against) for against in self.plan.against), notes=self.plan.notes,
        )  # fmt: skip

    def _frame(self, metric: Metric) -> Any:
        """The rows that count for the metric, with a column of weights for each grid point of the tilt that it has."""
        frame = self.rows_for(metric.kind)
        if "rho" in self.plan.against:
            weight = self.joined.weights[metric.on].weight
            rows = self.rows_for("cell")
            return with_rating_tilts(frame, rows, weight, self.span, self.parts, raked=self.plan.raked)
        return frame if self.counts is None or not self.plan.against else with_popularity_tilts(frame, self.counts)

    def _tilted(self, sums: Mapping[Key, Floats], against: Against) -> TiltedSums:
        grid = GRIDS[against]
        stacked = np.array([[sums[of, g] for g in range(len(grid))] for of in ("w", *self.joined.models)])
        return TiltedSums(against=against, grid=grid, raked=self.plan.raked, sums=stacked.transpose(2, 0, 1))


def _parts(sums: Mapping[Key, Floats], pairs: Sequence[tuple[str, str]]) -> Floats:
    """(clusters, P, 3); without odds nothing is fixed."""
    none = np.zeros(len(next(iter(sums.values()))))
    own = [[sums.get((term, *pair), none) for term in ("fixed", "positive", "negative")] for pair in pairs]
    return np.array(own).transpose(2, 0, 1)


def _clustered(reduced: Reduced, places: Array) -> dict[Key, Floats]:
    """The sums of users, dealt to clusters by their places."""
    unit = places % CLUSTERS
    found: dict[Key, Any] = {key: np.bincount(unit, values[:, 0]) for key, values in reduced.sums.items()}
    return found
