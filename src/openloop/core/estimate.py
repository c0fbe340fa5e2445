"""`Estimate`: a value and each user's part in it; errors, intervals and differences are arithmetic on parts.

Every estimator is a smooth function f of totals T = Σ_u x_u. A user's part is taken twice: the influence ψ_u = U ·
∇f(T) · (x_u − x̄), and J_u = f(T − x_u) − f(T), what leaving the user out changes. The standard error is the
jackknife's (Tukey 1958), of J; ψ says how many users it rests on. A ratio such as SNIPS gets the ratio's error,
denominator included.
"""

from __future__ import annotations

import html
import math
import operator
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from openloop.core.feedback import Floats, frozen
from openloop.core.interval import Interval
from openloop.core.totals import Composed, Function, Shifted, freedom, leave_one_out, relative_gain, smooth, squared
from openloop.core.weights import Diagnostics
from openloop.errors import AlignmentError, InputError, UndefinedError
from openloop.support.arguments import check_level
from openloop.support.tables import html_list

ROUNDING = 1e-12  # of a value: smaller parts are rounding
TAKEN = ("known", "corrected", "refitted")  # how an interval treats p, the weakest claim first
_TAKEN_AS = {"known": "taken as known", "corrected": "corrected for their sample", "refitted": "refitted"}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Estimate:
    """A value, its influence per user and, for cell metrics, its variance over cells.

    `ol.evaluate` makes estimates. Sums, differences and multiples of estimates are estimates, paired by user.

    Args:
        value: The estimate.
        influence: ψ_u, each user's first-order effect on the value, (U,), with mean zero.
        method: The estimator's name.
        metric: The metric's name.
        estimand: What is estimated, in words, such as "per cell".
        cell_variance: The variance over cells, None where it is not defined.
        diagnostics: What the estimate rests on: effective sample size, largest weight, flags.
        columns: The totals of each user that the value is a function of, (U, m). A bootstrap needs no more.
        function: The function of the summed columns that gives the value.
        deviations: J_u, the change when user u is left out, (U,); by default computed from the function.
        squared_deviations: ΣJ_u².
        units: m, the number of users that take part. With 0 the value is not a sum over users and has no interval.
        denominator_users: (ΣW_u)²/ΣW_u² of the denominator's parts: the effective number of users in it.
        sample_effects: What each rating of a uniform sample contributes to the error; the squares add up to its
            variance.
        sample_size: The number of ratings in that sample.
        replicates: Values in draws of users to which the propensities were fitted again. They replace the jackknife's
            error.
        over: What is random in intervals by default, "users" or "cells".
        p_taken: How the interval takes p: "" (no p), "known", "corrected" or "refitted".
        whole_users: Whether a split drew users, with all their cells at once.
        root: Whether the value is a square root. Its interval is that of the square, cut at 0.

    Examples:
        >>> world = ol.simulate.movie_lovers()
        >>> result = ol.evaluate(world.predictions, world.observe(0), metrics=["mae"], estimators=["snips"])
        >>> gap = result["Y2", "mae", "snips"] - result["Y1", "mae", "snips"]
        >>> round(gap.value, 2), round(gap.stderr, 2)
        (0.82, 0.1)
        >>> 0 in gap.interval(0.95)
        False
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
    deviations: Floats = field(default_factory=lambda: np.empty(0), repr=False)
    squared_deviations: float = field(default=math.nan, repr=False)
    units: int = 0
    denominator_users: float = math.inf
    sample_effects: Floats = field(default_factory=lambda: np.empty(0), repr=False)
    sample_size: int = 0
    replicates: Floats = field(default_factory=lambda: np.empty(0), repr=False)
    p_taken: str = ""
    over: str = "users"
    whole_users: bool = False
    root: bool = False

    def __post_init__(self) -> None:
        influence, deviations = np.asarray(self.influence, np.float64), self.deviations
        if len(deviations) != len(influence):
            deviations = leave_one_out(self.function, self.columns)
        deviations = np.asarray(deviations, np.float64)
        units = self.units or int(np.count_nonzero(self.columns.any(axis=1)))
        # Frozen parts went through here before: a copy with other names need not look at all users again.
        diagnostics, squares = self.diagnostics, self.squared_deviations
        if units and (influence.flags.writeable or diagnostics.effective_users is None):
            diagnostics = diagnostics.resting_on(*_concentration(influence, self.value, units))
        if deviations.flags.writeable or math.isnan(squares):
            squares = squared(deviations)
        for name, value in {
            "influence": frozen(influence), "deviations": frozen(deviations), "squared_deviations": squares,
            "units": units, "diagnostics": diagnostics,
        }.items():  # fmt: skip
            object.__setattr__(self, name, value)

    @property
    def n_users(self) -> int:
        """The number of users in the population."""
        return len(self.influence)

    @property
    def scored_users(self) -> int:
        """The number of users with rows that count."""
        return self.diagnostics.users or self.n_users

    @property
    def effective_users(self) -> float:
        """(Σψ²)²/Σψ⁴: how many users the spread rests on, Kish's (1965) size of the weights ψ².

        Where ψ is normal it is a third of the users.
        """
        return self.diagnostics.effective_users or 0.0

    @property
    def largest_user_share(self) -> float:
        """max ψ²/Σψ²: the share of the most influential user."""
        return self.diagnostics.largest_user_share or 0.0

    @property
    def sample_variance(self) -> float:
        """The variance that comes from the uniform sample that the propensities were fitted with."""
        return float(np.square(self.sample_effects).sum())

    @property
    def stderr(self) -> float:
        """√((m−1)/m · ΣJ_u²), the jackknife's, with the sample's part; NaN where it is undefined."""
        return self._spread(self.squared_deviations, self.sample_variance, self.replicates)

    def _spread(self, squares: float, sample_variance: float, replicates: Floats) -> float:
        if len(replicates):
            return float(np.nanstd(replicates, ddof=1))
        m = self.units
        if min(m, self.scored_users) < 2:
            return math.nan
        error = math.sqrt((m - 1) / m * squares + sample_variance)
        return error if math.isfinite(error) else math.nan

    @property
    def df(self) -> float:
        """The degrees of freedom of t, by `core.totals.freedom`.

        With a uniform sample's part, those of the sum by Satterthwaite (1946).
        """
        users = float(freedom(self.units, self.effective_users, self.denominator_users))
        sample, total = self.sample_variance, self.stderr**2
        if not sample > 0:
            return users
        return total**2 / ((total - sample) ** 2 / users + sample**2 / max(1, self.sample_size - 1))

    @property
    def cell_stderr(self) -> float:
        """The standard error over cells: users and items are fixed, only the observation is random."""
        if self.whole_users:
            raise UndefinedError(
                f"{self.method} of {self.metric}: no variance over cells. The log was split by user, so the cells of a "
                'user were drawn together; use over="users", or split by="row".'
            )
        if self.cell_variance is None:
            raise UndefinedError(
                f"{self.method} of {self.metric}: no variance over cells. It exists for cell metrics with "
                "propensities; for a difference (of mse rather than rmse) use result.difference(a, b), which has the "
                "pair's own sums."
            )
        return math.sqrt(self.cell_variance)

    def interval(self, level: float = 0.95, over: str | None = None) -> Interval:
        """A two-sided confidence interval.

        Args:
            level: The confidence level, strictly between 0 and 1.
            over: What is random. "users": another draw of users like these, by t. "cells": another observation of
                exactly these users and items, by the normal distribution. By default what `errors=` said.

        Returns:
            The limits.

        Raises:
            UndefinedError: There is no error of that kind, as with one user.
        """
        over = over or self.over
        error, quantile = self._error(level, over)
        if not self.root:
            return Interval(self.value - quantile * error, self.value + quantile * error)
        half = quantile * self._squares_error(error, over)  # rmse: the interval of mse, cut at 0
        return Interval(math.sqrt(max(0.0, self.value**2 - half)), math.sqrt(self.value**2 + half))

    def _squares_error(self, error: float, over: str) -> float:
        """The error of the square of the value; J of the square is (θ + J)² − θ²."""
        if over == "cells":
            return 2 * self.value * error
        squares = self.deviations * (2 * self.value + self.deviations)
        return self._spread(squared(squares), 4 * self.value**2 * self.sample_variance, self.replicates**2)

    def limits(self, level: float = 0.95) -> Interval:
        """The interval over users at `level`, NaN where it is undefined."""
        return self.interval(level) if math.isfinite(self.stderr) else Interval(math.nan, math.nan)

    def _error(self, level: float, over: str) -> tuple[float, float]:
        from scipy.special import ndtri, stdtrit

        check_level("interval", level)
        if over == "cells":
            return self.cell_stderr, float(ndtri((1 + level) / 2))
        if over != "users":
            raise InputError(f'interval: over must be "users" or "cells", got {over!r}.')
        error = self.stderr
        if not math.isfinite(error):
            raise self._no_interval()
        return error, float(stdtrit(self.df, (1 + level) / 2))

    def _no_interval(self) -> UndefinedError:
        if not self.units:
            return UndefinedError(
                f"interval: {self.metric} is not a sum over users, so it has no interval over users; use .value."
            )
        counted = min(self.units, self.scored_users)
        if counted < 2:
            return UndefinedError(f"interval: over users needs at least two users with rows that count, got {counted}.")
        lost = int(np.count_nonzero(~np.isfinite(self.deviations)))
        return UndefinedError(
            f"interval: {self.method} of {self.metric} is undefined without {lost} of its {self.units} users, since "
            "it rests on them alone; score more users."
        )

    @property
    def pvalue(self) -> float:
        """The two-sided p-value of value = 0, over users; NaN where there is no interval."""
        from scipy.special import stdtr

        error = self.stderr
        if error == 0:
            return float(self.value == 0)
        return float(2 * stdtr(self.df, -abs(self.value) / error))

    def without(self, user: int) -> Estimate:
        """The estimate without one `user`, given by position."""
        columns = self.columns.copy(order="K")
        columns[user] = 0.0
        with np.errstate(invalid="ignore", divide="ignore"):  # nothing may be left
            value, _, influence = smooth(self.function, columns)
        return replace(
            self, value=value, influence=influence, columns=columns, deviations=leave_one_out(self.function, columns),
            units=self.units - 1, cell_variance=None, replicates=np.empty(0),
        )  # fmt: skip

    def __add__(self, other: Estimate) -> Estimate:
        return self._combine(other, operator.add, (1.0, 1.0))

    def __sub__(self, other: Estimate) -> Estimate:
        return self._combine(other, operator.sub, (1.0, -1.0))

    def __mul__(self, factor: float) -> Estimate:
        return replace(
            self, value=self.value * factor, influence=self.influence * factor, deviations=self.deviations * factor,
            sample_effects=self.sample_effects * factor, replicates=self.replicates * factor,
            cell_variance=None if self.cell_variance is None else self.cell_variance * factor**2,
            function=Composed(partial(operator.mul, factor), (self._formula,)), root=False,
        )  # fmt: skip

    __rmul__ = __mul__

    def __neg__(self) -> Estimate:
        return self * -1.0

    def lift(self, other: Estimate) -> Estimate:
        """A/B − 1, paired by user: the relative gain over the `other` estimate."""
        if not other.value:
            raise UndefinedError(
                f"lift: {other.method} of {other.metric} is 0 for the other model, so the relative gain is undefined; "
                "use a difference."
            )
        return self._combine(other, relative_gain, (1 / other.value, -self.value / other.value**2))

    @property
    def _formula(self) -> tuple[Function, int]:
        """The function and the number of its totals."""
        return self.function, self.columns.shape[1]

    def _combine(self, other: Estimate, rule: Callable[[Any, Any], Any], slopes: tuple[float, float]) -> Estimate:
        """rule(A, B), whose derivatives are `slopes`, paired by user; its variance over cells needs a covariance."""
        if len(self.deviations) != len(other.deviations):
            msg = f"estimates of {self.n_users:,} and {other.n_users:,} users cannot be paired; use the same log."
            raise AlignmentError(msg)
        a, b = slopes
        is_sum = rule is not relative_gain
        value = rule(self.value, other.value)
        with np.errstate(invalid="ignore", divide="ignore"):  # nothing may be left without a user
            deviations = (
                a * self.deviations + b * other.deviations
                if is_sum
                else rule(self.value + self.deviations, other.value + other.deviations) - value
            )
        is_paired = len(self.replicates) == len(other.replicates)  # draw by draw
        estimate = replace(
            self,
            value=value,
            influence=a * self.influence + b * other.influence,
            deviations=deviations,
            sample_effects=_summed(a * self.sample_effects, b * other.sample_effects),
            sample_size=max(self.sample_size, other.sample_size),
            replicates=rule(self.replicates, other.replicates) if is_paired else np.empty(0),
            units=max(self.units, other.units),
            denominator_users=min(self.denominator_users, other.denominator_users),
            cell_variance=None,
            columns=np.hstack([self.columns, other.columns]),
            function=Composed(rule, (self._formula, other._formula)),
            method=self.method if self.method == other.method else f"{self.method}, {other.method}",
            metric=self.metric if self.metric == other.metric else f"{self.metric}, {other.metric}",
            p_taken=next((way for way in TAKEN if way in (self.p_taken, other.p_taken)), ""),
            root=False,
        )
        # The sum of two that are sums of users' parts is one, too.
        is_linear = is_sum and isinstance(self.function, Shifted) and isinstance(other.function, Shifted)
        return estimate.linear() if is_linear else estimate

    def linear(self) -> Estimate:
        """The same estimate as a sum of J_u, without the totals that it was computed from."""
        parts, total = self.deviations, float(self.deviations.sum())
        if not math.isfinite(total):  # where nothing is left without a user, the influence is all there is
            parts = np.where(np.isfinite(parts), parts, -self.influence / self.n_users)
            total = float(parts.sum())
        return replace(self, columns=parts[:, None], function=Shifted(self.value + total))

    def __str__(self) -> str:
        named = f"{self.method} of {self.metric}"
        head = f"{named}, {self.estimand}: {self.value:.4g}" if self.estimand else f"{named}: {self.value:.4g}"
        low, high = self.limits()
        if math.isnan(low):
            return head
        propensities = f", propensities {_TAKEN_AS[self.p_taken]}" if self.p_taken else ""
        return (
            f"{head} (standard error {self.stderr:.2g}, 95 % interval over users {low:.4g} … {high:.4g}{propensities})"
        )

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        low, high = self.limits()
        interval = "none" if math.isnan(low) else f"{low:.4g} … {high:.4g}"
        shown = {
            "metric": self.metric, "estimator": self.method, "estimand": self.estimand, "value": f"{self.value:.4g}",
            "95 % interval over users": interval,
        }  # fmt: skip
        head = "".join(f"<th>{name}</th>" for name in shown)
        cells = "".join(f'<td style="white-space:nowrap">{html.escape(text)}</td>' for text in shown.values())
        return f"<table><tr>{head}</tr><tr>{cells}</tr></table>{html_list(self.diagnostics.flags)}"


def _concentration(influence: Floats, value: float, units: int) -> tuple[float, float]:
    """(Σψ²)²/Σψ⁴ and max ψ²/Σψ²; without any spread all users count equally."""
    largest = float(np.abs(influence).max(initial=0.0))
    if not largest > ROUNDING * abs(value):
        return float(units), 1 / max(units, 1)
    squares = np.square(influence / largest)  # the fourth powers stay finite
    total = float(squares.sum())
    return total**2 / squared(squares), 1 / total


def _summed(a: Floats, b: Floats) -> Floats:
    """The effects of one sample on two estimates, added; an estimate that needs no sample has none."""
    if not len(a) or not len(b):
        return a if len(a) else b
    if len(a) != len(b):
        raise AlignmentError(
            f"estimates from samples of {len(a)} and {len(b)} levels cannot be paired; use one sample."
        )
    return a + b
