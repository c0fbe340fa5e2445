"""`Rehearsal`: how often logs like this one would give a verdict, on equal models and on models that differ."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from openloop.core.estimate import Interval
from openloop.support.wording import counted, percent

LEVEL = 0.95  # of the intervals of both rates
ASSUMES = (
    "it takes the propensities as right, and imputes the ratings that were not seen",
    "it redraws the rows, and which of the two models serves a user better; the users stay the same",
    "it applies the rules about two models under one metric; strata, an open loop and doubts are not redrawn",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcomes:
    """How many drawn logs gave which answer; `right` and `wrong` verdicts are for model a and for model b."""

    right: int = 0
    wrong: int = 0
    conditional: int = 0
    none: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Rehearsal:
    """`draws` logs drawn like this one, and judged by the verdict's rules about models a and b, twice.

    `equal`: with both models made equal, every verdict is false. `different`: with the estimated `difference` put in, a
    verdict for the model that it favours, a, is right.
    """

    a: str
    b: str
    metric: str
    estimator: str
    draws: int
    difference: float
    rows: float  # of a drawn log that count, on average
    equal: Outcomes
    different: Outcomes

    @property
    def false_rate(self) -> float:
        """The share of logs that tell equal models apart."""
        return self._false / self.draws

    @property
    def false_interval(self) -> Interval:
        """The 95 % interval of `false_rate`, exact."""
        return binomial_interval(self._false, self.draws)

    @property
    def power(self) -> float:
        """The share of logs that find the better model."""
        return self.different.right / self.draws

    @property
    def power_interval(self) -> Interval:
        """The 95 % interval of `power`, exact."""
        return binomial_interval(self.different.right, self.draws)

    @property
    def _false(self) -> int:
        return self.equal.right + self.equal.wrong

    def records(self) -> dict[str, Any]:
        """Everything as plain values."""
        rates = ("false_rate", "false_interval", "power", "power_interval")
        return asdict(self) | {name: getattr(self, name) for name in rates} | {"assumes": list(ASSUMES)}

    def __str__(self) -> str:
        return (
            f"Rehearsed on {counted(self.draws, 'log')} drawn like this one. With {self.a} and {self.b} made equal, "
            f"{_share(self.false_rate, self.false_interval)} give a verdict, which is false. With the estimated "
            f"difference of {abs(self.difference):.3g}, {_share(self.power, self.power_interval)} find {self.a} "
            f"better, and {percent(self.different.wrong / self.draws)} find {self.b} better."
        )


def binomial_interval(successes: int, n: int, level: float = LEVEL) -> Interval:
    """The exact interval of a proportion (Clopper & Pearson 1934)."""
    from scipy.special import betaincinv

    tail = (1 - level) / 2
    low = float(betaincinv(successes, n - successes + 1, tail)) if successes else 0.0
    high = float(betaincinv(successes + 1, n - successes, 1 - tail)) if successes < n else 1.0
    return Interval(low, high)


def _share(rate: float, interval: Interval) -> str:
    low, high = interval
    return f"{percent(rate)} (95 % interval {percent(low)} to {percent(high)})"
