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


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Column:
    """f(u, i) = v_uᵀw_i + a_u + b_i + c."""

    name: str
    V: Array  # (U, K)
    W: Array  # (I, K)
    a: Array  # (U,)
    b: Array  # (I,)
    c: float = 0.0

    @classmethod
    def of(cls, who: str, name: str, model: Any) -> Column:
        """The score of a fitted factor model; of one with a link, as logistic, what the link is of."""
        if not isinstance(model, FactorLearner):
            raise InputError(
                f"{who}: {type(model).__name__} is no factor model, so a combination with it is none; give learners "
                "such as MF, Bias, WMF, PureSVD or Features."
            )
        V, W, a, b = model.user_factors_, model.item_factors_, model.user_bias_, model.item_bias_
        return cls(name=name, V=V, W=W, a=a, b=b, c=float(model.intercept_))

    def at(self, user: Array, item: Array) -> Array:
        """f of each pair of codes."""
        return factor_products(self.V, self.W, user, item) + self.a[user] + self.b[item] + self.c


def combined(columns: Sequence[Column], slopes: Sequence[float], c: float = 0.0, name: str = "") -> Column:
    """c + Σ β_j f_j: W = [β₁W₁|β₂W₂|…] beside V = [V₁|V₂|…]; columns without a slope are left out."""
    some = [(column, slope) for column, slope in zip(columns, slopes, strict=True) if slope != 0]
    U, I = len(columns[0].a), len(columns[0].b)
    dtype: Any = np.result_type(np.float32, *(column.V.dtype for column, _ in some))
    return Column(
        name=name,
        V=np.hstack([np.zeros((U, 0), dtype), *(column.V for column, _ in some)]),
        W=np.hstack([np.zeros((I, 0), dtype), *(column.W * dtype.type(slope) for column, slope in some)]),
        a=_sum(U, [(column.a, slope) for column, slope in some]),
        b=_sum(I, [(column.b, slope) for column, slope in some]),
        c=c + sum(slope * column.c for column, slope in some),
    )


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
        """Of the rows of both (Chan, Golub & LeVeque 1983)."""
        weight, gap = self.weight + other.weight, other.mean - self.mean
        scatter = self.scatter + other.scatter + self.weight * other.weight / weight * np.outer(gap, gap)
        return Spread(weight=weight, mean=self.mean + other.weight / weight * gap, scatter=scatter)

    @property
    def deviation(self) -> Floats:
        """The standard deviation of each column, (J,); 0 where it does not move but for rounding."""
        found = np.sqrt(np.diagonal(self.scatter)[:-1] / self.weight)
        return np.where(found > 1e-7 * np.abs(self.mean[:-1]), found, 0.0)


def ridge(spread: Spread, reg: float) -> Floats:
    """β (J,) of least Σ w(y − c − zᵀβ)² + λ‖β‖², z the standardised columns; 0 for a column that does not move."""
    J, deviation = len(spread.mean) - 1, spread.deviation
    unit = np.where(deviation > 0, deviation, np.inf)
    A = spread.scatter[:J, :J] / np.outer(unit, unit) + reg * np.eye(J)
    return np.linalg.lstsq(A, spread.scatter[:J, J] / unit, rcond=1e-12)[0].astype(np.float64)
