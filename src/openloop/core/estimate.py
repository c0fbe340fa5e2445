"""`Estimate`: a value and its per-user influence; errors, intervals and differences are arithmetic on it.

Every estimator is a smooth function f of totals T = Σ_u x_u. Its influence is f's, by the delta method:
ψ_u = U · ∇f(T) · (x_u − x̄). A ratio such as SNIPS thereby gets the ratio's influence, denominator included.
"""

from __future__ import annotations

import html
import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from numbers import Real
from typing import Any, NamedTuple

import numpy as np

from openloop.core.feedback import Floats, frozen
from openloop.core.weights import Diagnostics
from openloop.errors import AlignmentError, InputError, UndefinedError
from openloop.support.arguments import check_level

Function = Callable[[Any], Any]  # totals (..., m) → value (...); analytic in each total


class Interval(NamedTuple):
    """Limits of a confidence interval."""

    low: float
    high: float

    def __contains__(self, value: object) -> bool:
        return isinstance(value, Real) and self.low <= float(value) <= self.high


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Estimate:
    """A value, its influence per user (mean zero) and, for cell metrics, its variance over cells.

    `columns` (U, m) and `function` are what it was computed from, so that a bootstrap need not reread the log.
    `root`: the value is a square root, and its interval is that of the square, cut at 0.
    """

    value: float
    influence: Floats = field(repr=False)
    method: str
    metric: str
    estimand: str = ""
    cell_variance: float | None = None
    diagnostics: Diagnostics = field(default_factory=lambda: Diagnostics(n=0, users=0), repr=False)
    columns: Floats = field(repr=False)
    function: Function = field(repr=False)
    root: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "influence", frozen(np.asarray(self.influence, np.float64)))

    @property
    def n_users(self) -> int:
        """The users of the population."""
        return len(self.influence)

    @property
    def scored_users(self) -> int:
        """The users who have rows that count; the others add no degree of freedom."""
        return self.diagnostics.users or self.n_users

    @property
    def stderr(self) -> float:
        """The standard error over users, NaN where fewer than two have rows."""
        m = self.scored_users
        if m < 2:
            return math.nan
        return math.sqrt(float(np.square(self.influence).sum()) / self.n_users**2 * m / (m - 1))

    @property
    def cell_stderr(self) -> float:
        """The standard error over cells: these users and items, only the observation random."""
        if self.cell_variance is None:
            raise UndefinedError(
                f"{self.method} of {self.metric}: no variance over cells. It exists for cell metrics with "
                "propensities; for a difference (of mse rather than rmse) use result.difference(a, b), which has the "
                "pair's own sums."
            )
        return math.sqrt(self.cell_variance)

    def interval(self, level: float = 0.95, over: str = "users") -> Interval:
        """A two-sided interval; `over="users"`: users like these (t), `over="cells"`: exactly these (normal)."""
        error, quantile = self._error(level, over)
        if not self.root:
            return Interval(self.value - quantile * error, self.value + quantile * error)
        # rmse: the interval of mse, whose error is 2·rmse·error(rmse), cut at 0.
        half = quantile * 2 * self.value * error
        return Interval(math.sqrt(max(0.0, self.value**2 - half)), math.sqrt(self.value**2 + half))

    def limits(self, level: float = 0.95) -> Interval:
        """The interval over users, NaN where fewer than two leave none."""
        return self.interval(level) if self.scored_users > 1 else Interval(math.nan, math.nan)

    def _error(self, level: float, over: str) -> tuple[float, float]:
        from scipy.special import ndtri, stdtrit

        check_level("interval", level)
        if over == "cells":
            return self.cell_stderr, float(ndtri((1 + level) / 2))
        if over != "users":
            raise InputError(f'interval: over must be "users" or "cells", got {over!r}.')
        if self.scored_users < 2:
            msg = f"interval: over users needs at least two users with scored rows, here is {self.scored_users}."
            raise UndefinedError(msg)
        return self.stderr, float(stdtrit(self.scored_users - 1, (1 + level) / 2))

    @property
    def pvalue(self) -> float:
        """The two-sided p-value of value = 0, over users."""
        from scipy.special import stdtr

        if self.stderr == 0:
            return float(self.value == 0)
        return float(2 * stdtr(self.scored_users - 1, -abs(self.value) / self.stderr))

    def __add__(self, other: Estimate) -> Estimate:
        return self._combine(other, 1.0)

    def __sub__(self, other: Estimate) -> Estimate:
        return self._combine(other, -1.0)

    def __mul__(self, factor: float) -> Estimate:
        inner = self.function
        variance = None if self.cell_variance is None else self.cell_variance * factor**2
        return replace(
            self, value=self.value * factor, influence=self.influence * factor, cell_variance=variance,
            function=Scaled(inner, factor), root=False,
        )  # fmt: skip

    __rmul__ = __mul__

    def __neg__(self) -> Estimate:
        return self * -1.0

    def _combine(self, other: Estimate, sign: float) -> Estimate:
        """Paired by user; the covariance over cells is not known here, so the variance over cells is dropped."""
        if self.n_users != other.n_users:
            msg = f"estimates of {self.n_users:,} and {other.n_users:,} users cannot be paired; use the same log."
            raise AlignmentError(msg)
        f, g, m = self.function, other.function, self.columns.shape[1]
        value, influence = self.value + sign * other.value, self.influence + sign * other.influence
        linear = isinstance(f, Shifted) and isinstance(g, Shifted)  # and so is what they combine to
        return replace(
            self,
            value=value,
            influence=influence,
            cell_variance=None,
            columns=influence[:, None] if linear else np.hstack([self.columns, other.columns]),
            function=Shifted(value, self.n_users) if linear else Combined(f, g, m, sign),
            method=self.method if self.method == other.method else f"{self.method}, {other.method}",
            metric=self.metric if self.metric == other.metric else f"{self.metric}, {other.metric}",
            root=False,
        )

    def linear(self) -> Estimate:
        """The same without the sums that it was computed from: a bootstrap of it is that of its influence."""
        return replace(self, columns=self.influence[:, None], function=Shifted(self.value, self.n_users))

    def __str__(self) -> str:
        head = f"{self.method} of {self.metric}: {self.value:.4g}"
        if self.scored_users < 2:
            return head
        low, high = self.interval()
        return f"{head} (standard error {self.stderr:.2g}, 95 % interval over users {low:.4g} … {high:.4g})"

    def _repr_html_(self) -> str:
        low, high = self.limits()
        return (
            "<table><tr><th>metric</th><th>estimator</th><th>value</th><th>95 % interval over users</th></tr>"
            f"<tr><td>{html.escape(self.metric)}</td><td>{html.escape(self.method)}</td><td>{self.value:.4g}</td>"
            f"<td>{low:.4g} … {high:.4g}</td></tr></table>"
        )


