"""Comparisons and evidence of given per-user values, for tests of what is concluded from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from openloop.audits.contrasts import contrasts
from openloop.audits.verdict import Evidence
from openloop.core.comparison import Comparison, PairSums
from openloop.core.estimate import Estimate
from openloop.core.totals import smooth
from openloop.core.weights import Diagnostics
from openloop.estimators.estimands import estimand
from openloop.estimators.weighted import quotient
from openloop.metrics.naming import metric as metric_named

METRIC = "recall@10"


def mean(values: Any, *, metric: str = METRIC, estimator: str = "snips", **seen: Any) -> Estimate:
    """The mean of one value a user."""
    values = np.asarray(values, float)
    columns = np.column_stack([values, np.ones(len(values))])
    value, _, influence = smooth(quotient, columns)
    known = {"n": 10 * len(values), "users": len(values), "effective_size": 6.0 * len(values), "largest_share": 0.01}
    return Estimate(
        value=value, influence=influence, method=estimator, metric=metric, columns=columns, function=quotient,
        diagnostics=Diagnostics(**(known | seen)), estimand=estimand(metric_named(metric), estimator),
    )  # fmt: skip


def comparison(
    values: Mapping[str, Any],
    *,
    estimators: Sequence[str] = ("snips",),
    metrics: Sequence[str] = (METRIC,),
    better: str = "higher",
    pairs: Mapping[tuple[str, str], PairSums] | None = None,
    other: Mapping[tuple[str, str], Mapping[str, Any]] | None = None,
    **seen: Any,
) -> Comparison:
    """The same values under every metric and estimator, but for those in `other` by (metric, estimator)."""
    other = other or {}
    estimates = {
        (model, metric, estimator): mean(
            other.get((metric, estimator), values)[model], metric=metric, estimator=estimator, **seen
        )
        for model in values
        for metric in metrics
        for estimator in estimators
    }
    own = {(a, b, m, e): pair for (a, b), pair in (pairs or {}).items() for m in metrics for e in estimators}
    return Comparison(estimates=estimates, better=dict.fromkeys(metrics, better), pairs=own)


def evidence(result: Comparison, **more: Any) -> Evidence:
    """The evidence of a comparison about its first metric and estimator."""
    families = [(m, e) for m in result.metrics for e in result.estimators]
    return Evidence(
        result=result, metric=families[0][0], estimator=families[0][1],
        contrasts={family: contrasts(result, *family) for family in families}, **({"best": {}} | more),
    )  # fmt: skip
