"""Small results: one by one, or together from Spark, with the same columns and types; and how many jobs that takes."""

from __future__ import annotations

from contextlib import contextmanager

import narwhals as nw
import numpy as np
import polars as pl
import pytest

import openloop as ol
from openloop.sources.frames.collecting import Fact, FrameTally, foresee, together
from tests.engines import converter

FRAMES = (
    pl.DataFrame({"u": ["a", "b"], "n": [1, 2**60], "x": [0.5, None]}),
    pl.DataFrame({"n": [7]}),
    pl.DataFrame({"x": [1.5], "y": [2.5]}),
    pl.DataFrame({"n": [1], "x": [0.0]}).head(0),
)


def rows(table):
    return [tuple(row) for row in table.iter_rows()]


def check(into):
    tables = together([nw.from_native(into(frame)) for frame in FRAMES])
    assert [table.columns for table in tables] == [frame.columns for frame in FRAMES]
    assert [sorted(rows(table), key=str) for table in tables] == [sorted(frame.rows(), key=str) for frame in FRAMES]


def test_results_of_several_queries_in_memory():
    check(pl.DataFrame.lazy)


def test_results_of_several_queries_by_one_of_spark(spark):
    with jobs(spark) as counted:
        check(converter("spark", spark))
    assert counted() == 1


def tallied(into):
    given = pl.DataFrame({"u": ["a", "b", "a"], "n": [1, 2**60, 5], "x": [0.5, None, 2.0]})
    frame = nw.from_native(into(given))
    ends = {"low": ("n", "min"), "high": ("n", "max"), "x": ("x", "sum")}
    some, no = frame.filter(nw.col("n") < 6), frame.filter(nw.col("n") < 0)
    asked = [
        FrameTally(frame=frame, totals=ends), frame.select("n"), FrameTally.sums(frame, ["x"], by=["u"]),
        FrameTally.sums(some, ["x"], by=["n"]), FrameTally(frame=no, totals=ends),
    ]  # fmt: skip
    whole, plain, by_text, by_number, none = together(asked)
    assert rows_of(whole) == [(1, 2**60, 2.5)]
    assert rows_of(plain) == [(1,), (2**60,), (5,)]
    assert rows_of(by_text)[0] == ("a", 2.5)
    assert len(by_text) == 2
    assert rows_of(by_number) == [(1, 0.5), (5, 2.0)]
    assert not any(Fact(lambda: None, none).row.values())


def rows_of(table):
    return sorted(rows(table), key=str)


def test_tallies_in_memory():
    tallied(pl.DataFrame.lazy)


def test_tallies_are_one_group_by_of_spark(spark):
    with jobs(spark) as counted:
        tallied(converter("spark", spark))
    assert counted() == 1


def test_a_fact_is_asked_once_and_foreseen_on_spark_alone(spark):
    frame = pl.DataFrame({"n": [3]})
    frames = [nw.from_native(frame.lazy()), nw.from_native(converter("spark", spark)(frame))]
    here, there = (Fact(lambda one=one: one) for one in frames)
    foresee([here], frames[0])
    foresee([there], frames[1])
    assert (here.known is None, there.known is None) == (True, False)
    assert here.row == there.row == {"n": 3}
    assert here.table is here.table


# -- how many jobs Spark starts ------------------------------------------------------------------------------


@contextmanager
def jobs(spark, *, adaptive="false"):
    """Counts the jobs that start within."""
    context = spark.sparkContext._jsc.sc()

    def started():
        context.listenerBus().waitUntilEmpty()
        return context.statusStore().jobsList(None).size()

    before = started()
    plain = spark.conf.get("spark.sql.adaptive.enabled")
    spark.conf.set("spark.sql.adaptive.enabled", adaptive)
    try:
        yield lambda: started() - before
    finally:
        spark.conf.set("spark.sql.adaptive.enabled", plain)


def case(users=60, items=40):
    """Rows, of which some are excluded, some scored, some drawn at random; scores, and lists of two models."""
    rng = np.random.default_rng(0)
    cells = rng.permutation(users * items)[:1500]
    pairs = {"user": cells // items, "item": cells % items, "rating": rng.integers(1, 6, 1500)}
    frame = pl.DataFrame(pairs).with_columns(p=pl.Series(rng.uniform(0.1, 0.9, 1500)))
    train, test, drawn = frame[:500], frame[500:1000], frame[1000:]
    scores = [test.select("user", "item", score=pl.Series(rng.uniform(1, 5, 500))) for _ in range(2)]
    grid = pl.DataFrame(dict(zip(("user", "item"), np.indices((users, items)).reshape(2, -1), strict=True)))
    left = grid.join(train, on=["user", "item"], how="anti")
    lists = [
        left.sample(fraction=1, shuffle=True, seed=seed)
        .with_columns(rank=pl.int_range(1, pl.len() + 1).over("user"))
        .filter(pl.col("rank") <= 20)
        for seed in range(2)
    ]
    return train.select("user", "item"), test, drawn.drop("p"), scores, lists


def test_two_models_are_evaluated_by_few_jobs_of_spark(spark):
    into, (_, test, _, scores, _) = converter("spark", spark), case()
    models = {name: into(frame) for name, frame in zip("ab", scores, strict=True)}
    with jobs(spark, adaptive="true") as counted:
        ol.evaluate(models, into(test), "p", population=(60, 40))
    assert counted() <= 25


@pytest.mark.slow
def test_an_audit_of_lists_takes_few_jobs_of_spark(spark):
    into, (train, test, drawn, _, lists) = converter("spark", spark), case()
    models = {name: into(frame) for name, frame in zip("ab", lists, strict=True)}
    with jobs(spark, adaptive="true") as counted:
        found = ol.audit(
            models, into(test), "p", exclude=into(train), open_loop=into(drawn), population=(60, 40), threshold=4
        )
    assert counted() <= 60
    wanted = ol.audit(
        dict(zip("ab", lists, strict=True)), test, "p", exclude=train, open_loop=drawn, population=(60, 40), threshold=4
    )
    for key, e in wanted.result.estimates.items():
        np.testing.assert_allclose(found.result[key].value, e.value, rtol=1e-10, atol=1e-14, err_msg=str(key))
    assert str(found.verdict) == str(wanted.verdict)
