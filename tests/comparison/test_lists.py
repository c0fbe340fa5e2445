"""From sums of lists to values: means with intervals over users, properties without, and reasons for gaps."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

import openloop as ol
from openloop.errors import InputError, UndefinedError
from tests.examples import same, small_world
from tests.facts import facts

USERS, ITEMS = 40, 30
MEANS = ("popularity@5", "novelty@5", "new@5", "overlap@5:b", "similarity@5")


@pytest.fixture(scope="module")
def world():
    return small_world(USERS, ITEMS)


@pytest.fixture(scope="module")
def log(world):
    return world.observe(rng=0)


def listed(models, log, *metrics, **asked):
    return ol.evaluate(models, log, metrics=metrics, **asked)


def test_a_mean_over_users_has_the_interval_of_a_mean(world, log):
    X = np.random.default_rng(0).normal(size=(ITEMS, 3))
    found = listed(world.predictions, replace(log, item_features=X), *MEANS)
    n = np.bincount(log.item, minlength=ITEMS)
    top = np.argsort(-world.predictions["a"], axis=1, kind="stable")[:, :5]
    per_user = n[top].mean(axis=1) / USERS
    e = found["a", "popularity@5", "lists"]
    same([e.value, e.stderr], [per_user.mean(), per_user.std(ddof=1) / np.sqrt(USERS)])
    assert (e.estimand, e.diagnostics.users, e.diagnostics.n) == ("per user", USERS, 5 * USERS)
    assert found.list_metrics == MEANS
    assert all(math.isfinite(found["a", metric, "lists"].stderr) for metric in MEANS)


def test_the_interval_covers_the_mean_of_the_users_that_these_were_drawn_from():
    rng = np.random.default_rng(1)
    taste = rng.gamma(0.5, size=(4000, 1)) * np.linspace(1, 0, ITEMS)  # some users get the first items, which have rows
    scores = taste + rng.random((4000, ITEMS))
    truth = np.mean(np.argsort(-scores, axis=1)[:, :5] >= 10)
    log = ol.Feedback.from_arrays(np.arange(10), np.arange(10), np.ones(10), users=50, items=ITEMS)
    drawn = [listed({"m": scores[rng.choice(4000, 50)]}, log, "new@5")["m", "new@5", "lists"] for _ in range(100)]
    assert 88 <= sum(truth in e.interval() for e in drawn) <= 99  # binomial, 95 %


def test_a_property_of_all_lists_has_no_interval(world, log):
    found = listed(world.predictions, log, "coverage@5", "gini@5")
    e = found["a", "coverage@5", "lists"]
    assert math.isnan(e.stderr)
    assert not e.diagnostics.flags
    with pytest.raises(UndefinedError, match=facts("coverage@5", ".value")):
        e.interval()
    difference = found.difference("a", "b", metric="gini@5", estimator="lists")
    same(difference.value, found["a", "gini@5", "lists"].value - found["b", "gini@5", "lists"].value)
    assert math.isnan(difference.stderr)


def test_a_difference_of_means_is_paired(world, log):
    found = listed(world.predictions, log, "novelty@5")
    n = np.maximum(np.bincount(log.item, minlength=ITEMS), 1)
    a, b = (
        -np.log2(n / USERS)[np.argsort(-world.predictions[m], axis=1, kind="stable")[:, :5]].mean(axis=1) for m in "ab"
    )
    difference = found.difference("a", "b", metric="novelty@5", estimator="lists")
    same([difference.value, difference.stderr], [(a - b).mean(), (a - b).std(ddof=1) / np.sqrt(USERS)])


def test_lists_change_no_estimate(world, log):
    alone = ol.evaluate(world.predictions, log, metrics=["mae", "recall@3"])
    beside = ol.evaluate(world.predictions, log, metrics=["mae", "coverage@3", "recall@3"])
    assert {key: e.value for key, e in alone.estimates.items()} == {key: e.value for key, e in beside.estimates.items()}
    assert (alone.list_metrics, beside.list_metrics) == ((), ("coverage@3",))
    assert beside.metrics == ("mae", "recall@3")


def test_lists_alone_make_a_comparison_with_rows_of_their_own(world, log):
    found = listed(world.predictions, log, "coverage@3", "new@3")
    assert (found.models, found.metrics) == (("a", "b"), ())
    assert found.to_frame()["metric"].to_list() == ["coverage@3", "new@3"] * 2
    assert set(found.to_frame()["estimator"]) == {"lists"}
    assert [row["value"] for row in found.records()["lists"]] == found.to_frame()["value"].to_list()
    assert found.records()["estimates"] == []
    assert "coverage@3" in str(found)


def test_what_is_not_given_is_left_out_with_the_reason_and_refused_alone(world, log):
    found = listed(world.predictions, log, "coverage@3", "overlap@3", "similarity@3")
    assert found.list_metrics == ("coverage@3",)
    assert set(found.skipped) == {("overlap@3", "lists"), ("similarity@3", "lists")}
    with pytest.raises(UndefinedError, match=facts("overlap@3", "overlap@10:popular")):
        found["a", "overlap@3", "lists"]
    with pytest.raises(UndefinedError, match=facts("similarity@3", "item_features=")):
        listed(world.predictions, log, "similarity@3")


def test_the_running_model_is_one_of_them(world, log):
    with pytest.raises(InputError, match=facts("'bb'", "'b'")):
        listed(world.predictions, log, "overlap@3:bb")


def test_whose_rows_are_counted_is_said(world, log):
    train, test = ol.split(log, test=0.4, rng=0)
    assert any("exclude=train" in note for note in listed(world.predictions, test, "popularity@3").notes)
    assert not any("exclude=train" in note for note in listed(world.predictions, test, "new@3", exclude=train).notes)


def test_an_unknown_key_gets_its_neighbour(world, log):
    found = listed(world.predictions, log, "coverage@3")
    with pytest.raises(InputError, match=facts("'coverage@4'", "'coverage@3'")):
        found["a", "coverage@4", "lists"]
