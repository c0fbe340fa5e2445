"""Logs that are Spark frames: reduced on executors to the numbers that this machine finds."""

from __future__ import annotations

import stat
import sys
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import openloop as ol
from openloop.blocks import spark as spark_module
from openloop.blocks import spark_jobs
from openloop.core.comparison import Comparison
from openloop.data.scanning import Log
from openloop.errors import DuplicateError, MissingPackageError, PredictionError, PropensityError

U, I = 60, 40
TOLERANCE = 1e-12  # the same sums, added in the same order


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """A log in two parts, and what models say of all cells."""

    log: pl.DataFrame
    scores: dict[str, np.ndarray]

    @property
    def tables(self) -> dict[str, pl.DataFrame]:
        """Full tables of scores."""
        user, item = np.repeat(np.arange(U), I) * 7 + 3, np.tile(np.arange(I), U) * 3 + 1
        shuffled = np.random.default_rng(1).permutation(U * I)
        return {
            name: pl.DataFrame({"user": user, "item": item, "score": scores.ravel()})[shuffled]
            for name, scores in self.scores.items()
        }

    def lists(self, without: pl.DataFrame) -> dict[str, pl.DataFrame]:
        """The 15 best items of each user, without some pairs."""
        found: dict[str, pl.DataFrame] = {}
        for name, scores in self.scores.items():
            left = scores.copy()
            left[without["user"].to_numpy() // 7, without["item"].to_numpy() // 3] = -np.inf
            item = np.argsort(-left, axis=1, kind="stable")[:, :15]
            user, rank = np.repeat(np.arange(U), 15) * 7 + 3, np.tile(np.arange(1, 16), U)
            found[name] = pl.DataFrame({"user": user, "item": item.ravel() * 3 + 1, "rank": rank})
        return found

    @property
    def parts(self) -> tuple[pl.DataFrame, pl.DataFrame]:
        """The log, split at random."""
        is_test = np.random.default_rng(2).random(len(self.log)) < 0.5
        return self.log.filter(pl.Series(is_test)), self.log.filter(pl.Series(~is_test))


@pytest.fixture(scope="module")
def world() -> World:
    rng = np.random.default_rng(0)
    truth = np.clip(np.round(3 + rng.normal(size=(U, 1)) + rng.normal(size=(1, I)) + rng.normal(size=(U, I))), 1, 5)
    p = np.clip(0.03 * 2.0 ** (truth - 1), 0, 0.9)
    user, item = np.nonzero(rng.random((U, I)) < p)
    log = pl.DataFrame(
        {"user": user * 7 + 3, "item": item * 3 + 1, "rating": truth[user, item], "p": p[user, item]}
    ).sample(fraction=1, shuffle=True, seed=3)
    noisy = truth + 0.7 * rng.normal(size=(U, I))
    scores = {"fine": truth + 0.4 * rng.normal(size=(U, I)), "noisy": noisy, "tied": np.round(noisy)}
    return World(log=log, scores=scores)


@pytest.fixture(scope="module")
def send(spark: Any) -> Callable[[pl.DataFrame], Any]:
    return lambda frame: spark.createDataFrame(frame.to_arrow())


def scanned(frame: Any, **options: Any) -> Log:
    """The log with the whole population, under its column of p."""
    return ol.scan(frame, propensity="p", users=U, items=I, **options)


def close(there: Comparison, here: Comparison) -> None:
    """Both have the same estimates, and say the same of them."""
    assert there.estimates
    assert there.estimates.keys() == here.estimates.keys()
    assert (there.notes, there.skipped) == (here.notes, here.skipped)
    for key, estimate in here.estimates.items():
        own = there.estimates[key]
        for name in ("value", "stderr", "cell_variance"):
            expected = getattr(estimate, name)
            assert getattr(own, name) == (expected if expected is None else pytest.approx(expected, rel=TOLERANCE)), key
    assert {m: v.value for m, v in there.lists.items()} == {m: v.value for m, v in here.lists.items()}


METHODS = ["naive", "ips", "snips", "clipped@10", "stratified@3:count"]


def test_scores_of_all_cells_and_ties(send: Any, world: World) -> None:
    asked: Any = {"metrics": ["mae", "accuracy", "recall@5", "ndcg@5"], "estimators": METHODS}
    there = ol.evaluate({m: send(t) for m, t in world.tables.items()}, scanned(send(world.log)), **asked)
    close(there, ol.evaluate(world.tables, scanned(world.log), **asked))


def test_a_population_that_the_log_shows(send: Any, world: World) -> None:
    own = {name: table.join(world.log, on=["user", "item"], how="semi") for name, table in world.tables.items()}
    there = ol.evaluate({m: send(t) for m, t in own.items()}, send(world.log), "p")
    close(there, ol.evaluate(own, world.log, "p"))


def test_lists_without_what_is_excluded(send: Any, world: World) -> None:
    test, train = world.parts
    lists = world.lists(train)
    asked: Any = {"metrics": ["recall@5", "prec@5", "coverage@5", "overlap@5"], "pairs": "all"}
    sent = {m: send(t) for m, t in lists.items()}
    there = ol.evaluate(sent, scanned(send(test)), exclude=send(train), **asked)
    close(there, ol.evaluate(lists, scanned(test), exclude=train, **asked))


def test_text_ids_beside_tables_that_are_not_on_spark(send: Any, world: World) -> None:
    def named(frame: pl.DataFrame) -> pl.DataFrame:
        return frame.with_columns(pl.format("u{}", "user").alias("user"))

    tables = {m: named(t) for m, t in world.tables.items()}
    asked: Any = {"metrics": ["mae", "recall@5"]}
    sent = {m: t if m == "tied" else send(t) for m, t in tables.items()}
    there = ol.evaluate(sent, scanned(send(named(world.log))), **asked)
    close(there, ol.evaluate(tables, scanned(named(world.log)), **asked))


@pytest.mark.parametrize("missing", ["drop", "worst"])
def test_missing_predictions(send: Any, world: World, missing: str) -> None:
    tables = world.tables | {"fine": world.tables["fine"].sample(fraction=0.9, seed=1)}
    asked: Any = {"metrics": ["mae", "mse"], "missing": missing}
    there = ol.evaluate({m: send(t) for m, t in tables.items()}, scanned(send(world.log)), **asked)
    close(there, ol.evaluate(tables, scanned(world.log), **asked))


def test_columns_of_the_log(send: Any, world: World) -> None:
    log = world.log.with_columns(low=pl.col("rating") * 0.9, high=pl.col("rating") + 0.3)
    models = {"a": "low", "b": "high"}
    close(ol.evaluate(models, scanned(send(log))), ol.evaluate(models, scanned(log)))


def test_recommenders_and_functions_are_sent(send: Any, world: World) -> None:
    rows = ol.read(world.log.drop("p"))
    models: dict[str, Any] = {
        "bias": ol.learners.Bias().fit(rows),
        "sum": lambda users, items: (users * 31 + items * 17) % 5 + 1.0,
    }
    asked: Any = {"metrics": ["mae", "recall@5"]}
    close(ol.evaluate(models, send(world.log), "p", **asked), ol.evaluate(models, world.log, "p", **asked))


def test_what_the_driver_reads_where_executors_cannot(send: Any, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise AssertionError("nothing is asked of executors")

    monkeypatch.setattr(spark_module, "SparkDealer", refuse)
    models = {m: send(t) for m, t in world.tables.items()}
    there = ol.evaluate(models, scanned(send(world.log), executors=False), metrics=["mae"], estimators=["snips"])
    here = ol.evaluate(world.tables, scanned(world.log), metrics=["mae"], estimators=["snips"])
    for key, estimate in here.estimates.items():
        assert there.estimates[key].value == pytest.approx(estimate.value, rel=TOLERANCE)


# -- audits --------------------------------------------------------------------------------------------------


def jobs(session: Any, call: Callable[[], Any]) -> tuple[Any, int]:
    """The answer of a call, and how many jobs it took."""
    context, group = session.sparkContext, uuid.uuid4().hex
    context.setJobGroup(group, group)
    answer = call()
    return answer, len(context.statusTracker().getJobIdsForGroup(group))


def test_an_audit_of_lists_with_exclusions_takes_few_jobs(spark: Any, send: Any, world: World) -> None:
    test, train = world.parts
    asked: Any = {"metrics": ["recall@5", "dcg@5", "coverage@5"]}
    lists = world.lists(train)
    here = ol.audit(lists, scanned(test), exclude=train, **asked)
    sent, log, excluded = {m: send(t) for m, t in lists.items()}, scanned(send(test)), send(train)
    there, n_jobs = jobs(spark, lambda: ol.audit(sent, log, exclude=excluded, **asked))
    close(there.result, here.result)
    assert there.verdict == here.verdict
    assert there.contrasts == here.contrasts
    assert there.curves == here.curves
    for table, own in zip(here.strata, there.strata, strict=True):
        for line, own_line in zip(table.lines, own.lines, strict=True):
            assert (own_line.name, own_line.rows, own_line.limits) == (line.name, line.rows, line.limits)
            assert [e.value for e in own_line.estimates.values()] == [e.value for e in line.estimates.values()]
    assert n_jobs <= 9  # of 12: where plans are adaptive, each of three frames that are kept takes another one


# -- refusals ------------------------------------------------------------------------------------------------


def test_errors_come_as_they_are_here(send: Any, world: World) -> None:
    log = world.log
    with pytest.raises(DuplicateError, match=r"1 \(user, item\) pairs occur more than once, as \(\d+, \d+\); pass"):
        ol.evaluate({"a": "rating"}, send(pl.concat([log, log[:1]])), "p")
    wrong = pl.when(pl.int_range(pl.len()) == 5).then(2.0).otherwise("p").alias("p")
    with pytest.raises(PropensityError, match=r"the log, partition \d: p column 'p': 1 of .* outside \(0, 1\]"):
        ol.evaluate({"a": "rating"}, send(log.with_columns(wrong)), "p")
    repeated = pl.concat([world.tables["fine"], world.tables["fine"][:1]])
    with pytest.raises(PredictionError, match="model 'a'"):
        ol.evaluate({"a": send(repeated)}, send(log), "p")


def test_executors_without_openloop_are_named(send: Any, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spark_jobs, "VERSION", "99.0")  # the tasks say what they have instead
    with pytest.raises(
        MissingPackageError, match=r"cannot run openloop \(openloop .* instead of 99\.0\); .*executors=False"
    ):
        ol.evaluate({"a": "rating"}, send(world.log), "p")


@pytest.mark.parametrize("program", ["missing", "without openloop"])
def test_a_python_that_cannot_run_openloop_is_not_tried(
    spark: Any, send: Any, world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str
) -> None:
    path = tmp_path / "python"
    if program == "without openloop":
        path.write_text(f'#!/bin/sh\nexec {sys.executable} -I -S "$@"\n', encoding="utf-8")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
    log = send(world.log)
    monkeypatch.setattr(spark.sparkContext, "pythonExec", str(path))
    with pytest.raises(MissingPackageError, match=r"PYSPARK_PYTHON=.* before Spark starts") as caught:
        ol.evaluate({"a": "rating"}, log, "p")
    assert "\n" not in str(caught.value)
