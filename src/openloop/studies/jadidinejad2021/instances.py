"""Instances of Simpson's paradox: the detector on every pair of models, and who is right in each."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import combinations

import numpy as np

from openloop.audits.paradox import Pair, Paradox, Part, find
from openloop.studies.jadidinejad2021.method_rows import (
    HOLDOUT,
    LEVEL,
    OPEN_LOOP,
    STRATA,
    STRATIFIED,
    MethodRow,
    MethodRows,
)
from openloop.studies.jadidinejad2021.scores import Mask
from openloop.support.wording import counted


@dataclass(frozen=True, slots=True, kw_only=True)
class Sides:
    """Of some instances, how often a method has the majority stratum's model ahead and how often the aggregate's.

    `clear_…` counts those whose difference is significant (p < 0.05, unadjusted) by that method.
    """

    majority: int
    aggregate: int
    clear_majority: int
    clear_aggregate: int

    @property
    def total(self) -> int:
        """Instances that the method does not leave tied."""
        return self.majority + self.aggregate


def added(parts: Sequence[Sides]) -> Sides:
    """The sides of several splits together."""
    return Sides(**{each.name: sum(getattr(part, each.name) for part in parts) for each in fields(Sides)})


def search(models: Sequence[str], rows: MethodRows, *, holm: bool) -> tuple[Paradox, ...]:
    """Every reversal and masking among all pairs; by the paper's tests p < 0.05 as they are, or after Holm."""
    strata = [rows[name] for name in STRATA if name in rows]
    pairs = [
        Pair(
            a=models[a], b=models[b], aggregate=_part(rows[HOLDOUT], a, b, holm=holm),
            strata=tuple(_part(row, a, b, holm=holm) for row in strata), metric="ndcg", by="propensity",
        )
        for a, b in combinations(range(len(models)), 2)
    ]  # fmt: skip
    return find(pairs, LEVEL)


def _part(row: MethodRow, a: int, b: int, *, holm: bool) -> Part:
    p = float(row.pvalue[a, b])
    tested = {"pvalue": p} if holm else {"significant": p < 1 - LEVEL}
    return Part(name=row.name, a=row.value[a], b=row.value[b], rows=row.rows, **tested)  # type: ignore[arg-type]


def sides(found: Sequence[Paradox], models: Sequence[str], row: MethodRow) -> Sides:
    """Whom a method sides with in the instances."""
    at = {name: position for position, name in enumerate(models)}
    preferred = np.array([at[paradox.preferred] for paradox in found], int)
    other = np.array([at[paradox.other] for paradox in found], int)
    gap, clear = row.value[preferred] - row.value[other], row.pvalue[preferred, other] < 1 - LEVEL
    return _counted(gap > 0, gap < 0, clear)


def mirrored(rows: MethodRows, row: MethodRow) -> Sides:
    """Whom a method sides with in the mirror images of maskings: all ratings significant, Q1 opposite and not.

    Instances are chosen for a significant Q1, which alone would make the open loop agree with it; these are chosen for
    a significant aggregate.
    """
    all_of, tail = rows[HOLDOUT], rows[STRATA[0]]
    gaps = [x.value[:, None] - x.value for x in (all_of, tail, row)]  # (M, M) each
    chosen = (all_of.pvalue < 1 - LEVEL) & (tail.pvalue >= 1 - LEVEL) & (gaps[0] * gaps[1] < 0)
    with_tail, against = (np.triu(chosen & (sign * gaps[1] * gaps[2] > 0)) for sign in (1, -1))
    return _counted(with_tail, against, row.pvalue < 1 - LEVEL)


def _counted(majority: Mask, aggregate: Mask, clear: Mask) -> Sides:
    return Sides(
        majority=int(majority.sum()), aggregate=int(aggregate.sum()), clear_majority=int((majority & clear).sum()),
        clear_aggregate=int((aggregate & clear).sum()),
    )  # fmt: skip


# -- over all splits -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingInstances:
    """The instances in one setting, over all splits, and whom the open loop and the stratified method side with."""

    among: str
    holm: bool
    pairs: int
    instances: tuple[tuple[Paradox, ...], ...]  # by split
    sides: Mapping[str, Sides]

    def count(self, kind: str) -> int:
        """How many reversals or maskings."""
        return sum(paradox.kind == kind for found in self.instances for paradox in found)

    @property
    def words(self) -> str:
        """How many of each."""
        return f"{counted(self.count('reversal'), 'reversal')} and {counted(self.count('masking'), 'masking')}"


def instances_in(models: Sequence[str], rows: Sequence[MethodRows], among: str, *, holm: bool) -> SettingInstances:
    """The instances among the models in each split, and whom the methods side with."""
    instances = tuple(search(models, split, holm=holm) for split in rows)
    whom = {
        name: added([sides(found, models, at[name]) for found, at in zip(instances, rows, strict=True)])
        for name in (OPEN_LOOP, STRATIFIED)
        if name in rows[0]
    }
    pairs = math.comb(len(models), 2) * len(rows)
    return SettingInstances(among=among, holm=holm, pairs=pairs, instances=instances, sides=whom)
