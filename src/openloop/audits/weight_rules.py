"""Rules about the weights of an audit: where they rest on too little, the log decides nothing."""

from __future__ import annotations

from collections.abc import Iterator

from openloop.audits import rules
from openloop.audits.answers import Reason
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


WEIGHT_RULES = (by_rating, modelled, exposed, taken_as_known, unseen)
