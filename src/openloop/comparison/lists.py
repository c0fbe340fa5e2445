"""Metrics of lists: from the sums of lists to values, with intervals over users if they are means.

Where lists come from is the business of arrays and frames; here they are sums by user and by item.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from openloop.core.estimate import Estimate
from openloop.core.feedback import Floats
from openloop.core.lists import LISTS, ListMetric, ListSums
from openloop.core.totals import Shifted, smooth
from openloop.core.weights import Diagnostics
from openloop.errors import UndefinedError
from openloop.estimators.weighted import quotient, side_by_side
from openloop.moments.question import Question

NEEDED = {
    "running": "needs the model that others are compared with; write its name after a colon, as in overlap@10:popular",
    "item_features": "needs covariates of the items; read the log with item_features=",
}
TRAINED_ON = "popularity, novelty and new items count the rows that models were trained on"
ALL_THERE_IS = "popularity, novelty and new items count the rows of the scored log; pass exclude=train to count those"


class ListSource(Protocol):
    """Where lists are reduced."""

    models: tuple[str, ...]

    def refusal(self, metric: ListMetric) -> str | None:
        """Why these models cannot give that metric, None if they can."""
        ...

    def sums(self, metrics: Sequence[ListMetric]) -> dict[str, ListSums]:
        """The sums of each model's lists; all metrics have one k."""
        ...

    def notes(self) -> list[str]:
        """What the reader should know about the lists that were made."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ListFindings:
    """Values by (model, metric), and reasons by (metric, "lists") why there are none."""

    found: dict[tuple[str, str], Estimate] = field(default_factory=dict[tuple[str, str], Estimate])
    skipped: dict[tuple[str, str], str] = field(default_factory=dict[tuple[str, str], str])
    notes: tuple[str, ...] = ()


def described(source: ListSource, asked: Question) -> ListFindings:
    """Each metric of lists that is asked for, of each model."""
    metrics = asked.list_measures
    skipped: dict[tuple[str, str], str] = {}
    wanted: dict[int, list[ListMetric]] = {}
    for metric in metrics:
        reason = _ungiven(metric, asked) or source.refusal(metric)
        if reason is None:
            wanted.setdefault(metric.k, []).append(metric)
        else:
            skipped[metric.name, LISTS] = f"{LISTS} of {metric.name}: {reason}"
    values: dict[str, dict[str, Estimate]] = {}
    for alike in (wanted[k] for k in sorted(wanted, reverse=True)):  # shorter lists are the heads of longer ones
        try:  # for all models or for none
            values |= _estimates(source, alike)
        except UndefinedError as error:
            skipped |= {(m.name, LISTS): f"{LISTS} of {m.name}: {error}" for m in alike}
    found = {(model, m.name): values[m.name][model] for model in source.models for m in metrics if m.name in values}
    counted = [ALL_THERE_IS if asked.trained is None else TRAINED_ON] if found else []
    return ListFindings(found=found, skipped=skipped, notes=(*counted, *source.notes()))


def _ungiven(metric: ListMetric, asked: Question) -> str | None:
    lacks = {"": False, "running": metric.running is None, "item_features": asked.item_features is None}
    return f"{NEEDED[metric.needs]}." if lacks[metric.needs] else None


def _estimates(source: ListSource, metrics: Sequence[ListMetric]) -> dict[str, dict[str, Estimate]]:
    """By metric and model."""
    sums = source.sums(metrics)
    for model, own in sums.items():
        if not own.exposure.any():
            raise UndefinedError(f"model {model!r} lists nothing for any user; give it candidates.")
    return {m.name: {model: _estimate(m, own) for model, own in sums.items()} for m in metrics}


def _estimate(metric: ListMetric, sums: ListSums) -> Estimate:
    if metric.spread is not None:
        return _property(metric, sums, metric.spread(sums.exposure))
    return _mean_over_users(metric, sums, sums.values[metric.name])


def _mean_over_users(metric: ListMetric, sums: ListSums, values: Floats) -> Estimate:
    """The mean of per-user values; users without one (NaN) are left out."""
    present = np.isfinite(values)
    if not present.any():
        raise UndefinedError("no list has two items to compare.")
    columns = side_by_side(np.where(present, values, 0.0), present.astype(np.float64))  # (U, 2)
    value, _, influence = smooth(quotient, columns)
    seen = Diagnostics(n=int(sums.length.sum()), users=int(present.sum()))
    return Estimate(
        value=value, influence=influence, method=LISTS, metric=metric.name, estimand="per user", diagnostics=seen,
        columns=columns, function=quotient,
    )  # fmt: skip


def _property(metric: ListMetric, sums: ListSums, value: float) -> Estimate:
    """A property of all lists together, which more users would change: no mean over users, so without an interval."""
    users = len(sums.length)
    seen = Diagnostics(n=int(sums.length.sum()), users=int(np.count_nonzero(sums.length)))
    return Estimate(
        value=value, influence=np.zeros(users), method=LISTS, metric=metric.name, estimand="of all lists together",
        diagnostics=seen, columns=np.zeros((users, 1)), function=Shifted(value),
    )  # fmt: skip
