"""Columns of a stack: functions v_uᵀw_i + a_u + b_i + c of cells, whose combinations are such functions again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from openloop.core.feedback import Array, Floats
from openloop.errors import InputError
from openloop.kernels.products import factor_products
from openloop.learners.base import FactorLearner

BLOCK = 2**18  # rows whose products are in memory at a time
STILL = 0.05  # of its deviation over all cells: a column that moves less at held-out rows is left out


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FactorColumn:
    """f(u, i) = v_uᵀw_i + a_u + b_i + c; `notes` are those of the fit that it comes from."""

    name: str
    V: Array  # (U, K)
    W: Array  # (I, K)
    a: Array  # (U,)
    b: Array  # (I,)
    c: float = 0.0
    notes: tuple[str, ...] = ()

    @classmethod
    def of(cls, who: str, name: str, model: Any) -> FactorColumn:
        """The score of a fitted factor model; of one whose predictions are a function of it, still the score."""
        if not isinstance(model, FactorLearner):
            raise InputError(
                f"{who}: {type(model).__name__} is not a factor model, so it cannot be combined; give learners "
                "such as MF, Bias, WMF, PureSVD or Features."
            )
        V, W, a, b = model.user_factors_, model.item_factors_, model.user_bias_, model.item_bias_
        linked = ["its scores are used here, not its predictions, which are a function of them"] if model.linked else []
        return cls(name=name, V=V, W=W, a=a, b=b, c=float(model.intercept_), notes=(*model.notes_, *linked))

    @property
    def deviation(self) -> float:
        """The standard deviation over all cells: f − c = lᵀr has E[f²] = tr(LᵀL·RᵀR)/UI and E[f] = l̄ᵀr̄."""
        left = np.column_stack([self.V, self.a, np.ones(len(self.a))]).astype(np.float64)
        right = np.column_stack([self.W, np.ones(len(self.b)), self.b]).astype(np.float64)
        square = np.sum((left.T @ left) * (right.T @ right)) / (len(left) * len(right))
        return float(np.sqrt(max(square - (left.mean(axis=0) @ right.mean(axis=0)) ** 2, 0.0)))

    def at(self, user: Array, item: Array) -> Array:
        """f of each pair of codes."""
        return factor_products(self.V, self.W, user, item) + self.a[user] + self.b[item] + self.c


def combined(columns: Sequence[FactorColumn], slopes: Sequence[float], c: float = 0.0, name: str = "") -> FactorColumn:
    """c + Σ β_j f_j: W = [β₁W₁|β₂W₂|…] beside V = [V₁|V₂|…]; columns without a slope are left out."""
    some = [(column, slope) for column, slope in zip(columns, slopes, strict=True) if slope != 0]
    U, I = len(columns[0].a), len(columns[0].b)
    dtype: Any = np.result_type(np.float32, *(column.V.dtype for column, _ in some))
    return FactorColumn(
        name=name,
        V=np.hstack([np.zeros((U, 0), dtype), *(column.V for column, _ in some)]),
        W=np.hstack([np.zeros((I, 0), dtype), *(column.W * dtype.type(slope) for column, slope in some)]),
        a=_sum(U, [(column.a, slope) for column, slope in some]),
        b=_sum(I, [(column.b, slope) for column, slope in some]),
        c=c + sum(slope * column.c for column, slope in some),
    )


def shared_notes(columns: Sequence[FactorColumn]) -> list[str]:
    """What there is to note of the fits behind columns, each note once, after the names of those that have it."""
    names: dict[str, list[str]] = {}
    for column in columns:
        for note in column.notes:
            names.setdefault(note, []).append(column.name)
    return [f"{'; '.join(who)}: {note}" for note, who in names.items()]


def _sum(n: int, terms: Sequence[tuple[Array, float]]) -> Floats:
    total = np.zeros(n)
    for values, slope in terms:
        total += slope * values
    return total


# -- the regression on columns -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Spread:
    """Weighted sums of columns and the rating: Σw, the means, and the scatter Σw(x − x̄)(x − x̄)ᵀ; parts merge."""

    weight: float
    mean: Floats  # (J + 1,), the rating last
    scatter: Floats  # (J + 1, J + 1)

    @classmethod
    def of(cls, values: Sequence[Array], y: Array, w: Array) -> Spread:
        """Of rows: the values of each column, the ratings and the weights."""
        total = cls(weight=0.0, mean=np.zeros(len(values) + 1), scatter=np.zeros((len(values) + 1,) * 2))
        for start in range(0, len(y), BLOCK):
            rows = slice(start, start + BLOCK)
            X = np.column_stack([*(column[rows] for column in values), y[rows]]).astype(np.float64)  # (n, J + 1)
            v = w[rows].astype(np.float64)
            mean = np.average(X, axis=0, weights=v)
            C = X - mean
            total = total.merged(cls(weight=float(v.sum()), mean=mean, scatter=(C * v[:, None]).T @ C))
        return total

    def merged(self, other: Spread) -> Spread:
        """Of the rows of both, as of one part (Chan, Golub & LeVeque 1983)."""
        weight, gap = self.weight + other.weight, other.mean - self.mean
        between = self.weight * other.weight / weight * np.outer(gap, gap)
        both = self.pooled(other)
        return Spread(weight=weight, mean=both.mean, scatter=both.scatter + between)

    def pooled(self, other: Spread) -> Spread:
        """Of the rows of both, each about the means of its own part.

        The level of a model without a fold is the lower the higher the fold's own ratings are: between folds a
        column runs against the rating by arithmetic, and only within them does it tell what it is worth.
        """
        if other.weight == 0:  # a fold without rows
            return self
        weight, gap = self.weight + other.weight, other.mean - self.mean
        return Spread(weight=weight, mean=self.mean + other.weight / weight * gap, scatter=self.scatter + other.scatter)

    def deviations(self, columns: Sequence[FactorColumn]) -> Floats:
        """The standard deviation of each column, (J,); 0 where it hardly moves, beside what it does over all cells.

        A slope on so little would be multiplied by so much.
        """
        found = np.sqrt(np.diagonal(self.scatter)[:-1] / self.weight)
        return np.where(found > STILL * np.array([column.deviation for column in columns]), found, 0.0)


def ridge(spread: Spread, deviation: Floats, reg: float) -> Floats:
    """β (J,) of least Σ w(y − c − zᵀβ)² + λ‖β‖², z the columns by their deviation; 0 where that is 0."""
    J = len(deviation)
    unit = np.where(deviation > 0, deviation, np.inf)
    A = spread.scatter[:J, :J] / np.outer(unit, unit) + reg * np.eye(J)
    return np.linalg.lstsq(A, spread.scatter[:J, J] / unit, rcond=1e-12)[0].astype(np.float64)
