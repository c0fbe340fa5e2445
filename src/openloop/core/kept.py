"""`KeptEstimate`: an estimate as a file keeps it, its value and error without the users' parts."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import NoReturn

import numpy as np

from openloop.core.estimate import Estimate, Interval
from openloop.core.feedback import Floats
from openloop.core.totals import Function, Shifted
from openloop.errors import UndefinedError


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class KeptEstimate(Estimate):
    """The value, its error and its interval at one level; what needs users' parts, as a difference, is undefined."""

    influence: Floats = field(default_factory=lambda: np.empty(0), repr=False)
    columns: Floats = field(default_factory=lambda: np.empty((0, 1)), repr=False)
    function: Function = field(default=Shifted(0.0), repr=False)
    kept_stderr: float
    kept_df: float
    kept_level: float
    kept_interval: Interval

    def __post_init__(self) -> None:
        return  # nothing is left to compute

    @property
    def stderr(self) -> float:
        """The standard error over users, as it was written."""
        return self.kept_stderr

    @property
    def df(self) -> float:
        """The degrees of freedom of t, as they were written."""
        return self.kept_df

    @property
    def cell_stderr(self) -> float:
        """Not kept."""
        self._refuse("the standard error over cells")

    def interval(self, level: float = 0.95, over: str = "users") -> Interval:
        """The interval over users; at another level than the one that was written, by the same t."""
        if over == "users" and level == self.kept_level:
            return self.kept_interval
        error, quantile = self._error(level, over)
        if not self.root:
            return Interval(self.value - quantile * error, self.value + quantile * error)
        # The square's interval has the half-width t·error, and t alone changes with the level.
        half = (self.kept_interval.high**2 - self.value**2) * quantile / self._error(self.kept_level, over)[1]
        return Interval(math.sqrt(max(0.0, self.value**2 - half)), math.sqrt(self.value**2 + half))

    def without(self, user: int) -> Estimate:
        """Not known."""
        self._refuse(f"its value without user {user}")

    def __mul__(self, factor: float) -> Estimate:
        self._refuse(f"{factor:g} times it")

    __rmul__ = __mul__

    def lift(self, other: Estimate) -> Estimate:
        """Not known."""
        self._refuse(f"its lift over {other.method} of {other.metric}")

    def linear(self) -> Estimate:
        """Not known."""
        self._refuse("a sum over its users")

    def _combine(self, other: Estimate, sign: float) -> Estimate:
        self._refuse(f"a {'sum' if sign > 0 else 'difference'} with {other.method} of {other.metric}")

    def _refuse(self, what: str) -> NoReturn:
        raise UndefinedError(
            f"{self.method} of {self.metric}: {what} needs each user's part, which a file does not keep; audit again "
            "for it, or use .contrast, which is kept."
        )
