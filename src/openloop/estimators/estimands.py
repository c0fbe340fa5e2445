"""What an estimate estimates, in words: every table, headline and record names it."""

from __future__ import annotations

from typing import Literal

from openloop.core.metric import Metric

Estimand = Literal["per cell", "per user", "per relevant item", "on what was seen", "by its own definition"]
SEEN: Estimand = "on what was seen"
OWN: Estimand = "by its own definition"  # an estimator that was handed in: what it averages is its author's claim
PLAIN = ("naive", "ips_eq3")  # they correct no selection


def estimand(metric: Metric, estimator: str, share: str | None = None) -> Estimand:
    """Over what an estimator of that name averages a metric; `share` is that of `stratified`, None by default.

    The ideal of ndcg, and what map, mrr, hit@k and auc compare with, depend on what was not seen: no weights debias
    them.
    """
    stem = estimator.partition("@")[0]
    if stem in PLAIN or (stem == "stratified" and share == "observed"):
        return SEEN
    if metric.kind == "cell":
        return "per cell"
    if not metric.pooled:
        return SEEN
    return "per user" if stem == "snips_user" else "per relevant item"
