"""A block to sums: what requests for moments need of its rows. What blocks give is put one after the other.

Sums by user are (u, S). Sums in total are kept by bucket (b, S), and are added once all are there: so they have the
same bits however buckets make blocks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np

from openloop.blocks.block import Block
from openloop.core.feedback import Floats
from openloop.core.metric import Metric
from openloop.core.moments import SUMS
from openloop.core.vocabulary import Int64s
from openloop.core.weights import N_BINS, WeightSummary, weight_bin
from openloop.kernels.powers import run_sums
from openloop.moments.imputation import Imputation, imputed
from openloop.moments.requests import Request
from openloop.moments.rows import Rows, base_sums, gains, sums
from openloop.moments.setting import Setting, Strata
from openloop.moments.terms import POWERS, shared_key
from openloop.moments.tilting import Tilter, clusters_of, dealt_to_clusters

Key = tuple[Any, ...]  # what a sum is a sum of


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Sums:
    """The sums of a block by key: of each user, of each bucket, and of each cluster of users."""

    of_users: dict[Key, Floats] = field(default_factory=dict[Key, Floats])  # (u, …)
    of_buckets: dict[Key, Floats] = field(default_factory=dict[Key, Floats])  # (b, …)
    of_clusters: dict[Key, Floats] = field(default_factory=dict[Key, Floats])  # (c, …)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Reduction:
    """What is asked of every block: moments, and of some metrics the sums under tilted weights."""

    setting: Setting
    requests: Sequence[Request]
    imputation: Imputation | None = None
    tilts: Mapping[str, Tilter] = field(default_factory=dict[str, Tilter])  # by metric
    pairs: Sequence[tuple[str, str]] = ()
    units: int | None = None  # clusters of a bucket, which take the place of users

    def __call__(self, block: Block) -> Sums:
        """The sums of a block."""
        sums = self._by_user(block)
        if self.units is None:
            return sums
        unit, n_units = dealt_to_clusters(block, self.units)
        of_units = {key: _clustered(values, unit, n_units) for key, values in sums.of_users.items()}
        return Sums(of_users=of_units, of_buckets=sums.of_buckets, of_clusters=sums.of_clusters)

    def _by_user(self, block: Block) -> Sums:
        found, views = Sums(), _Views(block, self.setting)
        for metric, requests in _by_metric(self.requests).items():
            gain = _Gains(views, metric, self.imputation)
            for request in requests:
                rows = views.rows(metric.kind, metric.on, request.strata)
                for name, values in sums(metric, rows, gain.delta(request), request.needed).items():
                    (found.of_users if name in SUMS else found.of_buckets)[key_of(name, request)] = values
                if request.imputed and len(request.models) == 1:
                    found.of_users[key_of("imputed", request)] = gain.imputed_total(request.models[0])
            if metric.name in self.tilts:
                made = {m: gain.of(m, None) for m in dict.fromkeys(m for r in requests for m in r.models)}
                rows = views.rows(metric.kind, metric.on, None)
                item = block.item if metric.kind == "cell" else block.item[views.relevant(metric.on)]
                clusters = clusters_of(block, self.setting.n_users)
                tilted = self.tilts[metric.name].sums(rows, item, clusters, made, self.pairs)
                into = found.of_users if clusters[1] == block.n_users else found.of_clusters
                into.update({("tilted", metric.name, what): values for what, values in tilted.items()})
        for on, strata in dict.fromkeys((r.metric.on, r.strata) for r in self.requests):
            base = base_sums(views.rows("cell", on, strata))
            found.of_users.update({("base", on, strata, name): values for name, values in base.items()})
            found.of_users["cells", on] = views.rows("cell", on, None).cells
        return found


def _clustered(values: Floats, unit: Int64s, n_units: int) -> Floats:
    """Σ of users' values by cluster."""
    total = np.zeros((n_units, *values.shape[1:]))
    np.add.at(total, unit, values)
    return total


def key_of(name: str, request: Request) -> Key:
    """What a sum is a sum of: those that do not depend on the model are the same for all."""
    metric = request.metric
    shared = shared_key(name, metric, request.needed)
    if shared is not None:
        return (metric.kind, metric.on, request.strata, *shared)
    return (metric.name, request.models, request.strata, request.imputed, request.needed.cap, name)


