"""What is summed: the terms of every estimator, written once for arrays and for dataframe expressions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import groupby
from operator import itemgetter
from typing import Any, Protocol

import numpy as np

from openloop.core.feedback import Array, Floats
from openloop.core.levels import LevelSample
from openloop.core.metric import Column, Columns, Metric
from openloop.core.moments import SUMS, Moments
from openloop.core.weights import WeightSummary

Powers = tuple[tuple[int, int], ...]
POWERS: Powers = tuple((a, b) for a in range(3) for b in range(3))


class WeightedColumns(Columns, Protocol):
    """Columns of one model's rows, with what the propensities make of them."""

    one: Column  # 1
    weight: Column | None  # w = 1/p; None without propensities
    doubt: Column | None  # 1 − p
    fixed: Column | None  # a of w = a + b, which wrong propensities leave alone; None: nothing of w
    moving: Column | None  # b, which they change by a factor

    def cut(self, cap: float) -> Column:
        """min(w, cap)."""
        ...

    def ideal(self, k: int | None) -> Column:
        """The discount of the row's place in its user's ideal order, by weight, 0 beyond k."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Needed:
    """Which sums the requested estimators need."""

    powers: Powers = ()  # (a, b) of Σ(1−p)w^a δ^b, for variances over cells
    cap: float | None = None
    caps: tuple[float, ...] = ()  # candidates to tune over
    ideal: bool = False  # the ideal order of the weights (nDCG)
    pair: bool = False  # of a difference d: nothing per user, which is a difference itself
    parts: bool = False  # Σad, Σbd₊ and Σbd₋ of that difference


Terms = Iterator[tuple[str, Column]]


def shared_key(term: str, metric: Metric, wanted: Needed) -> tuple[Any, ...] | None:
    """What a sum is a sum of, where it does not depend on the model and so is taken once for all; else None."""
    if term in ("n", "weight", "power00", "power10", "power20"):
        return (term,)
    if term in ("cut", "clipped", "cutpower20"):
        return (term, wanted.cap)
    if term in ("ideal", "cutideal"):
        return (term, wanted.cap if term == "cutideal" else None, metric.k)
    return None


def terms(x: WeightedColumns, delta: Column, metric: Metric, wanted: Needed) -> Terms:
    """Name and column of every sum over rows that `wanted` asks for."""
    if not wanted.pair:
        yield from _per_user(x, delta, metric, wanted)
    if x.weight is None:
        return
    yield from _powers("power", wanted.powers, x.doubt, x.weight, delta)
    if wanted.powers and wanted.cap is not None:
        cut = tuple((a, b) for a, b in POWERS if a == 2)  # every term of its estimators has a cut weight
        yield from _powers("cutpower", cut, x.doubt, x.cut(wanted.cap), delta)
    if wanted.powers and not wanted.pair:
        yield "wsquare", x.weight * delta * delta
    for j, cap in enumerate(wanted.caps):
        yield from _tuning(f"cap{j}_", x.doubt, x.weight, x.cut(cap), delta)
    if wanted.parts:
        yield from parts(x, delta)


def parts(x: WeightedColumns, delta: Column) -> Terms:
    """D = Σad, A = Σbd₊ and B = Σbd₋ of a difference d: where it turns as propensities go wrong."""
    if x.fixed is not None:
        yield "fixed", x.fixed * delta
    yield "positive", x.moving * x.where(delta > 0, delta, 0.0)
    yield "negative", x.moving * x.where(delta < 0, -delta, 0.0)


def _per_user(x: WeightedColumns, delta: Column, metric: Metric, wanted: Needed) -> Terms:
    yield "n", x.one
    yield "gain", delta
    if x.weight is None:
        return
    yield "weight", x.weight
    yield "wgain", x.weight * delta
    if wanted.ideal:
        yield "ideal", x.weight * x.ideal(metric.k)
    if wanted.cap is not None:
        cut = x.cut(wanted.cap)
        yield "cut", cut
        yield "cutgain", cut * delta
        yield "clipped", x.where(x.weight > wanted.cap, 1.0, 0.0)
        if wanted.ideal:
            yield "cutideal", cut * x.ideal(metric.k)


def _powers(prefix: str, powers: Powers, doubt: Column, weight: Column, delta: Column) -> Terms:
    # Σ_O (1−p) w^a δ^b; powers are sorted, so each product follows from the one before
    for a, group in groupby(powers, itemgetter(0)):
        term, reached = doubt, 0
        for _ in range(a):
            term = term * weight
        for _, b in group:
            for _ in range(b - reached):
                term = term * delta
            reached = b
            yield f"{prefix}{a}{b}", term


def _tuning(prefix: str, doubt: Column, weight: Column, cut: Column, delta: Column) -> Terms:
    yield f"{prefix}0", cut
    yield f"{prefix}1", cut * delta
    # Σ_O (1−p) w min(w, c) δ^b
    product = doubt * weight * cut
    for b, term in enumerate((product, product * delta, product * delta * delta)):
        yield f"{prefix}{b + 2}", term


@dataclass(frozen=True, slots=True, kw_only=True)
class Common:
    """What the moments of all models over the same rows share."""

    cells: Floats  # (U,)
    base: Mapping[str, Floats]  # rows and mass, (U, S)
    weights: WeightSummary | None
    edges: tuple[float, ...] = ()
    limits: Floats | None = None  # (S, 2)
    sample: LevelSample | None = None  # the strata are its levels
    catalogue: Floats | None = None
    inverse_squares: float | None = None
    ids: Array | None = None
    scaled: bool = True  # whether Σw should add up to the population
    unbalanced: float | None = None  # Σw/|C| before weights were balanced, which makes it 1; None: they were not
    floored: float | None = None  # the share of propensities that a floor raised
    kept_weight: float | None = None  # Σ1/max(p, floor) over Σ1/p
    whole_users: bool = False  # a split drew users, with all their cells at once

    @property
    def mass(self) -> float | None:
        """Σw over Σ|C_u| before balancing, `weights` being those of all scored rows; None where p has no scale."""
        if self.weights is None or not self.scaled:
            return None
        return self.weights.total / float(self.cells.sum()) * (1.0 if self.unbalanced is None else self.unbalanced)


def assemble(metric: Metric, sums: Mapping[str, Floats], wanted: Needed, common: Common) -> Moments:
    """Moments from sums by name: per user and stratum (U, S); what is wanted over all rows may be (1, S)."""
    kept = {name: sums[name] for name in SUMS if name in sums}
    total = {name: values.sum(axis=0) for name, values in sums.items() if name not in kept}  # (S,) each
    n = float(kept["n"].sum())
    return Moments(
        metric=metric,
        sums=kept | dict(common.base),
        cells=common.cells,
        weights=common.weights,
        powers=_matrix("power", total),
        cut_powers=_matrix("cutpower", total),
        cap=wanted.cap if "cut" in kept else None,
        clipped=float(total["clipped"].sum()) / n if "clipped" in total and n else None,
        floored=common.floored,
        kept_weight=common.kept_weight,
        scaled=common.scaled,
        unbalanced=common.unbalanced,
        whole_users=common.whole_users,
        caps=_caps(total, wanted.caps),
        parts=_parts(total),
        squares=float(total["wsquare"].sum()) if "wsquare" in total else None,
        catalogue=common.catalogue,
        inverse_squares=common.inverse_squares,
        edges=common.edges,
        sample=common.sample,
        limits=common.limits,
        ids=common.ids,
    )


def paired(a: Moments, b: Moments, sums: Mapping[str, Floats]) -> Moments:
    """The moments of the difference of two models' gains, of all users together; `sums` are of the pair's own rows.

    Its parts by user are those of the models.
    """
    a, b = a.as_one_user(), b.as_one_user()
    total = {name: values.sum(axis=0) for name, values in sums.items()}
    gains = ("gain", "wgain", "cutgain")
    return replace(
        a,
        sums={name: values - b.sums[name] if name in gains else values for name, values in a.sums.items()},
        powers=_matrix("power", total),
        cut_powers=_matrix("cutpower", total),
        imputed=None if a.imputed is None or b.imputed is None else a.imputed - b.imputed,
        parts=_parts(total),
        squares=None,
    )


def _matrix(prefix: str, total: Mapping[str, Floats]) -> Floats | None:
    found = {(a, b): total[f"{prefix}{a}{b}"] for a, b in POWERS if f"{prefix}{a}{b}" in total}
    if not found:
        return None
    matrix = np.zeros((len(next(iter(found.values()))), 3, 3))  # (S, 3, 3); what was not asked for is not used
    for (a, b), values in found.items():
        matrix[:, a, b] = values
    return matrix


def _caps(total: Mapping[str, Floats], caps: tuple[float, ...]) -> dict[float, Floats]:
    if not caps or "cap0_0" not in total:
        return {}
    return {c: np.array([total[f"cap{j}_{i}"].sum() for i in range(5)]) for j, c in enumerate(caps)}


def _parts(total: Mapping[str, Any]) -> tuple[float, float, float] | None:
    if "positive" not in total:
        return None
    fixed = float(total["fixed"].sum()) if "fixed" in total else 0.0
    return fixed, float(total["positive"].sum()), float(total["negative"].sum())
