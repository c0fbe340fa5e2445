"""Student's t for a sample of differences: the mean with its standard error and p-value, and intervals."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import stdtr, stdtrit

from openloop.core.feedback import Floats


@dataclass(frozen=True, slots=True)
class Mean:
    """The mean of a sample, its standard error, and the two-sided p-value of Student's t that it is 0."""

    value: float
    stderr: float
    pvalue: float

    @property
    def above(self) -> bool:
        """Significantly above 0, at 5 %."""
        return self.value > 0 and self.pvalue < 0.05

    def __str__(self) -> str:
        return f"{self.value:+.4f} ± {self.stderr:.4f}"


def mean_of(sample: Floats) -> Mean:
    """Student's t-test of a sample; one without spread is certain."""
    value, stderr = float(sample.mean()), standard_error(sample)
    if stderr == 0:
        return Mean(value, 0.0, float(value == 0))
    return Mean(value, stderr, float(2 * stdtr(len(sample) - 1, -abs(value) / stderr)))


def paired(a: Floats, b: Floats) -> Mean:
    """a − b, pair by pair."""
    return mean_of(np.asarray(a, np.float64) - b)


def standard_error(sample: Floats) -> float:
    """Of the mean of a sample."""
    return float(sample.std(ddof=1) / math.sqrt(len(sample)))


def half_width(sample: Floats, level: float = 0.95) -> float:
    """Of the interval of the mean of a sample."""
    n = len(sample)
    return float(stdtrit(n - 1, (1 + level) / 2) * sample.std(ddof=1) / math.sqrt(n))
