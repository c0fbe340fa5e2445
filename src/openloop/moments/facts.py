"""Facts of a log that take a pass over its blocks: ratings, values of p, strata, what models say of rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from openloop.blocks.block import Block
from openloop.blocks.joining import counts_of
from openloop.core.feedback import Array, Floats
from openloop.core.levels import LevelSample
from openloop.core.metric import reaches
from openloop.core.propensities import part_probability
from openloop.core.vocabulary import Int64s
from openloop.core.weights import repeated_quantile
from openloop.estimators.edges import Bins, Ladder, check_strata, cut_by, of_ladder
from openloop.estimators.stratified import catalogue_cells
from openloop.moments.relevance import Relevance, of_levels
from openloop.moments.requests import Answers
from openloop.moments.setting import P, Setting, Strata

Over = Callable[[Callable[[Block], Any]], Iterator[Any]]  # what a function makes of each block

STEPS_PER_OCTAVE = 1024  # of p: these ranges are few numbers, and each holds few of the values of p


# -- ratings -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LevelCounts:
    """The distinct ratings, rising, and the rows of each."""

    values: Floats  # (L,)
    rows: Int64s  # (L,)

    @classmethod
    def of(cls, over: Over) -> LevelCounts:
        """Those of all blocks."""
        return cls.of_parts(over(lambda block: counts_of(block.rating)))

    @classmethod
    def of_parts(cls, parts: Iterable[pl.DataFrame]) -> LevelCounts:
        """Those of all blocks, from what each counted."""
        parts = [part for part in parts if len(part)]
        values, place = np.unique(np.concatenate([part["value"].to_numpy() for part in parts]), return_inverse=True)
        rows = np.bincount(place, np.concatenate([part["rows"].to_numpy() for part in parts]))
        return cls(values=values.astype(np.float64), rows=rows.astype(np.int64))

    def few(self, most: int) -> bool:
        """Whether they can be listed."""
        return len(self.values) <= most

    @property
    def span(self) -> tuple[float, float]:
        """The lowest and the highest rating."""
        return float(self.values[0]), float(self.values[-1])

    @property
    def listed(self) -> tuple[tuple[float, int], ...]:
        """The rows of each rating."""
        return tuple(zip(self.values.tolist(), self.rows.tolist(), strict=True))

    def reaching(self, threshold: float) -> int:
        """How many rows reach a threshold."""
        return int(self.rows[reaches(self.values, threshold)].sum())

    def relevance(self, threshold: float, *, positives: bool) -> Relevance:
        """What a threshold makes of the rows."""
        return of_levels(self.values, self.rows, threshold, positives=positives)


def level_masses(over: Over, setting: Setting, values: Floats) -> Floats:
    """Σw of the rows of each rating."""

    def work(block: Block) -> Floats:
        rows = setting.rows(block, "prediction")
        level = np.searchsorted(values, rows.rating)
        place = block.bucket * len(values) + level
        flat: Any = np.bincount(place, np.asarray(rows.weight()), minlength=block.n_buckets * len(values))
        return flat.reshape(block.n_buckets, len(values))

    return np.concatenate(list(over(work))).sum(axis=0)


def level_weights(over: Over, setting: Setting, sample: LevelSample) -> tuple[Floats, Floats]:
    """Σ1/(p·s) and Σ1/π by level of a uniform sample."""

    def work(block: Block) -> Floats:
        level = block.bucket * len(sample) + sample.codes(block.rating)
        s, _ = setting.shares(block, "rank")
        weights = 1.0 / (block.columns[P] * s), 1.0 / np.asarray(setting.probability(block, "rank"))
        n = block.n_buckets * len(sample)
        sums: list[Any] = [np.bincount(level, w, minlength=n).reshape(block.n_buckets, len(sample)) for w in weights]
        return np.stack(sums, axis=1)  # (b, 2, L)

    before, after = np.concatenate(list(over(work))).sum(axis=0)
    return before, after


# -- items ---------------------------------------------------------------------------------------------------


def rare_weight(over: Over, setting: Setting, rare: Array) -> tuple[float, int]:
    """The share of Σw on rows of rare items, and the rows on others."""

    def work(block: Block) -> Floats:
        weight, is_rare = np.asarray(setting.rows(block, "prediction").weight()), rare[block.item]
        columns = (weight, np.where(is_rare, weight, 0.0), np.where(is_rare, 0.0, 1.0))
        return np.stack([block.by_bucket(column) for column in columns], axis=1)  # (b, 3)

    total, on_rare, others = np.concatenate(list(over(work))).sum(axis=0).tolist()
    return on_rare / total, int(others)


def typical_rows(rows_of_items: Int64s, scored: Int64s) -> float:
    """The rows of the median scored row's item in the whole log."""
    return repeated_quantile(rows_of_items.astype(np.float64), scored, 0.5)


# -- what models say -----------------------------------------------------------------------------------------