# Functions of totals are objects rather than closures, so that an Estimate can be pickled.


@dataclass(frozen=True, slots=True)
class Scaled:
    """A function times a factor."""

    inner: Function
    factor: float

    def __call__(self, totals: Any) -> Any:
        """The value at the totals (..., m)."""
        return self.inner(totals) * self.factor


@dataclass(frozen=True, slots=True)
class Shifted:
    """A value plus the mean influence."""

    value: float
    n_users: int

    def __call__(self, totals: Any) -> Any:
        """The value at the totals (..., 1)."""
        return self.value + totals[..., 0] / self.n_users


@dataclass(frozen=True, slots=True)
class Combined:
    """f of the first m totals plus or minus g of the others."""

    f: Function
    g: Function
    m: int
    sign: float

    def __call__(self, totals: Any) -> Any:
        """The value at the totals (..., m + n)."""
        return self.f(totals[..., : self.m]) + self.sign * self.g(totals[..., self.m :])


@dataclass(frozen=True, slots=True)
class Root:
    """The square root of a function."""

    inner: Function

    def __call__(self, totals: Any) -> Any:
        """The value at the totals (..., m)."""
        return np.sqrt(self.inner(totals))


def smooth(function: Function, columns: Floats) -> tuple[float, Floats, Floats]:
    """Value f(T), gradient ∇f(T) (m,) and influence (U,) of a smooth function of T = Σ_u columns_u (U, m)."""
    totals = columns.sum(axis=0)  # (m,)
    gradient = complex_step(function, totals)  # (m,)
    slope = columns @ gradient  # (U,)
    return float(function(totals)), gradient, len(columns) * (slope - slope.mean())


def complex_step(function: Function, at: Floats) -> Floats:
    """∇f by f(x + ih)/h: exact to rounding, because no difference is taken (Squire & Trapp 1998)."""
    step = 1e-30 * np.maximum(np.abs(at), 1.0)
    points = at + 1j * np.diag(step)  # (m, m)
    return np.imag(function(points)) / step
