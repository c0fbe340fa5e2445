"""How far propensities may be off: Γ* of contrasts, and bounds of estimates against Γ, from the rows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from openloop.audits.contrasts import Contrast
from openloop.audits.results import Curve
from openloop.blocks.block import Outcome
from openloop.core.feedback import Floats
from openloop.core.metric import Metric
from openloop.estimators.sensitivity import Bounds, critical_gamma_users, ips_bounds, ratio_bounds, user_ratio_bounds
from openloop.estimators.weighted import why_undefined
from openloop.moments.rows import ArrayColumns, Rows
from openloop.moments.source import BlockSource

GAMMAS = 25
MOST_ROWS = 25_000_000  # which are held at once to be sorted: about 2 GB for two models
WIDEST = (2.0, 10.0)  # how far a curve of bounds reaches at least, and at most
OF_USERS = ("snips", "snips_user")  # estimators that are means over users of their own ratios, of some metrics
TILTED = ("snips", "ips", "snips_user")  # estimators whose bounds against Γ are known


def with_gamma(source: BlockSource, metric: Metric, found: tuple[Contrast, ...]) -> tuple[Contrast, ...]:
    """Contrasts of means of users' ratios with their Γ*, which no sums tell; not where the interval covers 0."""
    if metric.kind != "user" or found[0].estimator not in OF_USERS or too_many(source):
        return found
    return tuple(replace(c, gamma=_critical(source, metric, c)) if _lacks_gamma(c) else c for c in found)


def too_many(source: BlockSource) -> str:
    """Why bounds that sort the rows are left out; empty where they are not."""
    rows = source.subject.n_rows
    if rows <= MOST_ROWS:
        return ""
    return f"bounds against Γ are left out of logs with more than {MOST_ROWS:,} rows, and this one has {rows:,}"


def _lacks_gamma(c: Contrast) -> bool:
    return c.gamma is None and not c.low <= 0 <= c.high and math.isfinite(c.low)


def curves(source: BlockSource, metric: Metric, own_contrasts: Sequence[Contrast], leader: str) -> tuple[Curve, ...]:
    """Bounds against Γ of each model, and of the leader's differences from the others."""
    estimator = own_contrasts[0].estimator
    if estimator not in TILTED or too_many(source):
        return ()
    finite = [c.gamma for c in own_contrasts if c.gamma is not None and math.isfinite(c.gamma)]
    reach = min(max([WIDEST[0], *(1.5 * g for g in finite)]), WIDEST[1])
    gammas = np.geomspace(1.0, reach, GAMMAS)
    asked = [(m,) for m in source.models] + [(leader, m) for m in source.models if m != leader]
    found: list[Curve] = []
    for models in asked:
        bounds = _bounds(source, metric, estimator, models, gammas)
        if bounds is not None:
            a, *b = models
            own = next((c for c in own_contrasts if c.models == frozenset(models)), None)
            found.append(
                Curve(
                    metric=metric.name, estimator=estimator, a=a, b=b[0] if b else None, at=tuple(gammas.tolist()),
                    low=tuple(bounds[0].tolist()), high=tuple(bounds[1].tolist()),
                    turns=None if own is None else own.gamma, turns_low=None if own is None else own.gamma_low,
                )
            )  # fmt: skip
    return tuple(found)


def _critical(source: BlockSource, metric: Metric, c: Contrast) -> float | None:
    rows, outcomes = source.scored(metric, (c.a, c.b))
    return critical(metric, c.estimator, rows, *outcomes)


def _bounds(
    source: BlockSource, metric: Metric, estimator: str, models: tuple[str, ...], gammas: Floats
) -> Bounds | None:
    rows, (a, *b) = source.scored(metric, models)
    return tilted(metric, estimator, rows, a, b[0] if b else None, gammas)


# -- from rows -----------------------------------------------------------------------------------------------


def tilted(
    metric: Metric,
    method_name: str,
    rows: Rows,
    a: Outcome,
    b: Outcome | None,
    gammas: npt.ArrayLike,
    population: float | None = None,
) -> Bounds | None:
    """Bounds of the estimate of a model, or with `b` of the difference a − b; None where there are none.

    `rows` are those that count for the metric (the relevant ones for user metrics), `population` the N of ips:
    Σ|C_u| unless given. There are bounds for ips, snips and snips_user, wherever these are defined; of rmse, the
    roots of mse's, for one model only, as a difference of roots is not a ratio.
    """
    if not _bounded(metric, method_name, rows) or (metric.root and b is not None):
        return None
    delta, weight, certain = _delta(metric, rows, a, b), _weight(rows), _certain(rows)
    if method_name == "ips":
        size = float(rows.cells.sum()) if population is None else population
        low, high = ips_bounds(delta, weight, size, gammas, certain=certain)
    elif _per_user(metric, method_name):
        norm, most = _normaliser(metric, method_name, rows)
        low, high = user_ratio_bounds(delta, weight, norm, rows.user, gammas, most=most, certain=certain)
    else:
        low, high = ratio_bounds(delta, weight, gammas, certain=certain)
    return (np.sqrt(low), np.sqrt(high)) if metric.root else (low, high)


def critical(metric: Metric, method_name: str, rows: Rows, a: Outcome, b: Outcome) -> float | None:
    """Γ* of a − b where the estimate is a mean over users' own ratios: snips of nDCG, and snips_user; else None."""
    if not _bounded(metric, method_name, rows) or not _per_user(metric, method_name):
        return None
    norm, most = _normaliser(metric, method_name, rows)
    delta = _delta(metric, rows, a, b)
    return critical_gamma_users(delta, _weight(rows), norm, rows.user, most=most, certain=_certain(rows))


def _bounded(metric: Metric, method_name: str, rows: Rows) -> bool:
    known = method_name in ("ips", "snips", "snips_user") and why_undefined(metric, method_name) is None
    return known and rows.probability is not None


def _per_user(metric: Metric, method_name: str) -> bool:
    return method_name == "snips_user" or (metric.kind == "user" and not metric.pooled)


def _delta(metric: Metric, rows: Rows, a: Outcome, b: Outcome | None) -> Floats:
    delta: Floats = metric.gain(ArrayColumns(rows, a))
    return delta if b is None else delta - metric.gain(ArrayColumns(rows, b))


def _weight(rows: Rows) -> Floats:
    return np.empty(0) if rows.probability is None else 1.0 / rows.probability


def _certain(rows: Rows) -> Floats | float:
    """The weight at p = 1, (1 − t)/s of each row: odds are off; 0 where p has no scale."""
    return 0.0 if rows.certain is None else rows.certain


def _normaliser(metric: Metric, method_name: str, rows: Rows) -> tuple[Floats, float]:
    """a of each row, and what no user's ratio exceeds."""
    if method_name == "snips_user":
        return np.ones(len(rows)), math.inf
    most = 1.0 if metric.name.partition("@")[0] == "ndcg" else math.inf  # a gain of someone's own may exceed it
    # The ideal order is that of all of a user's rows.
    whole = rows if rows.stratum is None else replace(rows, stratum=None, edges=())
    return ArrayColumns(whole, Outcome()).ideal(metric.k), most
