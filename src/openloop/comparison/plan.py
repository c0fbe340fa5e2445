"""What to sum for which estimate: requests for moments, and the conclusion from moments to estimates."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Protocol

from openloop.core.comparison import Comparison, Key, PairSums
from openloop.core.estimate import Estimate
from openloop.core.metric import Metric
from openloop.core.moments import Moments
from openloop.core.tilts import Tilts
from openloop.core.weights import WeightSummary
from openloop.errors import InputError, UndefinedError
from openloop.estimators.clipping import CAPS, tuned_cap
from openloop.estimators.custom import OwnEstimator
from openloop.estimators.estimands import OWN, SEEN, Estimand, estimand
from openloop.estimators.naming import Method
from openloop.estimators.stratified import why_no_shares
from openloop.estimators.weighted import why_undefined
from openloop.moments.requests import Request
from openloop.moments.setting import LEVELS, Strata
from openloop.moments.terms import POWERS, Needed, Powers
from openloop.moments.tilt_plan import tilted

MAX_MODELS_PAIRED = 10  # 45 pairs; above that the pairs must be named


class Source(Protocol):
    """What gives moments."""

    models: tuple[str, ...]
    levelled: bool  # whether propensities were fitted with a uniform sample; then there is a grouping LEVELS

    @property
    def form(self) -> str:
        """What wrong propensities change: "odds", or "ratio" where p has no scale."""
        ...

    def reduce(
        self, requests: Sequence[Request], tilted: Sequence[Metric], pairs: Sequence[tuple[str, str]]
    ) -> tuple[dict[Request, Moments], dict[str, Tilts]]:
        """The moments of each request, and the sums under tilted weights of some of their metrics."""
        ...

    def summary(self, metric: Metric, /) -> WeightSummary | None:
        """The weights of the rows that count for a metric; None without propensities."""
        ...

    def refusal(self, metric: Metric, method: Method) -> str | None:
        """Why there is no such estimate of these rows, None if there is."""
        ...


def conclude(
    source: Source,
    metrics: Sequence[Metric],
    methods: Sequence[Method],
    pairs: Sequence[tuple[str, str]],
    *,
    tilt: bool = False,
) -> Comparison:
    """Ask the source for the moments that the estimates need, and make the estimates; what is skipped says why.

    With `tilt` also for the sums that tell how far the weights may be off.
    """
    skipped: dict[tuple[str, str], str] = {}
    wanted: list[tuple[Metric, Method]] = []
    for metric in metrics:
        for method in methods:
            reason = _undefined(metric, method) or source.refusal(metric, method)
            if reason is None:
                wanted.append((metric, method))
            else:
                skipped[metric.name, method.name] = reason
    resolved = replace(_with_caps(source, wanted), tilt=tilt)
    singles = {
        (metric.name, method.name): [_request(metric, method, (model,), resolved) for model in source.models]
        for metric, method in wanted
    }
    doubles = {
        (metric.name, method.name): [_request(metric, method, pair, resolved) for pair in pairs]
        for metric, method in wanted
        if _pairs_matter(metric) and source.summary(metric) is not None
    }
    estimates: dict[Key, Estimate] = {}
    own: dict[tuple[str, str, str, str], PairSums] = {}
    families = [(metric.name, method.name) for metric, method in wanted]
    requests = [r for name in families for r in (*singles[name], *doubles.get(name, ()))]
    able = _tilted(source, wanted) if tilt else []
    moments, tilts = source.reduce(list(dict.fromkeys(requests)), able, pairs)
    for metric, method in wanted:
        name = metric.name, method.name
        try:  # for all models or for none
            found = [method.estimate(moments[request]) for request in singles[name]]
        except UndefinedError as error:
            skipped[name] = str(error)
            continue
        what = _estimand(metric, method)
        for model, estimate in zip(source.models, found, strict=True):
            taken = estimate.p_taken or ("known" if method.weighted else "")
            estimates[model, *name] = replace(estimate, method=method.name, estimand=what, p_taken=taken)
        for request in doubles.get(name, ()):
            a, b = request.models
            pair = _pair(moments[request], method, source.form)
            own[a, b, *name] = pair if not tilt else _with_parts(pair, tilts.get(metric.name), a, b)
    notes = tuple(dict.fromkeys(note for found in tilts.values() for note in found.notes))
    return Comparison(estimates=estimates, skipped=skipped, pairs=own, tilts=tilts, notes=notes)


def values(source: Source, wanted: Sequence[tuple[Metric, Method]]) -> dict[Key, float]:
    """The values alone, of what the source is known to have; without those that are undefined."""
    resolved, found = _with_caps(source, wanted), dict[Key, float]()
    for metric, method in wanted:
        asked = {model: _request(metric, method, (model,), resolved) for model in source.models}
        moments, _ = source.reduce(list(asked.values()), (), ())
        with suppress(UndefinedError):
            for model, request in asked.items():
                found[model, metric.name, method.name] = method.estimate(moments[request]).value
    return found


def _tilted(source: Source, batch: Sequence[tuple[Metric, Method]]) -> list[Metric]:
    """The metrics whose weights can be tilted; where rows have propensities, these must be defined for the metric."""
    found = [m for m, e in batch if tilted(m) and (e.weighted or source.summary(m) is None)]
    return list(dict.fromkeys(found))


def chosen_pairs(models: Sequence[str], pairs: str | Iterable[tuple[str, str]] | None) -> list[tuple[str, str]]:
    """The pairs to take sums of: "all", a list, or by default all unless the models are many."""
    if pairs is None:
        pairs = "all" if len(models) <= MAX_MODELS_PAIRED else ()
    if isinstance(pairs, str):
        if pairs != "all":
            raise InputError(f'pairs: must be "all" or a list of (model, model), got {pairs!r}.')
        return list(combinations(models, 2))
    found = [(a, b) for a, b in pairs]
    for name in (name for pair in found for name in pair):
        if name not in models:
            raise InputError(f"pairs: {name!r} is not among the models {list(models)}.")
    return found


def _undefined(metric: Metric, method: Method) -> str | None:
    """Why there is no such estimate for any rows."""
    own = method.estimate
    reason = own.why_undefined(metric) if isinstance(own, OwnEstimator) else why_undefined(metric, _stem(method))
    if reason is None and method.strata is not None:
        reason = why_no_shares(metric, method.share)
    if reason is not None:
        return f"{method.name} of {metric.name} is undefined: {reason}."
    if method.clips and method.cap is None and metric.ideal:
        return f"clipped of {metric.name} needs a given cap, such as clipped@20: its ideal depends on it."
    return None


def _estimand(metric: Metric, method: Method) -> Estimand:
    """What an estimate is of; one of your own says so itself, unless it weights nothing."""
    if method.totals:
        return OWN if method.weighted else SEEN
    return estimand(metric, method.name, method.share)


def _stem(method: Method) -> str:
    return method.name.partition("@")[0]


def _pairs_matter(metric: Metric) -> bool:
    return (metric.kind == "cell" and not metric.root) or metric.pooled


@dataclass(frozen=True, slots=True, kw_only=True)
class _Resolved:
    """The caps of each metric's clipped estimators, and the strata that its other estimators share."""

    caps: dict[tuple[str, str], float]
    strata: dict[str, Strata | None]
    weighted: dict[str, bool]
    powers: dict[str, Powers]
    tilt: bool = False  # whether parts of pairs are taken by cluster
    levelled: bool


