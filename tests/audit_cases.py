"""A small audit to draw and to write: real estimates, and made-up findings where only their look matters."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache

import numpy as np

from openloop.audits.answers import Reason, Verdict
from openloop.audits.contrasts import contrasts
from openloop.audits.paradox import Pair, Paradox, Part
from openloop.audits.rankings import Correlation, Friedman
from openloop.audits.results import Audit, Curve, OpenLoop, Score, Setting, StrataLine, StrataTable
from openloop.core.comparison import Comparison
from openloop.core.covariates import Covariates
from openloop.core.feedback import Feedback
from openloop.core.weights import WeightSummary
from openloop.data.simulate import World, schnabel_world
from openloop.evaluation import evaluate
from openloop.propensity.checks.checking import Check, check
from openloop.propensity.known import Known

NAMES = ("ones", "fours", "rotate", "skewed", "coarsened")
HOSTILE = (
    "<script>alert(1)</script>",
    "\"quoted\" & 'single' </td></script>",
    "🦜 émoji\u2028line",
    "مُوصٍ عربي",
    "<img src=x onerror=alert(2)> a rather long name of a model that goes on and on",
)
# Each would change the page's title if any of it ran.
SCRIPTS = (
    "</script><script>document.title='owned'</script>",
    '</script><script>document.title="owned"</script>', '</SCRIPT ><script>document.title="owned"</script>',
    '<!--<script>document.title="owned"', '"};document.title="owned";//', '<img src=x onerror=document.title="owned">',
    "\u2028document.title='owned'", "&lt;/script&gt;", "');document.title=('owned", "]]>", "${document.title='owned'}",
)  # fmt: skip
METRICS = ("mae", "mse", "accuracy", "dcg@50", "recall@10", "ndcg@10")
ESTIMATORS = ("snips", "ips", "stratified", "clipped", "naive")


@cache
def world() -> World:
    return schnabel_world(users=80, items=120, rank=4, rng=0)


@cache
def log() -> Feedback:
    return world().observe(rng=1)


@cache
def comparison(names: tuple[str, ...] = NAMES, metrics: tuple[str, ...] = ("mae", "dcg@50", "recall@10")) -> Comparison:
    """Five predictions in a world with known propensities, under five estimators."""
    models = dict(zip(names, world().predictions.values(), strict=False))
    return evaluate(models, log(), metrics=metrics, estimators=ESTIMATORS, pairs="all", threshold=4)


@cache
def checked() -> Check:
    """A check of the true propensities, with covariates."""
    draw = np.random.default_rng(0)
    users = Covariates(values=draw.normal(size=(80, 2)), names=("age", HOSTILE[0]), ids=log().users)
    return check(Known(world().propensities).fit(log()), log(), (users, None))


@cache
def small_audit(
    names: tuple[str, ...] = NAMES, metrics: tuple[str, ...] = ("mae", "dcg@50", "recall@10"), *, winner: bool = True
) -> Audit:
    """An audit with something in every section; `names` are those of the models."""
    result = comparison(names, metrics)
    found = {(m, e): contrasts(result, m, e) for m in result.metrics for e in result.estimators if _has(result, m, e)}
    first, second = result.ranking("mae", "snips")[:2]
    return Audit(
        verdict=_verdict(first, second) if winner else _no_verdict(first, second),
        metric="mae",
        estimator="snips",
        result=replace(result, notes=("threshold 4 was assumed",)),
        contrasts=found,
        best={family: dict(zip(result.models, _chances(len(result.models)), strict=True)) for family in found},
        strata=(_strata(result, "propensity in 3 strata", "Q1 Q2 Q3"), _strata(result, "genre", f"{HOSTILE[0]} other")),
        paradoxes=() if winner else (_paradox(first, second),),
        curves=(_curve(result, first, second), *(_curve(result, model) for model in result.models)),
        friedman=Friedman(
            statistic=93.2, pvalue=1e-9, users=80, ranks={m: 1.2 + 0.6 * n for n, m in enumerate(names)},
            critical_difference=0.9, level=0.95,
        ),
        open_loop=_open_loop(result),
        weights=WeightSummary.of(1 / np.asarray(log().propensity)),
        check=checked(),
        setting=_setting(names),
        warnings=(f"the predictions of {names[0]} are the log's own ratings in 12 % of the rows: a leak?",),
        notes=("threshold 4 was assumed", "user, item and rating were guessed from the names of the columns"),
    )  # fmt: skip


def _has(result: Comparison, metric: str, estimator: str) -> bool:
    return (result.models[0], metric, estimator) in result.estimates


def _verdict(first: str, second: str) -> Verdict:
    return Verdict(
        level="verdict",
        winner=first,
        leader=first,
        headline=f"{first} beats every other model on snips of mae",
        sentences=(
            f"{first} beats {second} by 0.13 (95 % 0.08 … 0.18, Holm p < 0.001)",
            "the order holds in 3 of 3 strata",
            "it could reverse once propensities are off by more than 1.9×",
            "effective sample 310 of 480 rows",
        ),
    )


def _no_verdict(first: str, second: str) -> Verdict:
    return Verdict(
        level="none",
        headline="This log does not support a choice between the models",
        sentences=(f"{first} leads on snips of mae, but cannot be told from {second}",),
        reasons=(
            Reason(code="stratum", text=f"a paradox was found between {first} and {second}"),
            Reason(code="estimators", text="the estimators disagree on the order"),
        ),
    )


def _chances(n: int) -> list[float]:
    shares = 0.3 ** np.arange(n)
    return [float(x) for x in shares / shares.sum()]


def _strata(result: Comparison, by: str, names: str) -> StrataTable:
    """Lines with the estimates of the comparison in the place of those of strata."""
    methods = {"holdout": "naive", "IPS": "ips", "stratified by catalogue": "stratified"}
    rows = len(log())
    lines = [_line(result, name, "method", e, rows, 120, None, 0.0) for name, e in methods.items()]
    for n, name in enumerate(names.split()):
        part = (0.7, 0.2, 0.1)[n]
        lines.append(_line(result, name, "stratum", "snips", int(part * rows), 30 + 20 * n, part, 0.1 * n))
    return StrataTable(metric="mae", by=by, lines=tuple(lines))


def _line(result, name, kind, estimator, rows, items, share, shift) -> StrataLine:
    found = {m: result[m, "mae", estimator] for m in result.models}
    moved = {m: replace(e, value=e.value + shift) for m, e in found.items()}
    limits = None if share is None else (0.01 + shift, 0.02 + shift)
    return StrataLine(name=name, kind=kind, rows=rows, items=items, share=share, limits=limits, estimates=moved)


def _paradox(first: str, second: str) -> Paradox:
    majority = Part(name="Q1", a=0.339, b=0.350, rows=700, pvalue=0.001)
    total = Part(name="all rows", a=0.373, b=0.369, rows=1000, pvalue=0.001)
    pair = Pair(a=first, b=second, aggregate=total, strata=(majority,), metric="mae", by="propensity in 3 strata")
    return Paradox(kind="reversal", pair=pair, majority=majority, preferred=second)


def _curve(result: Comparison, a: str, b: str | None = None) -> Curve:
    gamma = tuple(float(g) for g in np.geomspace(1, 5, 25))
    value = result[a, "mae", "snips"].value - (0.0 if b is None else result[b, "mae", "snips"].value)
    half = [abs(value) * 1.5 * math.log(g) for g in gamma]
    low, high = tuple(value - h for h in half), tuple(value + h for h in half)
    return Curve(metric="mae", estimator="snips", a=a, b=b, at=gamma, low=low, high=high)


def _open_loop(result: Comparison) -> OpenLoop:
    truth = {key[:2]: e for key, e in result.estimates.items() if key[2] == "naive"}
    found = replace(result, estimates={(*key, "naive"): e for key, e in truth.items()}, skipped={}, pairs={})
    tau = Correlation(value=0.8, low=0.2, high=1.0, n=5, level=0.95, method="bootstrap over models")
    scores = tuple(
        Score(metric=m, estimator=e, tau=tau, error=0.03 * n, right=9, pairs=10, separated=8, separated_right=8)
        for m in result.metrics
        for n, e in enumerate(result.estimators, 1)
    )
    return OpenLoop(rows=5400, result=found, scores=scores)


def _setting(names: tuple[str, ...]) -> Setting:
    values, counts = np.unique(np.asarray(log().rating), return_counts=True)
    return Setting(
        rows=len(log()), users=80, items=120, scored_users=80,
        ratings=tuple((float(v), int(n)) for v, n in zip(values, counts, strict=True)),
        span=(1.0, 5.0), threshold=4.0, excluded=1234, log="<b>ratings</b>.parquet", propensity="the log's own column",
        command=f"openloop audit ratings.parquet {' '.join(f'{n}={n}.npy' for n in names)} --report report.html",
        versions={"openloop": "0.1.0", "numpy": "2.3.0", "python": "3.11.9"},
        created="2026-01-31 12:00 UTC", seconds=3.21,
    )  # fmt: skip
