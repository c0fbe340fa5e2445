"""Every call that the frozen numbers make of openloop, and how its answers are read.

Cases name what is asked in words that do not change; this module alone knows today's keywords and attributes.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from itertools import combinations, count
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl

import openloop as ol
from tests.frozen import data
from tests.frozen.data import ITEMS, MODELS, USERS

Numbers = dict[str, Any]  # a number, or a list of numbers, by what it is
REFUSED = (ol.errors.OpenloopError,)
IN_MEMORY = ("arrays", "polars", "lazy", "pandas", "arrow", "duckdb", "files")
ENGINES = (*IN_MEMORY, "spark")
RATINGS = {"user": "uid", "item": "mid", "rating": "stars"}
SHOWN = {"user": "uid", "item": "sku", "position": "place", "request": "rid", "reward": "click"}
LOGGED = {"p": "propensity", "prefix": "prefix", "slate": "slate", "shuffled": "shuffled", "pool": "pool"}
EXPOSURE = [f"x{k + 1}" for k in range(data.PLACES)]


# -- engines -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Engine:
    """Where a log lives, and how a Polars table gets there; `arrays` are read into memory."""

    name: str
    table: Callable[[pl.DataFrame], Any]

    @property
    def reads(self) -> bool:
        return self.name == "arrays"


@cache
def engine(name: str) -> Engine:
    if name == "duckdb":
        connection = duckdb.connect()
        return Engine(name=name, table=lambda table: connection.from_arrow(table.to_arrow()))
    if name == "files":
        folder, number = tempfile.TemporaryDirectory(), count()
        return Engine(name=name, table=lambda table: in_file(table, folder, next(number)))
    into: dict[str, Callable[[pl.DataFrame], Any]] = {
        "arrays": lambda table: table,
        "polars": lambda table: table,
        "lazy": lambda table: table.lazy(),
        "pandas": lambda table: pd.DataFrame(table.to_dict(as_series=False)),
        "arrow": lambda table: table.to_arrow(),
    }
    return Engine(name=name, table=into[name])


def in_file(table: pl.DataFrame, folder: tempfile.TemporaryDirectory[str], number: int) -> pl.LazyFrame:
    path = Path(folder.name) / f"{number}.parquet"
    table.write_parquet(path)
    return pl.scan_parquet(path)


def on_spark(session: Any) -> Engine:
    return Engine(name="spark", table=lambda table: session.createDataFrame(table.to_arrow()))


# -- what is asked of ratings ----------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Question:
    """What is asked of three models and a log of ratings.

    `form` is what the models are: tables of the "scores" of the log's rows, of all but some ("partial"), "lists" of
    ranks, "full" scores of all cells, "counts" of candidates above and tied, or "columns" of the log. `part`: the log
    is a half of a split, and the other half is excluded. `p`: "known", "none", or the name of a model that is fitted.
    `options` are keywords of the call, `known` of what reads or scans the log.
    """

    metrics: tuple[str, ...] | None
    estimators: tuple[str, ...] | None = None
    form: str = "scores"
    p: str = "known"
    text: bool = False
    part: bool = False
    exclude: bool = False
    positives: bool = False
    population: tuple[int, int] = (USERS, ITEMS)
    groups: bool = False
    similar: bool = False
    sampled: bool = False
    options: Mapping[str, Any] = field(default_factory=dict)
    known: Mapping[str, Any] = field(default_factory=dict)


@cache
def split() -> tuple[pl.DataFrame, pl.DataFrame]:
    """The rows of train and test."""
    rows = data.log()
    train, test = ol.split(feedback(rows), test=0.5, rng=0)
    return rows[train.row], rows[test.row]


def feedback(rows: pl.DataFrame, population: tuple[int, int] = (USERS, ITEMS), **options: Any) -> ol.Feedback:
    """Rows in memory; text ids are all those of the population."""
    users, items = population
    known: dict[str, Any] = {"users": users, "items": items}
    if rows.schema["uid"] == pl.String:
        ids = data.named(pl.DataFrame({"uid": range(max(users, items)), "mid": range(max(users, items))}))
        known = {"users": ids["uid"][:users].to_list(), "items": ids["mid"][:items].to_list()}
    return ol.read(rows, **(RATINGS | {"propensity": "p"} | known | options))


def asked_of(q: Question, at: Engine) -> tuple[Any, Any, Any, dict[str, Any]]:
    """Models, log, propensities and keywords of a call."""
    rows, excluded = data.log(), data.sample().join(data.log(), on=["uid", "mid"], how="anti")
    if q.part:
        excluded, rows = split()
    if not (q.part or q.exclude):
        excluded = None
    if q.positives:
        rows = rows.filter(pl.col("stars") >= 4)
    written = data.named if q.text else lambda table: table
    tables = {name: at.table(written(table)) for name, table in models_of(q, rows, excluded).items()}
    keywords = dict(q.options) | {"metrics": list(map(own, q.metrics)) if q.metrics else None}
    if q.estimators is not None:
        keywords["estimators"] = [ol.dr(data.imputed()) if e == "dr" else own(e) for e in q.estimators]
    known = dict(q.known) | ({"item_features": data.features()[1]} if q.similar else {})
    if at.reads:
        return *_in_memory(q, rows, excluded, tables, keywords, known), keywords
    known |= {"users": q.population[0], "items": q.population[1]}
    sample = {"sample": ol.scan(at.table(data.sample()), **RATINGS, **known)} if q.sampled else {}
    keywords |= sample | ({} if excluded is None else {"exclude": at.table(written(excluded.select("uid", "mid")))})
    keywords |= {"groups": {"genre": rows["genre"].to_numpy()}} if q.groups else {}
    table = at.table(written(rows.with_columns(stars=1.0) if q.positives else rows))
    known |= {"propensity": "p"} if q.p == "known" else {}
    known |= {"split": "none"} if q.exclude else {}
    if q.p not in ("known", "none"):
        model = fitted(q.p, at, table)
        table = model.with_column(table, name="fitted")
        known |= {"propensity": "fitted", "propensity_model": model}
    models = dict(zip(MODELS, MODELS, strict=True)) if q.form == "columns" else tables
    return models, ol.scan(table, **RATINGS, **known), None, keywords


def _in_memory(
    q: Question,
    rows: pl.DataFrame,
    excluded: pl.DataFrame | None,
    tables: dict[str, Any],
    keywords: dict[str, Any],
    known: Mapping[str, Any],
) -> tuple[Any, Any, Any]:
    written = data.named if q.text else lambda table: table
    options = dict(known) | ({"rating": False, "propensity": None} if q.positives else {})
    if q.p != "known":
        options["propensity"] = None
    log = feedback(written(rows), q.population, **options)
    if q.part:
        train, log = ol.split(feedback(written(data.log()), **known), test=0.5, rng=0)
        keywords["exclude"] = train
    elif excluded is not None:
        keywords["exclude"] = feedback(written(excluded), q.population)
    keywords |= {"groups": {"genre": np.array(["comedy", "drama", "war"])[log.item % 3]}} if q.groups else {}
    keywords |= {"sample": feedback(data.sample())} if q.sampled else {}
    models = data.matrices() if q.form in ("full", "counts") else tables
    return models, log, None if q.p in ("known", "none") else fitted(q.p, engine("arrays"), log)


def models_of(q: Question, rows: pl.DataFrame, excluded: pl.DataFrame | None) -> dict[str, pl.DataFrame]:
    make: dict[str, Callable[[str], pl.DataFrame]] = {
        "scores": lambda name: data.scores(name, rows),
        "columns": lambda name: data.scores(name, rows),
        "partial": lambda name: data.partial(name, rows),
        "lists": lambda name: data.lists(name, excluded),
        "full": data.full,
        "counts": lambda name: data.counts(name, rows, excluded),
    }
    return {name: make[q.form](name) for name in MODELS}


def evaluate(q: Question, at: Engine) -> Numbers:
    models, log, p, keywords = asked_of(q, at)
    return compared(ol.evaluate(models, log, p, **keywords))


def audit(q: Question, at: Engine) -> Numbers:
    return audited(conducted(q, at))


def conducted(q: Question, at: Engine) -> ol.Audit:
    models, log, p, keywords = asked_of(q, at)
    return ol.audit(models, log, p, **keywords)


# -- your own metrics and estimators -----------------------------------------------------------------------------


@ol.metric("halving", on="rank", better="higher")
def halving(rank):
    return 0.5**rank


@ol.metric("patience@8", on="rank", better="higher", per="cell")
def patience(rank):
    return np.where(rank <= 8, 0.2 * 0.8 ** (rank - 1), 0.0)


@ol.metric("cubed", on="prediction", better="lower")
def cubed(rating, prediction):
    return (rating - prediction) ** 4


@ol.estimator("shrunk")
def shrunk(s):
    return (s.wgain + 50 * s.gain / s.n) / (s.weight + 50)


def own(name: str) -> Any:
    return {"halving": halving, "patience@8": patience, "cubed": cubed, "shrunk": shrunk}.get(name, name)


# -- what is asked of impressions ----------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Shown:
    """What is asked of rankers and a log of impressions.

    `logged` are the columns on the logging policy, "x" those of exposure. `form` is what the rankers are: tables of
    "ranks" or of "scores" for each user, of ranks for each of the "requests", or "functions". `exam`: "theta", or a way
    to fit it on a log; `same`: on this very log. `reordered`: rankers order what was shown.
    """

    metrics: tuple[str, ...] | None = None
    estimators: tuple[str, ...] | None = None
    logged: tuple[str, ...] = ("p", "x", "prefix", "slate", "shuffled", "pool")
    form: str = "ranks"
    exam: str = "theta"
    same: bool = False
    requests: bool = True
    users: bool = True
    reordered: bool = False


def asked_of_shown(q: Shown, at: Engine) -> tuple[Any, Any, Any, dict[str, Any]]:
    rows = data.impressions() if q.requests else data.impressions().filter(pl.col("rid") % 3 != pl.col("place") % 3)
    names: dict[str, Any] = SHOWN | {LOGGED[c]: c for c in q.logged if c != "x"}
    names |= {"exposure": EXPOSURE} if "x" in q.logged else {}
    names |= {} if q.requests else {"request": False}
    names |= {} if q.users else {"user": False}
    names |= {"candidates": "shown"} if q.reordered else {}
    keywords: dict[str, Any] = {"metrics": q.metrics}
    keywords |= {} if q.estimators is None else {"estimators": list(map(imputing, q.estimators))}
    called = {"uid": "user", "sku": "item", "rid": "request"} if at.reads else {}
    models: dict[str, Any] = dict(data.rankers())
    if q.form == "scores":
        models = {name: table.select("uid", "sku", score=-pl.col("rank")) for name, table in models.items()}
    if q.form == "requests":
        asking = rows.select("rid", "uid").unique(maintain_order=True)
        models = {name: asking.join(table, on="uid").drop("uid") for name, table in models.items()}
    models = {name: at.table(table.rename(called, strict=False)) for name, table in models.items()}
    if q.form == "functions":
        models = {name: scorer(table) for name, table in data.rankers().items()}
    exam = examined(q.exam, q.same, ol.read(rows, **names))
    return models, ol.read(rows, **names) if at.reads else ol.scan(at.table(rows), **names), exam, keywords


def imputing(name: str) -> Any:
    """The estimator of that name, with the mean reward of each item where it imputes."""
    kind, sign, _ = name.partition("_dr")
    return ol.dr(np.round(data.attraction().mean(axis=0), 2), kind=kind) if sign else name


def scorer(table: pl.DataFrame) -> Callable[[Any, Any], Any]:
    ranks = np.zeros((data.ASKERS, data.SHOWN_ITEMS))
    ranks[table["uid"].to_numpy(), table["sku"].to_numpy()] = table["rank"].to_numpy()
    return lambda user, item: -ranks[user, item]


def examined(by: str, same: bool, log: ol.Impressions) -> Any:
    if by == "theta":
        return np.array(data.THETA)
    how, _, method = by.partition(":")
    rows = data.impressions()
    logged = {LOGGED[c]: c for c in LOGGED} | {"exposure": EXPOSURE}
    where = log if same else ol.read(rows.filter(pl.col("rid") < data.REQUESTS - 1), **SHOWN, **logged)
    return ol.propensity.Examination(by=how, method=method or None).fit(where)


def evaluate_shown(q: Shown, at: Engine) -> Numbers:
    models, log, exam, keywords = asked_of_shown(q, at)
    return compared(ol.evaluate(models, log, exam, **keywords))


def audit_shown(q: Shown, at: Engine) -> Numbers:
    models, log, exam, keywords = asked_of_shown(q, at)
    return audited(ol.audit(models, log, exam, **keywords))


def examination(by: str) -> Numbers:
    logged = {LOGGED[c]: c for c in LOGGED} | {"exposure": EXPOSURE}
    log = ol.read(data.impressions(), **SHOWN, **logged)
    exam = examined(by, same=True, log=log)
    found: Numbers = {"theta": exam.theta_}
    if exam.influence_ is not None:
        found |= {"stderr": exam.stderr_, "interval": exam.interval(0.95)}
    if hasattr(exam, "offset_"):
        found["offset"] = exam.offset_
    checks = exam.check(log).checks
    return found | {f"{name} pvalue": test.pvalue for name, test in checks.items()}


# -- what is read of a comparison --------------------------------------------------------------------------------


def compared(result: ol.Comparison) -> Numbers:
    """value, stderr, low, high, error over cells, rows, users, effective rows, mass; differences: value and errors."""
    found: Numbers = {}
    for (model, metric, estimator), e in result.estimates.items():
        seen = e.diagnostics
        numbers = [e.value, e.stderr, *e.limits(result.level), cell_error(e)]
        found[f"{model} {metric} {estimator}"] = [*numbers, seen.n, seen.users, seen.effective_size, seen.mass]
    for (model, metric), e in result.lists.items():
        found[f"{model} {metric.partition(':')[0]} lists"] = [
            e.value,
            e.stderr,
            *e.limits(result.level),
            e.diagnostics.users,
        ]
    for metric in result.metrics:
        for estimator in (e for e in result.estimators if (result.models[0], metric, e) in result.estimates):
            for a, b in combinations(result.models, 2):
                gap = result.difference(a, b, metric=metric, estimator=estimator)
                found[f"{a} - {b} {metric} {estimator}"] = [gap.value, gap.stderr, cell_error(gap)]
    return found


def cell_error(e: ol.Estimate) -> float | None:
    return None if e.cell_variance is None or e.whole_users else math.sqrt(e.cell_variance)


def audited(found: ol.Audit) -> Numbers:
    """The numbers of an audit; its rules and words may change."""
    numbers = compared(found.result)
    for (metric, estimator), contrasts in found.contrasts.items():
        for c in contrasts:
            name = f"{c.a} - {c.b} {metric} {estimator}"
            numbers[f"{name} contrast"] = [c.value, c.stderr, c.low, c.high, c.effect, c.df, c.effective_users]
            numbers[f"{name} holm"] = [c.holm, c.holm_without]
            numbers[f"{name} gamma"] = [c.gamma, c.gamma_low]
            numbers[f"{name} rho"] = [c.rho, c.rho_low]
            numbers[f"{name} kappa"] = [c.kappa, c.kappa_low]
    for table in found.strata:
        numbers |= {f"{table.metric} {table.by}: {name}": value for name, value in in_strata(table)}
    for curve in found.curves:
        points = list(zip(curve.at, curve.low, curve.high, strict=True))
        name = f"{curve.metric} {curve.estimator} {curve.a} - {curve.b} curve"
        numbers[name] = [points[0], points[len(points) // 2], points[-1]]
    for metric, tilts in found.result.tilts.items():
        for sums in tilts.sums:
            totals = sums.sums.sum(axis=0)
            numbers[f"{metric} {sums.against} sums"] = totals[:, [0, totals.shape[1] // 2, -1]]
    numbers |= {f"{m} {e} best": list(chance.values()) for (m, e), chance in found.best.items()}
    return numbers | dict(about_log(found)) | dict(beside(found))


def in_strata(table: Any) -> Iterator[tuple[str, list[Any]]]:
    for line in table.lines:
        yield line.name, [line.rows, line.items, line.share, *(line.limits or (None, None))]
        for model, e in line.estimates.items():
            mean = line.plain.get(model)
            yield f"{line.name} {model}", [e.value, e.stderr, None if mean is None else mean.value]


def about_log(found: ol.Audit) -> Iterator[tuple[str, Any]]:
    s, w = found.setting, found.weights
    yield "log", [s.rows, s.users, s.items, s.scored_users, *s.span, s.threshold, s.excluded, s.dropped]
    yield "masses", s.masses
    if w is not None:
        yield "weights", [w.n, w.total, w.effective_size, w.largest, w.largest_share, w.quantile(0.5), w.quantile(0.99)]
    if found.friedman is not None:
        f = found.friedman
        yield "friedman", [f.statistic, f.users, f.critical_difference, *f.ranks.values()]
    for line in found.settling:
        yield f"settling {line.a} - {line.b} {line.metric}", [line.rate, *line.differences, *line.impressions]


def beside(found: ol.Audit) -> Iterator[tuple[str, Any]]:
    """The numbers of the parts that some audits have."""
    if found.open_loop is not None:
        yield "sample", [found.open_loop.rows, found.open_loop.gamma_min]
        yield from ((f"sample {name}", value) for name, value in compared(found.open_loop.result).items())
        for score in found.open_loop.scores:
            yield f"sample {score.metric} {score.estimator} error", [score.error, score.right, score.separated_right]
    if found.cold is not None:
        yield "cold", [found.cold.rows, found.cold.warm, found.cold.users, found.cold.items]
        if found.cold.result is not None:
            yield from ((f"cold {name}", value) for name, value in compared(found.cold.result).items())
    if found.positions is not None:
        for line in found.positions.lines:
            yield f"position {line.position}", [line.rows, line.rate, line.theta, line.low, line.high]
        yield from ((f"position {name} pvalue", test.pvalue) for name, test in found.positions.checks.items())
    if found.rehearsal is not None:
        r = found.rehearsal
        yield "rehearsal", [r.draws, r.difference, r.rows, r.equal.none, r.different.right]


# -- propensities --------------------------------------------------------------------------------------------


def propensity_models() -> dict[str, tuple[Any, dict[str, Any]]]:
    """Models, unfitted, and what their fit is given."""
    p = ol.propensity
    sample = {"uniform": data.sample()["stars"].to_list()}
    losses = {name: data.matrices()[name] for name in ("near", "liked")}
    return {
        "uniform": (p.Uniform(), {}),
        "popularity": (p.Popularity(), {}),
        "popularity-1": (p.Popularity(gamma=1.0), {}),
        "popularity-as-coded": (p.Popularity(variant="as_coded"), {}),
        "logistic": (p.Logistic(), {}),
        "logistic-features": (p.Logistic(reg=1.0), sides()),
        "logistic-tuned": (p.Logistic(), sides()),
        "naive-bayes": (p.NaiveBayes(), sample),
        "balanced": (p.Balanced(p.Logistic()), sample),
        "balanced-uniform": (p.Balanced(p.Uniform()), sample),
        "balanced-predictions": (p.Balanced(p.Logistic()), {"predictions": losses}),
        "boosted": (p.Boosted(max_iter=60), sides()),
        "low-rank": (p.LowRank(radius=30.0, rank=3), {}),
        "low-rank-max": (p.LowRank("max", radius=3.0, rank=3), {}),
        "platt": (p.Calibrated(p.Logistic(), "platt"), {}),
        "isotonic": (p.Calibrated(p.Logistic(), "isotonic"), {}),
        "floor": (p.Calibrated(p.Logistic(), None, floor=0.05), {}),
        "quantile": (p.Calibrated(p.Logistic(), None, quantile=0.2), {}),
        "known": (p.Known(data.chances()), {}),
    }


def fitted(name: str, at: Engine, log: Any) -> Any:
    model, given = propensity_models()[name]
    return model.fit(log, **given) if at.reads else model.fit(log, **given, **RATINGS, population=(USERS, ITEMS))


def sides() -> dict[str, ol.Covariates]:
    """The features of users and items, with whose they are."""
    both = dict(zip(("user_features", "item_features"), data.features(), strict=True))
    return {side: covariates(values) for side, values in both.items()}


def covariates(values: np.ndarray) -> ol.Covariates:
    ids = list(range(len(values)))
    table = pl.DataFrame({"id": ids} | {f"f{n}": values[:, n] for n in range(values.shape[1])})
    return ol.covariates(table, ol.Vocabulary.of(ids))


def propensity(name: str, at: Engine) -> Numbers:
    """p of twenty rows of the log, of twenty cells, and what was fitted."""
    rows = data.log()
    if not at.reads:
        log = at.table(rows)
        return {"rows": twenty(column_of(fitted(name, at, log).with_column(log, name="fitted"), at))}
    log = feedback(rows, propensity=None)
    model = fitted(name, at, log)
    p = np.empty(len(log))
    p[log.row] = model.predict(log).values
    found: Numbers = {"rows": twenty(p)}
    if not model.sees_rating and name != "balanced-predictions":
        found["cells"] = twenty(model.matrix().ravel())
    for attribute in ("gamma_", "beta_", "intercept_", "x_min_", "reg_", "radius_", "rank_", "prior_"):
        if np.ndim(value := getattr(model, attribute, None)) == 0 and isinstance(value, int | float):
            found[attribute.strip("_")] = value
    return found


def twenty(values: Any) -> np.ndarray:
    return np.asarray(values)[:: max(1, len(values) // 20)][:20]


def column_of(frame: Any, at: Engine) -> list[float]:
    """The fitted p in the order of the rows, which an engine may have lost."""
    native = frame.toArrow() if at.name == "spark" else frame.arrow() if at.name == "duckdb" else frame
    native = native.read_all() if hasattr(native, "read_all") else native
    table = native.collect() if at.name in ("lazy", "files") else pl.DataFrame(native)
    return data.log().join(table.select("uid", "mid", "fitted"), on=["uid", "mid"], how="left")["fitted"].to_list()


def checked(name: str) -> Numbers:
    """The check of a fitted model."""
    log = feedback(data.log(), propensity=None)
    found = ol.propensity.check(fitted(name, engine("arrays"), log), log, tuple(sides().values()), rng=0).to_dict()
    parts = ("calibration", "margins", "balance", "weights", "overlap", "balancing")
    numbers = dict(numbers_in({part: found[part] for part in parts}))
    # Where all sums are met, which one is furthest off is a matter of rounding.
    return {name: value for name, value in numbers.items() if "furthest" not in name}


def numbers_in(value: Any, name: str = "") -> Iterator[tuple[str, float]]:
    """The numbers in plain values, by their path; about ten of a long list."""
    if isinstance(value, Mapping):
        for key, part in value.items():
            yield from numbers_in(part, f"{name} {key}".strip())
    elif isinstance(value, list | tuple):
        for n in range(0, len(value), 1 + len(value) // 10):
            yield from numbers_in(value[n], f"{name} {n}")
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield name, value


# -- the rest ------------------------------------------------------------------------------------------------


def selected(learner: str, metric: str, estimator: str | None, **settings: Any) -> Numbers:
    """The table of a selection, and predictions of the winner."""
    kind = {"bias": ol.learners.Bias(), "mf": ol.learners.MF(factors=2, rng=0)}[learner]
    found = ol.select(kind, feedback(data.log()), grid=settings, metric=metric, estimator=estimator, folds=3, rng=0)
    keys = [name for name in found.table.columns if name in ("value", "stderr") or name.startswith("fold_")]
    places = np.arange(10)
    numbers: Numbers = {name: found.table[name].to_list() for name in keys}
    return numbers | {"best": list(found.best.values()), "predictions": found.model.predict(places * 29, places * 11)}


def planned(metric: str, estimator: str, impressions: float) -> Numbers:
    q = Question(metrics=("mae", "recall@10"), form="full", estimators=("snips",))
    contrast = conducted(q, engine("arrays")).contrast("near", "liked", metric=metric, estimator=estimator)
    p = ol.plan(contrast, impressions=impressions)
    sizes = [p.users_per_arm, p.users_at_lower_limit]
    return {"plan": [p.difference, p.lower_limit, *p.variances, *sizes]}


def paradoxes(better: str) -> Numbers:
    """Instances among three made-up pairs."""
    part, kinds = ol.paradox.Part, {"reversal": 1, "masking": 2}
    values = [  # of a and b in two strata and over all rows, with their p-values
        ((0.93, 0.87, 87, 0.01), (0.73, 0.69, 263, 0.001), (0.78, 0.83, 350, 0.02)),
        ((0.40, 0.50, 600, 0.001), (0.80, 0.70, 200, 0.04), (0.50, 0.55, 800, 0.001)),
        ((0.40, 0.50, 600, 0.001), (0.80, 0.50, 300, 0.001), (0.533, 0.53, 900, 0.6)),
    ]
    pairs = []
    for n, rows in enumerate(values):
        small, large, whole = (
            part(name=name, a=a, b=b, rows=size, pvalue=p)
            for name, (a, b, size, p) in zip(("small", "large", "all"), rows, strict=True)
        )
        pairs.append(ol.paradox.Pair(a="A", b=f"B{n}", aggregate=whole, strata=(small, large), better=better))
    found = {p.pair.b: [kinds[p.kind], p.majority.a, p.majority.b] for p in ol.paradox.find(pairs)}
    return found | {f"{p.b} marginal": ol.paradox.marginal(p.strata) for p in pairs}


def bounded() -> Numbers:
    """The bounds of Schnabel et al. (2016)."""
    b, p = ol.bounds, data.chances()
    loss, other = np.abs(data.matrices()["near"] - data.ratings()), np.clip(np.round(p * 1.3, 5), 0, 1)
    known = ol.propensity.Known(p).fit(log := feedback(data.log(), propensity=None))
    result = ol.evaluate(data.matrices(), log, known, metrics=["mae"], estimators=["ips"])
    return {
        "tail": [b.tail_bound(loss, p), b.tail_bound(4.0, p, 0.1)],
        "hoeffding": b.hoeffding(result["near", "mae", "ips"], bound=4.0),
        "generalisation": b.generalisation_bound(0.5, p, 4.0, 100),
        "bias": b.ips_bias(loss, p, other),
        "inaccurate": b.inaccurate_bound(0.5, p, other, 4.0, 100),
        "squares": b.inverse_squares(p),
    }


def ranked() -> Numbers:
    """Correlations of rankings and tests of ranks."""
    r, draw = ol.rankings, np.random.default_rng(12)
    truth = np.round(draw.normal(size=24), 3)
    x, y = np.round(truth + draw.normal(size=24), 1), np.round(truth + 2 * draw.normal(size=24), 1)
    kendall, tau = r.kendall(x, truth), r.compare_tau(x, y, truth, rng=0)
    drawn, friedman = r.kendall(x, truth, rng=0), r.friedman(np.column_stack([x, y, truth]), ["x", "y", "truth"])
    williams, steiger = r.williams(0.6, 0.4, 0.3, 50), r.steiger(0.6, 0.4, 0.3, 50)
    return {
        "kendall": [kendall.value, kendall.low, kendall.high],
        "kendall drawn": [drawn.value, drawn.low, drawn.high],
        "exact": [(e := r.kendall([1, 2, 3, 4, 5, 6], [2, 3, 5, 7, 8, 9])).low, e.high],
        "tau_b": r.tau_b(x, y),
        "compare_tau": [tau.value, tau.low, tau.high, tau.pvalue],
        "williams": [williams.statistic, williams.pvalue], "steiger": [steiger.statistic, steiger.pvalue],
        "friedman": [friedman.statistic, friedman.pvalue, friedman.critical_difference, *friedman.ranks.values()],
        "nemenyi": [r.nemenyi(4, 14), r.nemenyi(10, 100, 0.9)],
    }  # fmt: skip


def parts_of_splits() -> Numbers:
    """Rows and shares of splits and folds."""
    log = feedback(data.log(), time="time")
    cuts = {by: ol.split(log, test=0.3, by=by, rng=None if by == "time" else 0) for by in ("row", "user", "time")}
    cuts |= {f"fold {n}": part for n, part in enumerate(ol.folds(log, 3, rng=0))}
    return {
        f"{name} {n}": [len(part), None if part.share is None else part.share[0], int(part.cell.sum())]
        for name, parts in cuts.items()
        for n, part in enumerate(parts)
    }


def observed() -> Numbers:
    p = np.array([0.05, 0.3, 0.9])
    return {"observed": ol.observed_probability(p, share=0.4, excluded_share=0.5)}