def _with_caps(source: Source, wanted: Sequence[tuple[Metric, Method]]) -> _Resolved:
    caps = {(metric.name, method.name): method.cap for metric, method in wanted if method.clips}
    for metric, method in wanted:
        if method.clips and method.cap is None:
            caps[metric.name, method.name] = _tuned(source, metric)
    strata: dict[str, Strata | None] = {}
    for metric, method in wanted:
        # Sums in strata add up to the whole, so one set of moments serves all, unless users' gains do not add up.
        if not metric.groups and not metric.ideal and strata.get(metric.name) is None:
            strata[metric.name] = method.stratification
    weighted = {metric.name: source.summary(metric) is not None for metric, _ in wanted}
    powers = {name: tuple(p for p in POWERS if any(p in _powers(x, e) for x, e in wanted if x.name == name))
              for name in weighted}  # fmt: skip
    known = {k: c for k, c in caps.items() if c is not None}
    return _Resolved(caps=known, strata=strata, weighted=weighted, powers=powers, levelled=source.levelled)


def _powers(metric: Metric, method: Method) -> Powers:
    """Which w^a δ^b the variance over cells of an estimator is made of."""
    if metric.kind == "user":
        return ()
    mixed = method.weighted and not {"n", "gain"}.isdisjoint(method.totals)
    if mixed or (method.strata is not None and method.share != "observed"):
        return POWERS
    weighted = method.weighted and method.strata is None
    return tuple((a, b) for a, b in POWERS if a == (2 if weighted else 0))


def _tuned(source: Source, metric: Metric) -> float:
    summary = source.summary(metric)
    largest = summary.largest if summary is not None else 1.0
    # The first cap above the largest weight cuts nothing: it means no clipping.
    caps = CAPS[: sum(cap < largest for cap in CAPS) + 1]
    requests = [Request(metric=metric, models=(model,), needed=Needed(caps=caps)) for model in source.models]
    moments, _ = source.reduce(requests, (), ())
    return tuned_cap([moments[request] for request in requests])


def _request(metric: Metric, method: Method, models: tuple[str, ...], resolved: _Resolved) -> Request:
    weighted = resolved.weighted[metric.name]
    pair = len(models) > 1
    own = resolved.caps.get((metric.name, method.name))
    shared = next((cap for (name, _), cap in resolved.caps.items() if name == metric.name), None)
    return Request(
        metric=metric,
        models=models,
        strata=_strata(metric, method, resolved),
        imputed=method.imputes,
        needed=Needed(
            powers=resolved.powers[metric.name] if weighted else (),
            cap=None if method.imputes else own or shared,
            ideal=weighted and metric.ideal and method.strata is None and not pair,
            pair=pair,
            parts=pair and not resolved.tilt,
        ),
    )


def _strata(metric: Metric, method: Method, resolved: _Resolved) -> Strata | None:
    if method.imputes:
        return None
    if method.by_level and resolved.levelled and (metric.kind == "cell" or metric.pooled):
        return LEVELS
    return method.stratification or resolved.strata.get(metric.name)


def _pair(m: Moments, method: Method, form: str) -> PairSums:
    variance = method.estimate(m).cell_variance if m.metric.kind == "cell" and method.linear else None
    return PairSums(cell_variance=variance, parts=m.parts, form=form)


def _with_parts(pair: PairSums, tilts: Tilts | None, a: str, b: str) -> PairSums:
    """The pair with Σad, Σbd₊ and Σbd₋ of all users, where they were taken by cluster."""
    parts = None if tilts is None else tilts.parts_of(a, b)
    if parts is None:
        return pair
    D, A, B = parts.sum(axis=0).tolist()
    return replace(pair, parts=(D, A, B))
