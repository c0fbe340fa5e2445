"""Resampling users: a metric with its interval, paired differences, and Holm's p-values over many of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from openloop.audits.contrasts import holm
from openloop.core.feedback import Floats
from openloop.errors import InputError
from openloop.studies.race.measures import Form

LEVEL = 0.95


def user_draws(users: int, number: int, rng: np.random.Generator) -> Floats:
    """How often each user counts, (1 + number, U): first as they are, then drawn with replacement."""
    drawn = rng.multinomial(users, np.full(users, 1 / users), size=number).astype(np.float64)
    return np.concatenate([np.ones((1, users)), drawn])


@dataclass(frozen=True, slots=True, eq=False)
class Resampled:
    """A number for the users as they are, and for each draw of users; of paired ones, differences are paired."""

    values: Floats  # (1 + B,)

    @property
    def value(self) -> float:
        """For the users as they are."""
        return float(self.values[0])

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval: quantiles over draws."""
        low, high = np.quantile(self.values[1:], [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
        return float(low), float(high)

    @property
    def half(self) -> float:
        """Half the length of the interval."""
        low, high = self.interval
        return (high - low) / 2

    @property
    def pvalue(self) -> float:
        """Two-sided, that it is 0: normal, with the standard deviation over draws as its error."""
        # The share of draws beyond 0 is never below 1 in the number of draws: after Holm, nothing would be significant.
        stderr = float(self.values[1:].std(ddof=1))
        return float(2 * ndtr(-abs(self.value) / stderr)) if stderr > 0 else float(self.value == 0)

    def __sub__(self, other: Resampled) -> Resampled:
        return Resampled(self.values - other.values)

    def __str__(self) -> str:
        low, high = self.interval
        return f"{self.value:+.3f} [{low:+.3f}, {high:+.3f}]"


def resampled(forms: Sequence[Form], counts: Floats) -> Resampled:
    """The mean of one metric over fits that differ in their seed, for each draw of users."""
    if not forms:
        raise InputError("resampled: no fit to average; give at least one.")
    return Resampled(np.mean([form.over(counts) for form in forms], axis=0))


def adjusted(differences: Mapping[str, Resampled]) -> dict[str, float]:
    """Holm's p-value of each of the differences."""
    found = holm([gap.pvalue for gap in differences.values()])
    return dict(zip(differences, (float(p) for p in found), strict=True))
