"""What a verdict needs, by plain numbers: each rule yields reasons against it, with number and remedy.

They know nothing about logs or models: the same numbers get the same decision.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from openloop.audits.answers import Assumed, Assumption, Reason
from openloop.estimators.stratified import COARSE_SHARE, COARSE_SPAN
from openloop.estimators.weighted import FEW_RELEVANT
from openloop.support.wording import chance, counted, percent

OVERLAP = (0.7, 1.4)  # of Σw/(U·I) over all scored rows
EFFECTIVE_ROWS, USERS = 100, 30
HEAVY = 0.1  # of Σw: no row may carry more
RHO, KAPPA, GAMMA = 1.5, 1.0, 1.1
REQUIRED: Mapping[Assumed, float] = {"rho": RHO, "kappa": KAPPA, "gamma": GAMMA}  # up to which an order must hold
# Nothing beyond the propensities; all of popularity is liking; no propensity is off.
BASE: Mapping[Assumed, float] = {"rho": 1.0, "kappa": 0.0, "gamma": 1.0}
TELLING = 0.01  # beyond the base: an order that holds for less does not count
CARRIED = 0.75  # of the way from the base to the 95 % limit: what is printed as safe
SAMPLE = 200  # ratings drawn at random that let balanced weights decide
UNSEEN = 0.05  # of the population, with ratings of which the log has no row
CUT = 1e-6  # of the weight: what a cap or a floor may cut off without a word
RARE_ROWS = 30  # items with fewer rows are rare
DROPPED = 0.05  # of the rows: if more are left out, the audit answers another question
RARE_SHARE = 0.25  # of Σw: so much of it on rare items is worth leaving them out
OF_A_PAIR = ("one-user", "cut", "rho", "kappa", "gamma", "untold", "same")  # reasons whose words name no models

# What may help, the cheapest first.
METRIC = "a metric that weights can debias, such as recall@10, dcg@10 or mae"
LIKED = "a metric that is defined on positives: recall@k, adg or atop"
ESTIMATOR = "an estimator that corrects for selection, such as snips with propensities"
OURS = "an estimator of the library beside yours, such as snips; the verdict then rests on it"
UNCUT = "less clipping: a lower floor of the propensities, or the estimator snips instead of clipped"
MODEL = "the fitted model instead of its column, on a log read by ol.read: intervals then include the sample's error"
COUNTED = "the estimator snips, whose interval includes the sample's error, or errors=ol.Refit()"
PER_USER = "deciding whether users or relevant items count once: for users, ask for snips_user without snips"
PREDICTED = "predictions of the rows that lack one, from every model"
UNSEEING = "a model that has not seen the scored rows"
RARE = f"leaving out rare items, which carry much of the weight, by min_item_rows={RARE_ROWS}"
FEWER = "comparing fewer models: two, or all others with one by baseline=NAME"
GIVEN = "other propensities: a column of the log, or another model fitted on it"
RATINGS = f"{SAMPLE} ratings of cells drawn at random, given to ol.propensity.Balanced(model).fit(log, uniform=sample)"
LONGER = "a longer log, with more users and rows"
EXPOSURE = "logging what was shown: exposure as a column of propensities, or some impressions shown at random"
ABOVE = "an estimator that allows items above to matter, such as snrips, which needs the probabilities of prefixes"
TRUST = "sniips, which needs propensities, or affine, which allows for trust bias"
CHECKED = "reading the log with ol.read, and with time= if ranks change over time, which makes the check possible"
COMPLETE = "logging every row that was shown, also without a click"
SHOWN = 'asking what reordering the shown items would earn, candidates="shown"'
POSITIONED = "logging the probability of each item at its position, which an audit reads as propensities"
SHUFFLED = "shuffling more requests, and logging which"
RANDOMISED = "showing some impressions at random and logging them: what is never shown cannot be judged"
REMEDIES = (
    METRIC, LIKED, OURS, ESTIMATOR, UNCUT, COUNTED, MODEL, PER_USER, PREDICTED, UNSEEING, RARE, FEWER, GIVEN, RATINGS,
    CHECKED, COMPLETE, SHOWN, POSITIONED, ABOVE, TRUST, LONGER, EXPOSURE, SHUFFLED, RANDOMISED,
)  # fmt: skip


def cheapest(reasons: Sequence[Reason]) -> str:
    """The cheapest of the remedies, empty where there is none."""
    named = {reason.remedy for reason in reasons}
    return next((remedy for remedy in REMEDIES if remedy in named), "")


# -- overlap and support -------------------------------------------------------------------------------------


def unfit() -> Iterator[Reason]:
    """Propensities that a check on held-out cells refutes."""
    text = "the propensity model predicts held-out cells worse than a constant"
    yield Reason(code="doubt", text=text, remedy=GIVEN)


def dropped(share: float) -> Iterator[Reason]:
    """Rows that were left out because some model does not predict them."""
    if share > DROPPED:
        text = f"{percent(share)} of the rows were dropped because some model does not predict them"
        yield Reason(code="dropped", value=share, limit=DROPPED, text=text, remedy=PREDICTED)


def filled(models: tuple[str, str], share: float) -> Iterator[Reason]:
    """Rows that the model behind does not predict, and that count as its furthest error; the first model is ahead."""
    if share > DROPPED:
        a, b = models
        yield Reason(
            code="filled", value=share, limit=DROPPED, remedy=PREDICTED,
            text=f"{b} does not predict {percent(share)} of the rows, which count as its furthest error, and {a} may "
            "be ahead because of them alone",
        )  # fmt: skip


def overlap(mass: float | None, *, rare: float = 0.0) -> Iterator[Reason]:
    """Σw/(U·I) over all scored rows, None where p has no scale; `rare` is the share of Σw on rare items."""
    if mass is None or OVERLAP[0] <= mass <= OVERLAP[1]:
        return
    low = mass < OVERLAP[0]
    why = (
        "part of the population is almost never observed, or the propensities are too high"
        if low
        else "the propensities of the scored rows are too low"
    )
    yield Reason(
        code="overlap", value=mass, limit=OVERLAP[0] if low else OVERLAP[1],
        remedy=RARE if rare > RARE_SHARE else RANDOMISED if low else GIVEN,
        text=f"the weights add up to {mass:.3g} of the population, and {OVERLAP[0]} to {OVERLAP[1]} is needed: {why}",
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
            text=f"support too thin: one row carries {percent(largest)} of all weight, more than {percent(HEAVY)}",
        )  # fmt: skip


def corrected(kept: float | None, coarse: float | None, relevant: float | None) -> Iterator[Reason]:
    """Whether an estimator corrects for selection, by the facts that it has.

    Σ of cut weights over Σ1/p, the share of coarse strata, and the relevant rows of the median user, whose own ratio
    only compares its weights with each other.
    """
    if kept is not None and kept < OVERLAP[0]:
        yield Reason(
            code="clipped", value=kept, limit=OVERLAP[0], remedy=UNCUT,
            text=f"clipping keeps {percent(kept)} of the weight, and at least {percent(OVERLAP[0])} is needed: with "
            "less, rows count nearly equally, as in a plain average",
        )  # fmt: skip
    if coarse is not None and coarse > COARSE_SHARE:
        yield Reason(
            code="coarse", value=coarse, limit=COARSE_SHARE, remedy=ESTIMATOR,
            text=f"{percent(coarse)} of the population is in strata whose propensities differ by more than a factor of "
            f"{COARSE_SPAN:g}, and rows count equally there, as in a plain average",
        )  # fmt: skip
    if relevant is not None and relevant < FEW_RELEVANT:
        yield Reason(
            code="few-relevant", value=relevant, limit=FEW_RELEVANT, remedy=ESTIMATOR,
            text=f"the median user has {relevant:g} relevant rows, and at least {FEW_RELEVANT} are needed: with fewer, "
            "a user's ratio is nearly the plain average",
        )  # fmt: skip


def cut_off(kept: float | None, limit: float, size: float | None) -> Iterator[Reason]:
    """Whether the rows whose weights a cap or a floor cuts could turn a difference θ, were their weights whole.

    `kept` is K, the sum of the weights over Σ1/p, `limit` the limit of |θ| nearest to 0, and `size` M = Σw|d|/Σw, the
    mean absolute difference of rows. Uncut, the difference is K·θ + (1 − K)·d̄, where d̄ is the mean over the weight that
    was cut, and d̄ ≥ −M if those rows differ as much as the others do. So K·θ must exceed (1 − K)·M. (With equal models
    and floors that kept 90 to 95 % of the weight, 13 to 56 % of logs gave a verdict without this rule.)
    """
    if kept is None or kept >= 1.0 - CUT or kept < OVERLAP[0]:  # with less, nothing is decided anyway
        return
    if size is None or not kept * limit > (1.0 - kept) * size:
        need = None if size is None else (1.0 - kept) / kept * size
        yield Reason(
            code="cut", value=limit, limit=need, remedy=UNCUT,
            text=f"clipping keeps {percent(kept)} of the weight, and the rows that lose the rest could reverse the "
            "order if they differ as much as the others do",
        )  # fmt: skip


def influential(holm_without: float | None, level: float) -> Iterator[Reason]:
    """The adjusted p-value without the most influential user; None where it is not known."""
    if holm_without is None or holm_without < 1 - level:
        return
    yield Reason(
        code="one-user", value=holm_without, limit=1 - level, remedy=LONGER,
        text=f"it rests on one user: without that user the difference is not significant (Holm p "
        f"{chance(holm_without)})",
    )  # fmt: skip


# -- assumptions ---------------------------------------------------------------------------------------------


def assumption(name: Assumed, flips_at: float | None, limit: float | None) -> Assumption | None:
    """What an order rests on by ρ, κ or Γ; None where that is not known. `limit`: where the interval first covers 0."""
    if limit is None:
        return None
    base = BASE[name]
    return Assumption(
        name=name, required=REQUIRED[name],
        holds_to=base + CARRIED * (limit - base), flips_at=math.inf if flips_at is None else flips_at,
    )  # fmt: skip


def carried(given: Assumption) -> float:
    """How much of what a verdict needs an order holds: 0 nothing, 1 all of it."""
    base = BASE[given.name]
    return (given.holds_to - base) / (given.required - base)


def blind(rho: float | None, rho_low: float | None) -> Iterator[Reason]:
    """Propensities that do not see the rating: the order must hold while ratings matter, for ρ in [1, 1.5]."""
    if rho_low is None:
        yield Reason(
            code="rho", limit=RHO, remedy=RATINGS,
            text="the propensities ignore the rating, and how far that could reverse the order is unknown here",
        )  # fmt: skip
    elif rho_low < RHO:
        yield Reason(code="rho", value=rho_low, limit=RHO, remedy=RATINGS, text=_rho_words(rho, rho_low))


def _rho_words(rho: float | None, rho_low: float) -> str:
    where = (
        "is no longer significant"
        if rho is None or math.isinf(rho)
        else f"reverses near {rho:.2f} times, and may reverse"
    )
    return (
        "the propensities ignore the rating: the order must hold even if each extra star makes being observed "
        f"{RHO:g} times likelier than they say, and it {where} from {rho_low:.2f} times on"
    )


def fitted(gamma: float | None, gamma_low: float | None) -> Iterator[Reason]:
    """A ranking by propensities that were fitted blind to the rating: its order must hold while they are a bit off.

    Ratings hardly matter among relevant rows, so ρ says little of rankings. (On MovieLens, where ratings mattered up
    to 1.5 a star, Γ*₉₅ was below 1.1 in all 9 wrong verdicts by Logistic and Popularity, and in 15 of 97 right ones.)
    """
    if gamma_low is None:
        yield Reason(
            code="gamma", limit=GAMMA, remedy=RATINGS,
            text="the propensities were fitted to the log, and how far off they may be is unknown here",
        )  # fmt: skip
    elif gamma_low < GAMMA:
        turns = "is no longer significant" if gamma is None or math.isinf(gamma) else f"reverses near {gamma:.2f} times"
        yield Reason(
            code="gamma", value=gamma_low, limit=GAMMA, remedy=RATINGS,
            text=f"the propensities were fitted to the log: the order of rankings must hold even if they are off by "
            f"up to {GAMMA:g} times; it {turns}, and may reverse from {gamma_low:.2f} times on",
        )  # fmt: skip


def lists(
    models: tuple[str, str], values: tuple[float, float], listed: tuple[float, float], *, odds: bool, balanced: bool
) -> Iterator[Reason]:
    """Two lists as the weighted log holds them: the values of two models, and those if everything were liked.

    With right weights the latter are equal. Where the model ahead leads by them as much as among what is liked, the
    lead may be that its list was shown more. By `odds`, where values are shares. (Of wrong verdicts on rankings of
    MovieLens this caught 11 of 11 by balanced weights and 16 of 16 by low rank, of right ones 1 of 97 and none of 81.)
    """
    (a, b), liked, seen = models, _times_more(*values, odds=odds), _times_more(*listed, odds=odds)
    if seen < liked:
        return
    yield Reason(
        code="lists", value=seen, limit=liked, remedy=EXPOSURE if balanced else RATINGS,
        text=f"under these weights {a}'s list was seen {seen:.2f} times as often as {b}'s (1 would be right), and its "
        f"liked items {liked:.2f} times as often: {a} may be ahead only because its list was shown more",
    )  # fmt: skip


def unlike_lists() -> Iterator[Reason]:
    """A sum over a user's items whose gain does not begin at 0: what is liked cannot be told from what is listed."""
    yield Reason(
        code="lists", remedy=METRIC,
        text="the metric's least gain is not 0, so the log cannot tell whether these weights treat both lists equally",
    )  # fmt: skip


def _times_more(a: float, b: float, *, odds: bool) -> float:
    top, bottom = (a * (1.0 - b), b * (1.0 - a)) if odds else (a, b)
    return top / bottom if bottom else math.inf


def clicks(kappa: float | None, kappa_low: float | None) -> Iterator[Reason]:
    """A log of positives without exposure: the order must hold for any share of popularity that is exposure."""
    if kappa_low is None:
        yield Reason(
            code="kappa", limit=KAPPA, remedy=EXPOSURE,
            text="this log has positives only, and the share of popularity that is exposure could not be varied here",
        )  # fmt: skip
    elif kappa_low <= KAPPA:
        yield Reason(code="kappa", value=kappa_low, limit=KAPPA, remedy=EXPOSURE, text=_kappa_words(kappa, kappa_low))


def _kappa_words(kappa: float | None, kappa_low: float) -> str:
    where = "is no longer significant"
    if kappa is not None and not math.isinf(kappa):
        where = f"reverses near {percent(kappa)}, and may reverse"
    return (
        "this log has positives only, so it cannot separate exposure from liking: the order must hold for any share of "
        f"popularity that is exposure, and it {where} above {percent(kappa_low)}"
    )
