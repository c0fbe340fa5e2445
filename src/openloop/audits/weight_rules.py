"""Rules about the weights of an audit: where they rest on too little, the log decides nothing."""

from __future__ import annotations

import math
from collections.abc import Iterator

from openloop.audits import rules
from openloop.audits.answers import Reason
from openloop.audits.contrasts import Contrast
from openloop.audits.evidence import Evidence
from openloop.support.wording import percent


def by_rating(found: Evidence) -> Iterator[Reason]:
    """Weights by the rating alone are nearly constant among relevant rows."""
    if found.ranked and found.basis.by_rating:
        yield Reason(
            code="by-rating", remedy=rules.RATINGS,
            text="the propensities depend on the rating alone, which leaves rankings nearly unweighted",
        )  # fmt: skip


def modelled(found: Evidence) -> Iterator[Reason]:
    """Propensities of a joint model: two models that fit a log alike may say the opposite of what it lacks."""
    if found.basis.modelled:
        yield Reason(
            code="modelled", remedy=rules.RATINGS,
            text="how the propensities depend on the rating comes from the form of a joint model, which the log cannot "
            "check",
        )  # fmt: skip


def exposed(found: Evidence) -> Iterator[Reason]:
    """Propensities fitted on positives, whose weights divide the liking out; one p for all cells divides nothing."""
    if found.liked and found.basis.blind and not found.evenly_weighted:
        yield Reason(
            code="exposure", remedy=rules.EXPOSURE,
            text="no scored rating is below the threshold, so propensities fitted on the log are the chance of being "
            "shown and liked",
        )  # fmt: skip


def taken_as_known(found: Evidence) -> Iterator[Reason]:
    """Propensities from a small sample, whose error the interval leaves out."""
    taken = found.result[found.result.models[0], *found.family].p_taken
    if found.basis.sample is not None and taken == "known":
        drawn = f"{found.basis.sample:,} ratings" if found.basis.sample else "ratings"
        yield Reason(
            code="taken-as-known", value=found.basis.sample,
            remedy=rules.MODEL if found.estimator == "snips" else rules.COUNTED,
            text=f"the propensities come from {drawn} drawn at random, and the interval of {found.estimator} leaves "
            "their error out",
        )  # fmt: skip


def unseen(found: Evidence) -> Iterator[Reason]:
    """Ratings that the sample has and the log has not."""
    if found.basis.unseen > rules.UNSEEN:
        yield Reason(
            code="unseen-ratings", value=found.basis.unseen, limit=rules.UNSEEN, remedy=rules.RANDOMISED,
            text=f"{percent(found.basis.unseen)} of the population has ratings of which the log has no row",
        )  # fmt: skip


def cut(found: Evidence, c: Contrast) -> Iterator[Reason]:
    """Weights that a cap or a floor cuts: what it cuts off may be where the other model is better."""
    kept = found.seen().kept_weight
    nearest = max(0.0, c.low, -c.high)
    yield from rules.cut_off(kept, nearest, _size(found, c))


def _size(found: Evidence, c: Contrast) -> float | None:
    """M = Σw|d|/Σw of two models' rows; a bound of it where their sums are not known, None without any."""
    tilts = found.result.tilts.get(c.metric)
    parts = None if tilts is None else tilts.parts_of(c.a, c.b)
    sums = None if tilts is None else tilts.against("rho")
    if parts is not None and sums is not None:
        # w = a + b: Σw|d| of the sums D = Σad, A = Σbd₊ and B = Σbd₋, where few cells are sure to be seen
        fixed, positive, negative = parts.sum(axis=0)
        return float((abs(fixed) + positive + negative) / sums.sums[:, 0, 0].sum())
    spreads = [found.result[m, *found.family].diagnostics.loss_variance for m in (c.a, c.b)]
    if any(spread is None for spread in spreads):
        return None
    # M ≤ √(Σwd²/Σw) ≤ S_a + S_b + |θ|; rmse_a − rmse_b = (mse_a − mse_b)/(rmse_a + rmse_b)
    bound = sum(math.sqrt(spread) for spread in spreads if spread is not None)
    values = [found.result[m, *found.family] for m in (c.a, c.b)]
    return bound / sum(e.value for e in values) + abs(c.value) if values[0].root else bound + abs(c.value)


WEIGHT_RULES = (by_rating, modelled, exposed, taken_as_known, unseen)
