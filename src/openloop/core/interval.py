"""`Interval`: the limits of a confidence interval, which can tell whether a number lies between them."""

from __future__ import annotations

from numbers import Real
from typing import NamedTuple


class Interval(NamedTuple):
    """The limits of a confidence interval; `value in interval` tells whether a number lies between them.

    Attributes:
        low: The lower limit.
        high: The upper limit.

    Examples:
        >>> interval = ol.Interval(0.2, 0.5)
        >>> 0.3 in interval, 0.6 in interval
        (True, False)
    """

    low: float
    high: float

    def __contains__(self, value: object) -> bool:
        return isinstance(value, Real) and self.low <= float(value) <= self.high
