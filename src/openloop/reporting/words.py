"""Numbers and names in words: formats, and one line on each metric and estimator."""

from __future__ import annotations

import math
from datetime import datetime

from openloop.audits.contrasts import Contrast
from openloop.core.comparison import Comparison
from openloop.metrics.ranking import PERSISTENCE

POINT = 1e-9  # of the value: an interval below it is the rounding of sums
METRICS = {
    "mae": "mean absolute difference between rating and prediction, over all user-item cells",
    "mse": "mean squared difference between rating and prediction, over all user-item cells",
    "rmse": "square root of mse",
    "accuracy": "share of all cells whose prediction rounds to the rating",
    "dcg": "rating of each item, discounted by 1/log2(1 + rank), summed over a user's items",
    "rbp": "chance that the item a user looks at is relevant, where each look is followed by another with probability "
    "p: (1 − p)·p^(rank − 1), summed over a user's relevant items",
    "prec": "mean rating of the top k",
    "precision": "share of the top k that is relevant; it divides by k however few relevant items there are",
    "cg": "mean rating of what a 0/1 matrix with a budget of k recommends",
    "adg": "mean discount 1/log2(1 + rank) of a user's relevant items",
    "atop": "area under the recall curve: how near the top a user's relevant items are",
    "recall": "share of a user's relevant items in the top k",
    "ndcg": "discounted gain of a user's relevant items, divided by that of an ideal order; the ideal lacks items that "
    "were not observed, and no weights correct that",
    "map": "mean over a user's relevant items of the precision at their ranks",
    "mrr": "1/rank of a user's first relevant item",
    "hit": "share of users with a relevant item in the top k",
    "clicks": "expected clicks (or other reward) per request under the model",
    "ctr": "expected clicks per position shown",
    "auc": "chance that a relevant item ranks above another candidate",
    "coverage": "share of all items that are in at least one list",
    "gini": "how unevenly items are listed: 0 where all are listed equally often, near 1 where all users get one list",
    "popularity": "share of users who have a row of the listed item, averaged over each list and over users",
    "novelty": "−log2 of the listed item's popularity, in bits, averaged likewise; an item without rows counts as if "
    "it had one",
    "new": "share of listed items without rows",
    "similarity": "cosine of the covariates of two items of a list, averaged over pairs and over users",
    "overlap": "share of listed items that the running model lists for the same user, too",
}

ESTIMATORS = {
    "naive": "plain average over what was observed; it rewards models that copy the system that made the log",
    "ips": "rows weighted by 1/p, divided by the whole population; unbiased when the propensities are right",
    "snips": "rows weighted by 1/p, divided by the sum of the weights; less variance, and the scale of p does not "
    "matter. For recall, adg and atop it averages over relevant items, as stratified does; naive averages over users",
    "snips_user": "each user's own weighted ratio, averaged over users",
    "clipped": "as ips, with weights cut at a cap: less variance for some bias",
    "dr": "imputed losses everywhere, corrected by the weighted residuals of observed rows",
    "stratified": "means inside strata of propensity, combined by the strata's shares of the population: snips "
    "with weights averaged inside strata",
    "snpbm": "clicks weighted by the examination of the item's position in the model's list over that of its logged "
    "position, and normalised by examination; right when a click is examination times attraction",
    "sniips": "rows that the model shows at the same position, weighted by 1/π0 and divided by the sum of weights; "
    "right when a click depends on the item and its position",
    "snrips": "rows at and above which the model's list equals the logged one, weighted by 1/π0 of that part; right "
    "when a click depends on the items at or above it",
    "snsips": "requests for which the model shows the same list, weighted by 1/π0 of it; right whatever clicks depend "
    "on",
    "pi": "pseudo-inverse (Swaminathan et al., 2017), from shuffled requests; right when the reward of a list is a sum "
    "over its slots",
    "pbm": "as snpbm, divided by the number of requests",
    "iips": "as sniips, divided by the number of requests",
    "rips": "as snrips, divided by the number of requests",
    "sips": "as snsips, divided by the number of requests",
    "affine": "as pbm, with an offset for trust in what comes first",
    "ips_eq3": "Eq. 3 of Jadidinejad et al. (2021) as printed",
}


def number(value: float | None, digits: int = 4) -> str:
    """Four significant digits; a dash for what is missing or not finite."""
    if value is None or math.isnan(value):
        return "–"
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    return minus(f"{value:,.0f}" if abs(value) >= 10**digits else f"{value:,.{digits}g}")


def signed(value: float) -> str:
    """With its sign, a true minus."""
    return f"+{number(value)}" if value > 0 else number(value)


def minus(text: str) -> str:
    """A hyphen before a digit becomes a minus."""
    return text.replace("-", "−")


def span(low: float, high: float, decimals: int | None = None) -> str:
    """The limits of an interval."""
    return " … ".join(number(x) if decimals is None else fixed(x, decimals) for x in (low, high))


def fixed(value: float, decimals: int) -> str:
    """With so many decimals; a negative number of them rounds to tens and hundreds."""
    if not math.isfinite(value):
        return number(value)
    return minus(f"{round(value, decimals) + 0.0:,.{max(0, decimals)}f}")


def decimals_of(low: float, high: float) -> int | None:
    """As many decimals as an interval supports: two digits of its half-width; None for a point.

    A point may have a width by rounding alone.
    """
    half = (high - low) / 2
    wide = math.isfinite(half) and half > POINT * max(abs(low), abs(high))
    return 1 - math.floor(math.log10(half)) if wide else None


def rounded(value: float, low: float, high: float, *, sign: bool = False) -> tuple[str, str]:
    """A value and its interval, rounded alike."""
    decimals = decimals_of(low, high)
    text = number(value) if decimals is None else fixed(value, decimals)
    return f"+{text}" if sign and value > 0 else text, span(low, high, decimals)


def moment(created: str) -> str:
    """A date and time as people write it; what is not one stays as it is."""
    try:
        found = datetime.fromisoformat(created)
    except ValueError:
        return created
    return f"{found:%Y-%m-%d %H:%M} {found.tzname() or ''}".strip()


def direction(result: Comparison, metric: str) -> str:
    """Which way is better: "lower" or "higher"."""
    return result.better.get(metric, "higher")


def outcome(c: Contrast) -> str:
    """What a contrast says, names first."""
    if c.better is None:
        return f"{c.a} and {c.b} do not differ significantly"
    (other,) = c.models - {c.better}
    return f"{c.better} is ahead of {other}"


def about_metric(name: str) -> str:
    """One line on a metric, empty for one that is not ours."""
    stem, _, rest = name.partition("@")
    k = rest.partition(":")[0]  # after which a metric of lists names a model
    stem, _, p = stem.partition(":")
    text = METRICS.get(stem, "")
    if stem == "rbp":
        return f"{text} (p = {p or PERSISTENCE})"
    return f"{text} (k = {k})" if k and text else text


def about_estimator(name: str) -> str:
    """One line on an estimator, empty for one that is not ours."""
    stem, _, rest = name.partition("@")
    text = ESTIMATORS.get(stem, "")
    if not rest or not text:
        return text
    kind = "the cap is" if stem == "clipped" else "strata:"
    return f"{text} ({kind} {rest.replace(':', ', ')})"
