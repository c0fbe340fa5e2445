"""Lists that stay in their engine: the numbers that arrays give, on every engine, and what stays out."""

from __future__ import annotations

import polars as pl
import pytest

import openloop as ol
from openloop.errors import PredictionError, UndefinedError
from tests.engines import EAGER, converter
from tests.examples import same, small_world
from tests.facts import facts

USERS, ITEMS = 30, 12
METRICS = ("coverage@3", "gini@3", "popularity@3", "novelty@3", "new@3", "overlap@3", "gini@2")


def names(codes, side):
    return [f"{side}{code:02d}" for code in codes]


def rows(log):
    return pl.DataFrame({"user": names(log.user, "u"), "item": names(log.item, "i"), "rating": log.rating})


def scores(model):
    users, items = names(range(USERS), "u"), names(range(ITEMS), "i")
    cells = [(user, item) for user in users for item in items]
    return pl.DataFrame(cells, schema=["user", "item"], orient="row").with_columns(score=pl.Series(model.ravel()))


def lists(model, excluded):
    """The first four of each user that are not excluded, of equal scores the smaller id first."""
    left = (
        scores(model)
        .join(rows(excluded), on=["user", "item"], how="anti")
        .sort("score", "item", descending=[True, False])
    )
    ranked = left.with_columns(rank=pl.int_range(1, pl.len() + 1).over("user"))
    return ranked.filter(pl.col("rank") <= 4).drop("score").sample(fraction=1.0, shuffle=True, seed=0)


@pytest.fixture(scope="module")
def case():
    """A split log, and what arrays say of two models, one of which has many ties."""
    world = small_world()
    train, test = ol.split(world.observe(rng=1), test=0.4, rng=0)
    found = ol.evaluate(world.predictions, test, metrics=METRICS, exclude=train, running="b")
    return world.predictions, train, test, found


def agree(found, wanted):
    assert list(found.lists) == list(wanted.lists)
    for key, e in wanted.lists.items():
        same([found.lists[key].value, found.lists[key].stderr], [e.value, e.stderr], err_msg=str(key))
        assert found.lists[key].diagnostics.users == e.diagnostics.users


@pytest.mark.parametrize("engine", EAGER)
@pytest.mark.parametrize("kind", ["scores", "lists"])
def test_every_engine_says_what_arrays_say(engine, kind, case):
    models, train, test, wanted = case
    into = converter(engine)
    tables = {name: into(scores(m) if kind == "scores" else lists(m, train)) for name, m in models.items()}
    found = ol.evaluate(
        tables, into(rows(test)), metrics=METRICS, exclude=into(rows(train)), running="b", population=(USERS, ITEMS),
        complete=kind == "scores",
    )  # fmt: skip
    agree(found, wanted)


def test_spark_says_what_arrays_say(spark, case):
    models, train, test, wanted = case
    into = converter("spark", spark)
    tables = {name: into(scores(m)) for name, m in models.items()}
    asked = {"exclude": into(rows(train)), "population": (USERS, ITEMS), "complete": True, "running": "b"}
    agree(ol.evaluate(tables, into(rows(test)), metrics=METRICS, **asked), wanted)


def test_the_scored_log_is_counted_where_nothing_is_excluded(case):
    models, _, test, _ = case
    wanted = ol.evaluate(models, test, metrics=["popularity@3", "new@3"])
    tables = {name: scores(m) for name, m in models.items()}
    found = ol.evaluate(tables, rows(test), metrics=["popularity@3", "new@3"], population=(USERS, ITEMS), complete=True)
    agree(found, wanted)


def test_users_without_a_list_are_left_out_and_counted(case):
    models, train, test, _ = case
    few = lists(models["a"], train).filter(pl.col("user") < "u20")
    asked = {"metrics": ["popularity@3"], "exclude": rows(train), "population": (USERS, ITEMS)}
    found = ol.evaluate({"a": few, "b": lists(models["b"], train)}, rows(test), **asked)
    assert [found[m, "popularity@3", "lists"].diagnostics.users for m in "ab"] == [20, 30]
    assert any("a 10 of 30" in note for note in found.notes)


@pytest.mark.parametrize(
    ("metric", "told", "more"),
    [
        ("similarity@3", ("similarity@3", "ol.read"), {"item_features": [[1.0]] * ITEMS}),
        ("coverage@5", ("coverage@5", "'a'", 4), {}),
        ("novelty@3", ("novelty@3", "max_users=", 30), {"max_users": 20}),
        ("gini@3", ("gini@3", "'a'", 12, 11, "population="), {"population": (USERS, 11)}),
    ],
)
def test_what_the_engine_does_not_tell_is_left_out_with_the_reason(metric, told, more, case):
    models, train, test, _ = case
    kept = rows(test).filter(pl.col("item") != "i11")
    asked = {"metrics": [metric], "exclude": rows(train).filter(pl.col("item") != "i11"), "population": (USERS, ITEMS)}
    with pytest.raises(UndefinedError, match=facts(*told)):
        ol.evaluate({"a": lists(models["a"], train)}, kept, **asked | more)


def test_ranks_beside_the_rows_of_a_log_are_no_lists(case):
    _, _, test, _ = case
    log = rows(test).with_columns(mine=pl.int_range(1, pl.len() + 1).over("user"))
    with pytest.raises(UndefinedError, match=facts("coverage@1", "'m'", "column")):
        ol.evaluate({"m": {"rank": "mine"}}, log, metrics=["coverage@1"], population=(USERS, ITEMS))


def test_a_list_with_excluded_items_is_refused(case):
    models, train, test, _ = case
    whole = scores(models["a"]).with_columns(rank=pl.int_range(1, pl.len() + 1).over("user")).drop("score")
    with pytest.raises(PredictionError, match=facts("'a'", "exclude=None")):
        ol.evaluate({"a": whole}, rows(test), metrics=["coverage@3"], exclude=rows(train), population=(USERS, ITEMS))
