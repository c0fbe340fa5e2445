"""How many impressions shown at random would settle which of two models is better, for a log of positives.

An impression of a cell drawn evenly from the candidates is liked with probability q. Over L liked ones the difference
of two pooled metrics has variance S²/L, so a two-sided test at 5 % needs L = (z₀.₉₇₅ + z_power)²·S²/Δ² of them, and
L/q impressions. Every row of the log is a liked cell, so q is at least their share of the candidates, which gives the
most impressions that may be needed. S² = n·se², of the n rows and the error over users of the pooled difference at
κ = 0. (In a simulation whose log has an eighth of what is liked, S² was .066 in the log and .094 in truth: with
the true q the power is 63 %, with its bound 100 %.)
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from openloop.audits.contrasts import Contrast
from openloop.audits.evidence import Evidence
from openloop.audits.planning import ALPHA
from openloop.audits.sensitivity import TILTED
from openloop.core.comparison import Comparison
from openloop.estimators.tilting import differences
from openloop.moments.requests import LogFacts
from openloop.support.wording import percent

POWER = 0.8


@dataclass(frozen=True, slots=True, kw_only=True)
class Settling:
    """Impressions shown at random that tell two models apart, if all of popularity is liking, and if all is exposure.

    `rate` is the least share of them that is liked. `impressions` are None where the models do not differ.
    """

    a: str
    b: str
    metric: str
    rate: float
    differences: tuple[float, float]  # at κ = 0 and 1
    impressions: tuple[int | None, int | None]
    power: float = POWER

    def __str__(self) -> str:
        liking, exposure = (
            f"at most about {rounded(n)} if {why} (difference {d:+.3g})" if n is not None
            else f"no number is enough if {why} (no difference)"
            for n, d, why in zip(
                self.impressions, self.differences, ("popularity is liking", "it is exposure"), strict=True
            )
        )  # fmt: skip
        return (
            f"Settling {self.a} against {self.b} on {self.metric} with {percent(self.power)} power takes impressions "
            f"of candidates drawn at random: {liking}, and {exposure}. This assumes that both models are judged by the "
            f"same impressions, that at least {percent(self.rate)} of these are liked (the share of the log's "
            "positives among the candidates), and that liking varies as it does in the log."
        )


def settling_of(result: Comparison, found: Evidence, about: LogFacts, others: int = 0) -> tuple[Settling, ...]:
    """For each pair whose order may turn with the share of popularity that is exposure.

    `others` are liked cells among the candidates that are not scored, as cold ones.
    """
    candidates = about.users * about.items - (about.excluded or 0)
    made = (
        _settling(result, c, (about.rows + others) / candidates)
        for c in found.own
        if c.kappa_low is not None and c.kappa_low <= 1
    )
    return tuple(settling for settling in made if settling is not None)


def _settling(result: Comparison, c: Contrast, rate: float) -> Settling | None:
    tilts = result.tilts.get(c.metric)
    sums = None if tilts is None else tilts.against("kappa")
    if tilts is None or sums is None or c.estimator != TILTED["kappa"]:
        return None
    curve = differences(tilts.gains(sums, c.a, c.b))
    rows = result[c.a, c.metric, c.estimator].diagnostics.n
    spread = rows * float(curve.stderr[0]) ** 2  # S²
    if not math.isfinite(spread):
        return None
    ends = float(curve.value[0]), float(curve.value[-1])
    needed = tuple(impressions(spread, difference, rate) for difference in ends)
    return Settling(a=c.a, b=c.b, metric=c.metric, rate=rate, differences=ends, impressions=(needed[0], needed[1]))


def impressions(spread: float, difference: float, rate: float, power: float = POWER) -> int | None:
    """(z₀.₉₇₅ + z_power)²·S²/(q·Δ²); None where there is no difference."""
    from scipy.special import ndtri

    if difference == 0:
        return None
    quantiles = float(ndtri(1 - ALPHA / 2) + ndtri(power))
    return math.ceil(quantiles**2 * spread / (rate * difference**2))


def rounded(n: int) -> str:
    """A number to two digits, as its estimate is no better."""
    digits = max(0, len(str(n)) - 2)
    return f"{round(n, -digits):,}"