def names_of(request: Request, *, is_weighted: bool) -> Iterator[str]:
    """The names of the sums that a request may have."""
    yield from SUMS
    if is_weighted:
        yield from (f"{kind}{a}{b}" for kind in ("power", "cutpower") for a, b in POWERS)
        yield from ("clipped", "wsquare", "fixed", "positive", "negative")
        yield from (f"cap{j}_{i}" for j in range(len(request.needed.caps)) for i in range(5))


def _by_metric(requests: Sequence[Request]) -> dict[Metric, list[Request]]:
    named: dict[str, list[Request]] = {}
    for request in requests:
        named.setdefault(request.metric.name, []).append(request)
    return {own[0].metric: own for own in named.values()}


class _Views:
    """The rows of a block as metrics see them, each made once."""

    def __init__(self, block: Block, setting: Setting) -> None:
        self.block, self.setting = block, setting
        self._made = cache(lambda on, strata: setting.rows(block, on, strata))
        self.relevant = cache(lambda on: np.flatnonzero(self.every(on, None).relevant > 0))
        self.counted = cache(lambda on, strata: self.every(on, strata).take(self.relevant(on)))

    def every(self, on: str, strata: Strata | None) -> Rows:
        """All rows."""
        return self._made(self.setting.seen_on(on), strata)

    def rows(self, kind: str, on: str, strata: Strata | None) -> Rows:
        """The rows that metrics of a kind count."""
        return self.every(on, strata) if kind == "cell" else self.counted(on, strata)


class _Gains:
    """The gains of one metric, of each model once; only where they depend on a user's other rows do strata matter."""

    def __init__(self, views: _Views, metric: Metric, imputation: Imputation | None) -> None:
        self._views, self._metric, self._imputation = views, metric, imputation
        self.of = cache(self._of)
        self._imputed = cache(self._impute)

    def delta(self, request: Request) -> Floats:
        """δ of each row, of a model or of a difference; less what is imputed."""
        first, *second = (self._single(model, request) for model in request.models)
        return first - second[0] if second else first

    def imputed_total(self, model: str) -> Floats:
        """Σ_{C_u} δ̂ of each user."""
        return self._imputed(model)[1]

    def _single(self, model: str, request: Request) -> Floats:
        gain = self.of(model, request.strata if self._metric.groups else None)
        return gain - self._imputed(model)[0] if request.imputed else gain

    def _of(self, model: str, strata: Strata | None) -> Floats:
        metric, outcome = self._metric, self._views.block.outcomes[model]
        if metric.kind == "user":
            outcome = outcome.take(self._views.relevant(metric.on))
        return gains(metric, self._views.rows(metric.kind, metric.on, strata), outcome)

    def _impute(self, model: str) -> tuple[Floats, Floats]:
        assert self._imputation is not None  # noqa: S101, estimators that impute are refused without one
        rows = self._views.rows("cell", self._metric.on, None)
        return imputed(self._views.block, self._views.setting, rows, self._metric, model, self._imputation)


# -- weights -------------------------------------------------------------------------------------------------


def weight_parts(rows: Rows) -> dict[tuple[str, str], Any]:
    """What summaries of weights are made of, by kind of metric: arrays whose first axis is of buckets or of one."""
    every = np.asarray(rows.weight())
    parts: dict[tuple[str, str], Any] = {}
    for kind, counts in (("cell", np.ones(len(rows))), ("user", rows.relevant)):
        w = every * counts  # what is 0 changes no sum
        parts |= {
            (kind, "n"): run_sums(counts, rows.row_start), (kind, "total"): run_sums(w, rows.row_start),
            (kind, "squares"): run_sums(w * w, rows.row_start), (kind, "largest"): np.array([w.max(initial=0.0)]),
            (kind, "histogram"): np.bincount(weight_bin(w[w > 0]), minlength=N_BINS)[None],
        }  # fmt: skip
    return parts


def weight_summary(parts: Mapping[tuple[str, str], Any], kind: str) -> WeightSummary:
    """The summary of the weights of all blocks that count for a kind of metric, from parts one after the other."""
    largest = float(parts[kind, "largest"].max(initial=0.0))
    n, total, squares = (float(parts[kind, name].sum()) for name in ("n", "total", "squares"))
    return WeightSummary(
        n=int(n), total=total, squares=squares, largest=largest, smallest_propensity=1.0 / max(largest, 1.0),
        histogram=parts[kind, "histogram"].sum(axis=0),
    )  # fmt: skip


def summary_of(rows: Rows) -> WeightSummary | None:
    """The summary of the weights of rows that are all at hand."""
    return None if rows.probability is None else weight_summary(weight_parts(rows), "cell")
