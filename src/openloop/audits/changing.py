"""What changed between two audits: settings, verdict, orders, estimates and what they rest on.

Estimates of one log have an interval of their difference only where users are paired, and files keep no users' parts.
Estimates of two logs have Welch's, which takes them as independent: it is shown only there, and nothing is tested.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from openloop.audits.change_lists import Changes, Differing, OrderChange, PairChange, ValueChange, Verdicts
from openloop.audits.contrasts import Contrast, estimators_of
from openloop.audits.results import Audit
from openloop.core.comparison import Comparison
from openloop.core.estimate import Estimate, Interval
from openloop.core.metric import Metric
from openloop.errors import NameFormatError
from openloop.metrics.naming import any_metric

SAME_LOG = ("rows", "scored_users", "ratings", "span")  # of populations of any size
SETTINGS = ("log", "propensity", "rows", "users", "items", "scored_users", "threshold", "excluded", "dropped")


def changes_between(old: Audit, new: Audit) -> Changes:
    """What changed from one audit to another; of what both have."""
    shared = tuple(model for model in new.models if model in old.models)
    one_log = all(getattr(old.setting, name) == getattr(new.setting, name) for name in SAME_LOG)
    families = [family for family in _families(new.result) if family in set(_families(old.result))]
    unlike = _unlike(old, new)
    return Changes(
        verdicts=Verdicts(
            old=old.verdict.headline, old_level=old.verdict.level, old_winner=old.verdict.winner,
            new=new.verdict.headline, new_level=new.verdict.level, new_winner=new.verdict.winner,
        ),
        added=tuple(model for model in new.models if model not in old.models),
        gone=tuple(model for model in old.models if model not in new.models),
        shared=shared,
        settings=tuple(_settings(old, new)),
        orders=tuple(_order(old, new, family, shared) for family in families if len(shared) > 1),
        values=tuple(
            _value(old.result, new.result, (model, *family), one_log=one_log, unlike=family[0] in unlike)
            for family in families
            for model in shared
        ),
        support=tuple(_support(old, new)),
        one_log=one_log,
        level=new.result.level,
    )  # fmt: skip


def _families(result: Comparison) -> list[tuple[str, str]]:
    return [(metric, estimator) for metric in result.metrics for estimator in estimators_of(result, metric)]


def _settings(old: Audit, new: Audit) -> Iterator[Differing]:
    """What was asked differently, and of what."""
    pairs: list[tuple[str, Any, Any]] = [
        (name.replace("_", " "), getattr(old.setting, name), getattr(new.setting, name)) for name in SETTINGS
    ]
    for name, of in (
        ("metrics", lambda a: ", ".join(a.result.metrics)), ("estimators", lambda a: ", ".join(a.result.estimators)),
        ("verdict's metric", lambda a: a.metric), ("verdict's estimator", lambda a: a.estimator),
        ("level", lambda a: a.result.level), ("openloop", lambda a: a.setting.versions.get("openloop", "")),
    ):  # fmt: skip
        pairs.append((name, of(old), of(new)))
    yield from (Differing(name=name, old=a, new=b) for name, a, b in pairs if a != b)


def _support(old: Audit, new: Audit) -> Iterator[Differing]:
    """What both rest on: weights, overlap, and the verdict's own estimates."""
    named = zip(_supported(old), _supported(new), strict=True)
    yield from (Differing(name=name, old=a, new=b) for (name, a), (_, b) in named if a is not None or b is not None)


def _supported(found: Audit) -> Iterator[tuple[str, float | None]]:
    check = found.check
    w = found.weights if found.weights is not None and found.weights.n else None
    yield "weighted rows", None if w is None else w.n
    yield "effective rows", None if w is None else w.effective_size
    yield "largest share of the weight", None if w is None else w.largest_share
    yield "smallest propensity", None if w is None else w.smallest_propensity
    yield "overlap of propensities", None if check is None else check.overlap.coefficient
    own = [
        e.diagnostics
        for (_, *family), e in found.result.estimates.items()
        if (*family,) == (found.metric, found.estimator)
    ]
    yield "users who count, at least", min((d.users for d in own), default=None)
    yield (
        "effective users, at least",
        min((d.effective_users for d in own if d.effective_users is not None), default=None),
    )
    yield "reach, at least", min((d.reach for d in own if d.reach is not None), default=None)


# -- orders ---------------------------------------------------------------------------------------------------


def _order(old: Audit, new: Audit, family: tuple[str, str], shared: Sequence[str]) -> OrderChange:
    """The models that both have, from best to worst, and the pairs whose test says something else."""
    before, after = ([m for m in a.result.ranking(*family) if m in shared] for a in (old, new))
    known = {c.models: c for c in old.contrasts.get(family, ())}
    pairs = [(known[c.models], c) for c in new.contrasts.get(family, ()) if c.models in known]
    return OrderChange(
        metric=family[0], estimator=family[1], old=tuple(before), new=tuple(after),
        pairs=tuple(_pair(a, b) for a, b in pairs if a.better != b.better),
    )  # fmt: skip


def _pair(old: Contrast, new: Contrast) -> PairChange:
    turned = old.of(new.a)
    return PairChange(
        a=new.a, b=new.b, old_better=old.better, new_better=new.better, old=turned.value,
        old_low=turned.low, old_high=turned.high, new=new.value, new_low=new.low, new_high=new.high,
    )  # fmt: skip


# -- estimates ------------------------------------------------------------------------------------------------


def _unlike(old: Audit, new: Audit) -> set[str]:
    """The metrics that do not measure the same in both: of relevant items, by another threshold."""
    if old.setting.threshold == new.setting.threshold:
        return set()
    return {name for name in new.result.metrics if name in new.result.own_metrics or _binary(name)}


def _binary(name: str) -> bool:
    try:
        found = any_metric(name)
    except NameFormatError:  # by another version: what it measures is unknown
        return True
    return isinstance(found, Metric) and found.binary


def _value(old: Comparison, new: Comparison, key: tuple[str, str, str], *, one_log: bool, unlike: bool) -> ValueChange:
    """An estimate in both audits, and the difference, with an interval if the logs differ and the measure does not."""
    a, b = old[key], new[key]
    alike = a.estimand == b.estimand and not unlike
    known = not one_log and alike and math.isfinite(a.stderr) and math.isfinite(b.stderr)
    low, high = welch(a, b, new.level) if known else (None, None)
    before, after = a.limits(old.level), b.limits(new.level)
    return ValueChange(
        model=key[0], metric=key[1], estimator=key[2], old=a.value, old_low=before.low, old_high=before.high,
        new=b.value, new_low=after.low, new_high=after.high, difference=b.value - a.value, low=low, high=high,
        old_estimand=a.estimand, new_estimand=b.estimand,
    )  # fmt: skip


def welch(old: Estimate, new: Estimate, level: float) -> Interval:
    """The interval of new − old where no user is in both, with Welch's degrees of freedom (1947)."""
    from scipy.special import stdtrit

    v, w, difference = old.stderr**2, new.stderr**2, new.value - old.value
    if not v + w > 0:
        return Interval(difference, difference)
    # ν = (v + w)² / (v²/ν_old + w²/ν_new)
    parts = sum(x**2 / e.df for x, e in ((v, old), (w, new)) if math.isfinite(e.df))
    half = float(stdtrit((v + w) ** 2 / parts if parts else 1e9, (1 + level) / 2)) * math.sqrt(v + w)
    return Interval(difference - half, difference + half)
