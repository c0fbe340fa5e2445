"""Metrics by name: `metric("ndcg@10")`; a canonical name parses back to the same metric."""

from __future__ import annotations

import math
from collections.abc import Callable

from openloop.core.metric import Metric
from openloop.errors import NameFormatError, did_you_mean
from openloop.metrics import ranking, rating

PLAIN: dict[str, Callable[[], Metric]] = {
    "mae": lambda: rating.mae,
    "mse": lambda: rating.mse,
    "rmse": lambda: rating.rmse,
    "accuracy": lambda: rating.accuracy,
    "dcg": ranking.discounted_gain,
    "rbp": ranking.rank_biased_precision,
    "adg": ranking.average_discounted_gain,
    "atop": ranking.area_under_top,
    "ndcg": ranking.normalised_gain,
    "map": ranking.average_precision,
    "mrr": ranking.reciprocal_rank,
    "auc": ranking.area_under_curve,
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
NAMES = (*PLAIN, "rbp:p", *(f"{name}@k" for name in AT_K))


def metric(name: str | Metric) -> Metric:
    """The metric of that name, such as "mae" or "ndcg@10"; a Metric is returned as it is."""
    if isinstance(name, Metric):
        return name
    if not isinstance(name, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise NameFormatError(f'metric {name!r}: give its name, such as "ndcg@10", or a Metric.')
    stem, at, cut = name.strip().lower().partition("@")
    if at and stem in AT_K:
        if not cut.isascii() or not cut.isdigit() or int(cut) < 1:
            raise NameFormatError(f"metric {name!r}: what follows @ must be a whole number of at least 1, got {cut!r}.")
        return AT_K[stem](int(cut))
    if not at and stem in PLAIN:
        return PLAIN[stem]()
    if stem.startswith("rbp:"):
        return ranking.rank_biased_precision(_persistence(name))
    raise NameFormatError(f"metric {name!r} is not known.{did_you_mean(name, NAMES)}")


def _persistence(name: str) -> float:
    """The p of rbp:p."""
    given = name.partition(":")[2].strip()
    try:
        p = float(given)
    except ValueError:
        p = math.nan
    if not 0 < p < 1:
        raise NameFormatError(
            f"metric {name!r}: what follows the colon is the persistence, strictly between 0 and 1, got {given!r}; "
            "rbp alone has 0.8."
        )
    return p
