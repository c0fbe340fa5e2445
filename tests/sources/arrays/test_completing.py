"""Every cell as a row: gains and chances are those that the source itself gives where cells are scored."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import openloop as ol
from openloop.evaluation import prepared
from openloop.metrics.naming import metric
from openloop.sources.arrays.completing import completed
from openloop.sources.question import Question
from tests.examples import same, small_world

WORLD = small_world()
WHOLE = WORLD.observe(1)


def source(models, log, propensities, exclude=None):
    asked = Question(metrics=["mae", "recall@3"], estimators=["snips"], exclude=exclude, lenient=True)
    return prepared(models, log, propensities, asked).source


def truth(users):
    return WORLD.ratings[users]


def cut(by):
    if by == "nothing":
        return WHOLE, None
    log = replace(WHOLE, time=np.random.default_rng(0).random(len(WHOLE)))
    how = {"by": by, "k": 2} if by == "leave-k-out" else {"by": by, "test": 0.4}
    train, test = ol.split(log, rng=0, **how)
    return test, train


@pytest.mark.parametrize("name", ["mae", "mse", "accuracy", "dcg@3", "recall@3", "adg"])
@pytest.mark.parametrize("by", ["nothing", "row", "leave-k-out", "time"])
def test_where_cells_are_scored_rows_and_gains_are_the_sources(name, by):
    log, exclude = cut(by)
    given, wanted = source(WORLD.predictions, log, np.array(WORLD.propensities), exclude), metric(name)
    whole = completed(given, wanted, ("a", "b"), truth, None)
    rows = given.view(wanted.on).rows
    drawn = whole.rows(log.cell)
    for field in ("user", "rating", "relevant", "cells"):
        same(getattr(drawn, field), getattr(rows, field))
    same(drawn.probability, rows.probability, rtol=1e-6)
    counts = rows.relevant > 0 if wanted.kind == "user" else np.ones(len(log), bool)
    for model in ("a", "b"):
        same(whole.gains[model].ravel()[log.cell][counts], given.gains(wanted, model, None), rtol=1e-6)


def test_excluded_cells_have_no_chance():
    test, train = cut("row")
    given = source(WORLD.predictions, test, np.array(WORLD.propensities), train)
    ranked = completed(given, metric("recall@3"), ("a",), truth, None)
    assert not ranked.probability[train.user, train.item].any()
    assert np.count_nonzero(ranked.probability) == WORLD.ratings.size - len(train)
    rated = completed(given, metric("mae"), ("a",), truth, None)
    assert rated.probability.all()


@pytest.mark.parametrize("by", ["row", "user", "leave-k-out", "time"])
def test_as_many_rows_are_expected_as_there_are(by):
    test, train = cut(by)
    given = source(WORLD.predictions, test, np.array(WORLD.propensities), train)
    expected = completed(given, metric("mae"), ("a",), truth, None).expected
    assert abs(expected - len(test)) < (1e-3 * len(test) if by == "time" else 4 * np.sqrt(len(test)))


def test_users_outside_the_part_are_not_drawn():
    test, train = cut("user")
    whole = completed(
        source(WORLD.predictions, test, np.array(WORLD.propensities), train), metric("mae"), ("a",), truth, None
    )
    np.testing.assert_array_equal(np.flatnonzero(whole.factor), np.unique(test.user))


def test_a_model_that_looks_at_ratings_is_asked_about_the_completed_ones():
    seen = ol.propensity.NaiveBayes().fit(WHOLE, uniform=WORLD.ratings.ravel()[:100])
    whole = completed(source(WORLD.predictions, WHOLE, seen), metric("mae"), ("a",), truth, seen)
    wanted = np.vectorize(seen.propensity_by_rating_.__getitem__)(WORLD.ratings.astype(float))
    same(whole.probability, wanted, rtol=1e-6)


def test_a_list_serves_rankings_up_to_its_depth():
    order = np.argsort(-WORLD.predictions["a"], axis=1)[:, :3]
    listed = pl.DataFrame({
        "user": np.repeat(np.arange(len(order)), 3), "item": order.ravel(), "rank": np.tile([1, 2, 3], len(order)),
    })  # fmt: skip
    models = {"list": listed, "scores": WORLD.predictions["a"]}
    given = source(models, WHOLE, np.array(WORLD.propensities))
    whole = completed(given, metric("recall@3"), ("list", "scores"), truth, None)
    same(whole.gains["list"], whole.gains["scores"])
