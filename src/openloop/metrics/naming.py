"""Metrics by name, `metric("ndcg@10")`, and your own, `@metric("halving", on="rank", better="higher")`.

A canonical name parses back to the same metric; one of your own is the object, which no name leads to.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, overload

from openloop.core.lists import ListMetric
from openloop.core.metric import Metric
from openloop.errors import NameFormatError, did_you_mean, quoted
from openloop.metrics import lists, ranking, rating
from openloop.metrics.custom import Better, On, Per, decorated
from openloop.support.arguments import is_count

PLAIN: dict[str, Metric] = {
    "mae": rating.mae,
    "mse": rating.mse,
    "rmse": rating.rmse,
    "accuracy": rating.accuracy,
    "dcg": ranking.discounted_gain(),
    "rbp": ranking.rank_biased_precision(),
    "adg": ranking.average_discounted_gain(),
    "atop": ranking.area_under_top(),
    "ndcg": ranking.normalised_gain(),
    "map": ranking.average_precision(),
    "mrr": ranking.reciprocal_rank(),
    "auc": ranking.area_under_curve(),
}
AT_K: dict[str, Callable[[int], Metric]] = {
    "dcg": ranking.discounted_gain,
    "prec": ranking.mean_rating,
    "cg": rating.cumulative_gain,
    "recall": ranking.recall,
    "precision": ranking.precision,
    "ndcg": ranking.normalised_gain,
    "hit": ranking.hit,
}
LIST_METRICS = (
    lists.coverage, lists.gini, lists.popularity, lists.novelty, lists.new, lists.similarity, lists.overlap
)  # fmt: skip
OF_LISTS: dict[str, Callable[[int], ListMetric]] = {maker.__name__: maker for maker in LIST_METRICS}
NAMES = (*PLAIN, "rbp:p", *(f"{name}@k" for name in (*AT_K, *OF_LISTS)))


@overload
def metric(name: str | Metric) -> Metric: ...


@overload
def metric(name: str, *, on: On, better: Better, per: Per | None = None) -> Callable[[Callable[..., Any]], Metric]: ...


def metric(
    name: str | Metric, *, on: On | None = None, better: Better | None = None, per: Per | None = None
) -> Metric | Callable[[Callable[..., Any]], Metric]:
    """The metric of a name, or a decorator that makes a metric of your own function.

    Without keywords it finds a metric of the library. With `on` and `better` it decorates a function. A function of the
    rank takes an array of 1-based ranks, and ties count as their expectation over random order. A name that ends in @k
    declares that it is 0 beyond rank k. A function of the prediction takes rating and prediction, and is averaged over
    all cells, as in mae.

    Args:
        name: A name such as "mae" or "ndcg@10", or the name of your own metric. A Metric is returned as it is.
        on: What your function looks at: "rank" or "prediction".
        better: Which values are better: "higher" or "lower".
        per: How your function of the rank is averaged. "user" (default): a user's value is the mean of f(rank) over its
            relevant items, as in adg and recall@k. "cell": f(rank) is summed over a user's relevant items, as in dcg
            and rbp.

    Returns:
        The metric, or the decorator.

    Raises:
        NameFormatError: No metric has that name, or yours is taken.

    Examples:
        >>> ol.metric("recall@10")
        Metric('recall@10')
        >>> @ol.metric("halving", on="rank", better="higher")
        ... def halving(rank):
        ...     return 0.5**rank
        >>> halving.kind
        'user'
    """
    if on is not None or better is not None or per is not None:
        return decorated(name, on, better, per, is_known=_is_known)
    known_metric = any_metric(name)
    if isinstance(known_metric, ListMetric):
        raise NameFormatError(
            f"metric {quoted(known_metric.name)} describes lists, and says nothing of how good they are; ask for it in "
            "metrics= of ol.evaluate or ol.audit."
        )
    return known_metric


def any_metric(name: str | Metric | ListMetric) -> Metric | ListMetric:
    """The metric of that name, one of lists such as "coverage@10" included; a metric is returned as it is."""
    if isinstance(name, Metric | ListMetric):
        return name
    if not isinstance(name, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise NameFormatError(f'metric {quoted(name)}: give its name, such as "ndcg@10", or a Metric.')
    stem, sign, cut = name.strip().lower().partition("@")
    if sign and stem == "overlap" and ":" in cut:
        cut, _, _ = cut.partition(":")
        return lists.overlap(_cut(name, cut), name.strip().partition(":")[2])
    if sign and (maker := (AT_K | OF_LISTS).get(stem)) is not None:
        return maker(_cut(name, cut))
    if not sign and stem in PLAIN:
        return PLAIN[stem]
    if stem.startswith("rbp:"):
        return ranking.rank_biased_precision(_persistence(name))
    raise NameFormatError(f"metric {quoted(name)} is not known.{did_you_mean(name, NAMES)}")


def _is_known(name: str) -> bool:
    """Whether a name is one of ours, with any parameters."""
    return name.partition("@")[0].partition(":")[0] in {*PLAIN, *AT_K, *OF_LISTS}


def _cut(name: str, text: str) -> int:
    """The k of name@k."""
    if not is_count(text):
        raise NameFormatError(
            f"metric {quoted(name)}: what follows @ must be a whole number of at least 1, and below 2³¹, got "
            f"{quoted(text)}."
        )
    return int(text)


def _persistence(name: str) -> float:
    """The p of rbp:p."""
    text = name.partition(":")[2].strip()
    try:
        p = float(text)
    except ValueError:
        p = math.nan
    if not 0 < p < 1:
        raise NameFormatError(
            f"metric {quoted(name)}: what follows the colon is the persistence, strictly between 0 and 1, got "
            f"{quoted(text)}; rbp alone has 0.8."
        )
    return p