def answers_of(over: Over, model: str, filled: float) -> Answers | None:
    """The range of a model's predictions, and the share that are the rating itself; None of no predictions."""

    def work(block: Block) -> Floats | None:
        values = block.outcomes[model].prediction
        if values is None or not (known := ~np.isnan(values)).any():
            return None
        copied = np.isclose(values[known], block.rating[known], rtol=1e-6, atol=1e-9)
        return np.array([values[known].min(), values[known].max(), copied.sum(), known.sum()])

    parts = [part for part in over(work) if part is not None]
    if not parts:
        return None
    low, high, copied, rows = np.stack(parts, axis=1)
    return Answers(low=float(low.min()), high=float(high.max()), copied=float(copied.sum() / rows.sum()), filled=filled)


# -- strata of propensity ------------------------------------------------------------------------------------


class PropensitySteps:
    """The rows by narrow ranges of p, and by each value of p in the ranges where an edge of strata lies.

    p may have as many values as rows, so values are counted only where an edge must be: two passes find the edges that
    all values would give.
    """

    def __init__(self, over: Over, column: str) -> None:
        self._over, self._column = over, column
        parts = pl.concat(list(over(lambda block: _steps(block.columns[column]))))
        total = parts.group_by("step").agg(
            pl.sum("rows"), pl.sum("mass"), pl.min("low"), pl.max("high")
        ).sort("low")  # fmt: skip
        self._step = total["step"].to_numpy()
        self._ladder = Ladder(**{name: total[name].to_numpy() for name in ("low", "high", "rows", "mass")})

    def edges(self, every: Sequence[tuple[int, Bins]]) -> dict[tuple[int, Bins], tuple[float, ...]]:
        """As `estimators.edges`, of several strata by one pass."""
        for strata, _ in every:
            check_strata(strata)
        cut = np.unique(np.concatenate([cut_by(self._ladder, *strata) for strata in every]))
        ladder = self._ladder.refined(cut, self._values(cut)) if len(cut) else self._ladder
        return {strata: of_ladder(ladder, *strata) for strata in every}

    def _values(self, cut: Array) -> Ladder:
        """Each value in some of the ranges, and the rows of each."""
        steps, column = pl.Series(self._step[cut]), self._column

        def work(block: Block) -> pl.DataFrame:
            p = pl.DataFrame({"value": block.columns[column]})
            return counts_of(p.filter(_step(pl.col("value")).is_in(steps.implode()))["value"])

        table = pl.concat(list(self._over(work))).group_by("value").agg(pl.sum("rows")).sort("value")
        return Ladder.of(table["value"].to_numpy(), table["rows"].to_numpy())


def _step(p: pl.Expr) -> pl.Expr:
    return (p.log(2) * float(STEPS_PER_OCTAVE)).floor().cast(pl.Int64)


def _steps(p: Floats) -> pl.DataFrame:
    rows = pl.DataFrame({"p": p}).with_columns(step=_step(pl.col("p")), mass=1.0 / pl.col("p"))
    return rows.group_by("step", maintain_order=True).agg(
        rows=pl.len().cast(pl.Float64), mass=pl.sum("mass"), low=pl.min("p"), high=pl.max("p")
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StrataTable:
    """Of each stratum its rows, its items as a mask, and the least and the largest p."""

    rows: Int64s  # (S,)
    items: Array  # (S, I)
    limits: Floats  # (S, 2)

    @classmethod
    def of(cls, over: Over, setting: Setting, strata: Strata, n_items: int) -> StrataTable:
        """Those of all blocks."""
        S = setting.n_strata(strata)
        rows, items = np.zeros(S, np.int64), np.zeros((S, n_items), bool)
        limits = np.tile([np.inf, -np.inf], (S, 1))

        def work(block: Block) -> tuple[Int64s, Int64s, Floats]:
            if setting.n_strata(strata) == 1:
                stratum = np.zeros(len(block), np.int64)
            else:
                stratum = setting.strata_of(block, strata)
            own = np.tile([np.inf, -np.inf], (S, 1))
            if setting.weighted:
                np.minimum.at(own[:, 0], stratum, block.columns[P])
                np.maximum.at(own[:, 1], stratum, block.columns[P])
            return np.bincount(stratum, minlength=S), np.unique(stratum * n_items + block.item), own

        for counts, cells, own in over(work):
            rows += counts
            items.ravel()[cells] = True
            limits = np.stack([np.minimum(limits[:, 0], own[:, 0]), np.maximum(limits[:, 1], own[:, 1])], axis=1)
        return cls(rows=rows, items=items, limits=limits)


# -- the grid of p -------------------------------------------------------------------------------------------


def cells_of_strata(block: Block, grid: Floats, edges: tuple[float, ...], *, excludes: bool) -> Floats:
    """The candidates of each user of a block in each stratum of p, (u, S)."""
    return catalogue_cells(grid, edges, (block.excluded.user, block.excluded.item) if excludes else ((), ()))


def inverse_squares_of(block: Block, grid: Floats, shares: tuple[Any, Any], *, excludes: bool) -> Floats:
    """Σ 1/π² over the candidates of each user of a block, (u,); certain cells do not count."""
    total = np.empty(block.n_users)
    for user, row in enumerate(grid):
        chance = part_probability(row, *shares)
        if excludes:
            chance[block.excluded.item[block.excluded_ptr[user] : block.excluded_ptr[user + 1]]] = 1.0
        total[user] = np.square(1.0 / chance[chance < 1]).sum()
    return total
