"""What a verdict needs, by plain numbers: each rule yields reasons against it, with number and remedy.

They know nothing about logs or models, so whoever has the numbers decides by the same rules.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from openloop.audits.answers import Assumption, Reason
from openloop.estimators.stratified import COARSE_SHARE, COARSE_SPAN
from openloop.estimators.weighted import FEW_RELEVANT
from openloop.support.wording import chance, counted, percent

OVERLAP = (0.7, 1.4)  # of Σw/(U·I) over all scored rows
EFFECTIVE_ROWS, USERS = 100, 30
HEAVY = 0.1  # of Σw: no row may carry more
RHO, KAPPA = 1.5, 1.0  # up to which an order must hold
BASE = {"rho": 1.0, "kappa": 0.0}  # nothing beyond the propensities; all of popularity is liking
TELLING = 0.01  # beyond the base: an order that holds for less holds for nothing
CARRIED = 0.75  # of the way from the base to the 95 % limit: what is printed as safe
SAMPLE = 200  # ratings drawn at random that let balanced weights decide
UNSEEN = 0.05  # of the population, with ratings of which the log has no row
RARE_ROWS = 30  # items with fewer rows are rare
RARE_SHARE = 0.25  # of Σw: so much of it on rare items is worth leaving them out
OF_A_PAIR = ("one-user", "rho", "kappa", "untold", "same")  # reasons whose words name no models

# What may help, the cheapest first.
METRIC = "a metric that weights can debias, such as recall@10, dcg@10 or mae"
LIKED = "a metric that positives can tell: recall@k, adg or atop"
ESTIMATOR = "an estimator that corrects the selection, such as snips with propensities"
COUNTED = "the estimator snips, whose interval counts the sample's error, or refit=True"
PER_USER = "deciding which one counts: ask for the estimator snips_user without snips where it is users"
UNSEEING = "a model that has not seen the scored rows"
RARE = f"leaving out rare items, which carry the weights, by min_item_rows={RARE_ROWS}"
FEWER = "comparing fewer models: two of them, or all with one by baseline=NAME"
GIVEN = "other propensities: a column of the log, or another model fitted on it"
RATINGS = f"{SAMPLE} ratings of cells drawn at random, given to ol.propensity.Balanced(model).fit(log, uniform=sample)"
LONGER = "a longer log, with more users and rows"
EXPOSURE = "logging what was shown: exposure as a column of propensities, or some impressions shown at random"
ABOVE = "an estimator that lets items above matter, such as snrips, which needs the probabilities of prefixes"
TRUST = "sniips, which needs propensities, or affine, which allows for trust in what comes first"
SHUFFLED = "shuffling more requests, and logging which"
RANDOMISED = "showing some impressions at random and logging them, as what is never shown cannot be judged"
REMEDIES = (
    METRIC, LIKED, ESTIMATOR, COUNTED, PER_USER, UNSEEING, RARE, FEWER, GIVEN, RATINGS, ABOVE, TRUST, LONGER, EXPOSURE,
    SHUFFLED, RANDOMISED,
)  # fmt: skip


def cheapest(reasons: Sequence[Reason]) -> str:
    """The cheapest of the remedies, empty where there is none."""
    named = {reason.remedy for reason in reasons}
    return next((remedy for remedy in REMEDIES if remedy in named), "")


# -- overlap and support -------------------------------------------------------------------------------------


def overlap(mass: float | None, *, rare: float = 0.0) -> Iterator[Reason]:
    """Σw/(U·I) over all scored rows, None where p has no scale; `rare` is the share of Σw on rare items."""
    if mass is None or OVERLAP[0] <= mass <= OVERLAP[1]:
        return
    low = mass < OVERLAP[0]
    why = (
        "part of the population is hardly ever observed, or the propensities are too high"
        if low
        else "the propensities of the scored rows are too low"
    )
    yield Reason(
        code="overlap", value=mass, limit=OVERLAP[0] if low else OVERLAP[1],
        remedy=RARE if rare > RARE_SHARE else RANDOMISED if low else GIVEN,
        text=f"the weights add up to {mass:.3g} of the population, where {OVERLAP[0]} to {OVERLAP[1]} is needed: {why}",
    )  # fmt: skip


def support(
    users: int, rows: int, effective: float | None, largest: float | None, *, rare: float = 0.0
) -> Iterator[Reason]:
    """Enough users, enough rows after weighting, and no row that carries too much."""
    remedy = RARE if rare > RARE_SHARE else LONGER
    if users < USERS:
        has = "has rows that count" if users == 1 else "have rows that count"
        yield Reason(
            code="users", value=users, limit=USERS, remedy=LONGER,
            text=f"support too thin: {counted(users, 'user')} {has}, at least {USERS} are needed",
        )  # fmt: skip
    size = rows if effective is None else effective
    if size < EFFECTIVE_ROWS:
        count = f"{counted(rows, 'row')} {'counts' if rows == 1 else 'count'}"
        as_many = "" if effective is None else f" as {effective:.1f} after weighting"
        yield Reason(
            code="rows", value=size, limit=EFFECTIVE_ROWS, remedy=remedy,
            text=f"support too thin: {count}{as_many}, at least {EFFECTIVE_ROWS} are needed",
        )  # fmt: skip
    if largest is not None and largest > HEAVY:
        yield Reason(
            code="heavy-row", value=largest, limit=HEAVY, remedy=remedy,
            text=f"support too thin: one row carries {percent(largest)} of all weight, at most {percent(HEAVY)} may be",
        )  # fmt: skip


def corrected(kept: float | None, coarse: float | None, relevant: float | None) -> Iterator[Reason]:
    """Whether an estimator corrects the selection, by what it has of these.

    Σ of cut weights over Σw, the share of coarse strata, and the relevant rows of the median user, whose own ratio is
    one of weights to each other.
    """
    if kept is not None and kept < OVERLAP[0]:
        yield Reason(
            code="clipped", value=kept, limit=OVERLAP[0], remedy=ESTIMATOR,
            text=f"clipping leaves {percent(kept)} of the weight, at least {percent(OVERLAP[0])} is needed: with less "
            "the rows count nearly alike, as in a plain average",
        )  # fmt: skip
    if coarse is not None and coarse > COARSE_SHARE:
        yield Reason(
            code="coarse", value=coarse, limit=COARSE_SHARE, remedy=ESTIMATOR,
            text=f"{percent(coarse)} of the population is in strata inside which propensities differ by more than a "
            f"factor of {COARSE_SPAN:g}, and rows count alike there, as in a plain average",
        )  # fmt: skip
    if relevant is not None and relevant < FEW_RELEVANT:
        yield Reason(
            code="few-relevant", value=relevant, limit=FEW_RELEVANT, remedy=ESTIMATOR,
            text=f"the median user has {relevant:g} relevant rows, at least {FEW_RELEVANT} are needed: with fewer a "
            "user's own ratio is nearly the plain average",
        )  # fmt: skip


def influential(holm_without: float | None, level: float) -> Iterator[Reason]:
    """The adjusted p-value without the most influential user; None where it is not known."""
    if holm_without is None or holm_without < 1 - level:
        return
    yield Reason(
        code="one-user", value=holm_without, limit=1 - level, remedy=LONGER,
        text=f"it rests on one user: without the most influential one it is not significant (Holm p "
        f"{chance(holm_without)})",
    )  # fmt: skip


# -- assumptions ---------------------------------------------------------------------------------------------


def assumption(name: str, flips_at: float | None, limit: float | None) -> Assumption | None:
    """What an order rests on by ρ or κ; None where that is not known. `limit`: where the interval first covers 0."""
    if limit is None or name not in BASE:
        return None
    base, required = BASE[name], RHO if name == "rho" else KAPPA
    return Assumption(
        name="rho" if name == "rho" else "kappa", required=required,
        holds_to=base + CARRIED * (limit - base), flips_at=math.inf if flips_at is None else flips_at,
    )  # fmt: skip


def blind(rho: float | None, rho_low: float | None) -> Iterator[Reason]:
    """Propensities that do not see the rating: the order must hold while ratings matter, for ρ in [1, 1.5]."""
    if rho_low is None:
        yield Reason(
            code="rho", limit=RHO, remedy=RATINGS,
            text="the propensities do not see the rating, and how far that could turn the order is not known here",
        )  # fmt: skip
    elif rho_low < RHO:
        yield Reason(code="rho", value=rho_low, limit=RHO, remedy=RATINGS, text=_rho_words(rho, rho_low))


def _rho_words(rho: float | None, rho_low: float) -> str:
    where = (
        "is no longer significant" if rho is None or math.isinf(rho) else f"turns near {rho:.2f} times, and may turn"
    )
    return (
        "the propensities do not see the rating: the order must hold while a rating one star higher makes being "
        f"observed {RHO:g} times likelier than they say, and it {where} from {rho_low:.2f} times on"
    )


def clicks(kappa: float | None, kappa_low: float | None) -> Iterator[Reason]:
    """A log of positives without exposure: the order must hold whatever share of popularity is exposure."""
    if kappa_low is None:
        yield Reason(
            code="kappa", limit=KAPPA, remedy=EXPOSURE,
            text="this log has positives only, and how far popularity is exposure could not be tried here",
        )  # fmt: skip
    elif kappa_low <= KAPPA:
        yield Reason(code="kappa", value=kappa_low, limit=KAPPA, remedy=EXPOSURE, text=_kappa_words(kappa, kappa_low))


def _kappa_words(kappa: float | None, kappa_low: float) -> str:
    turns = kappa is not None and not math.isinf(kappa)
    where = f"flips near {percent(kappa)}, and may flip" if turns and kappa is not None else "is no longer significant"
    return (
        "this log has positives only, which cannot tell popularity that is exposure from popularity that is liking: "
        f"the order must hold for any share, and it {where} when more than {percent(kappa_low)} of popularity is "
        "exposure"
    )
