"""Scanned logs and what is excluded: rows that count once, positives, users that were split, blocks without rows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import polars as pl
import pytest

import openloop as ol
from openloop.blocks import store
from tests.examples import small_world

WORLD = small_world()
U, I = WORLD.ratings.shape
SEEN = WORLD.observe(1)
LOG = replace(SEEN, propensity=0.1 + 0.1 * SEEN.rating.astype(float))
MODELS = {"m": WORLD.predictions["a"]}
ASKED: dict[str, Any] = {"metrics": ["mae", "dcg@3"], "estimators": ["ips", "snips"]}


def frame(log):
    return pl.DataFrame({"user": log.user, "item": log.item, "rating": log.rating, "propensity": log.propensity})


def scanned(rows, **options):
    return ol.scan(rows, users=U, items=I, propensity="propensity", **options)


def same(found, memory):
    assert found.estimates.keys() == memory.estimates.keys()
    return all(found.estimates[key].value == memory.estimates[key].value for key in memory.estimates)


def test_the_shares_of_a_split_count_each_pair_once():
    train, test = ol.split(LOG, test=0.4, rng=0)
    memory = ol.evaluate(MODELS, test, exclude=train, **ASKED)
    rows, rest = frame(test), frame(train)
    assert same(ol.evaluate(MODELS, scanned(rows), exclude=pl.concat([rest, rest]), **ASKED), memory)
    repeated = scanned(pl.concat([rows, rows[:20]]), duplicates="first")
    assert same(ol.evaluate(MODELS, repeated, exclude=rest, **ASKED), memory)


def test_positives_alone_are_excluded_where_the_excluded_log_says_so():
    train, test = (frame(part) for part in ol.split(LOG, test=0.4, rng=0))
    liked = train.filter(pl.col("rating") >= 4)
    log = scanned(test, positive=4)
    expected = ol.evaluate(MODELS, log, exclude=liked, **ASKED)
    assert same(ol.evaluate(MODELS, log, exclude=scanned(train, positive=4), **ASKED), expected)


def test_users_that_were_split_have_no_variance_over_cells():
    train, test = (frame(part) for part in ol.split(LOG, by="user", test=0.4, rng=0))
    found = ol.evaluate(MODELS, scanned(test), exclude=train, metrics=["mae"], estimators=["snips"])
    assert found["m", "mae", "snips"].whole_users
    assert found["m", "mae", "snips"].cell_variance is None


@pytest.mark.parametrize("scans", [True, False])
def test_a_block_may_have_no_users(monkeypatch, scans):
    log = LOG.take(LOG.user < 3)
    p = ol.propensity.Uniform().fit(log)
    asked: dict[str, Any] = {"metrics": ["mae"], "estimators": ["snips", "stratified"]}
    plain = ol.evaluate(MODELS, log, p, **asked)
    monkeypatch.setattr(store.bounds, "__defaults__", (1,))
    found = ol.evaluate(MODELS, scanned(frame(log)) if scans else log, p, **asked)
    assert found["m", "mae", "snips"].value == pytest.approx(plain["m", "mae", "snips"].value, rel=1e-12)


def test_a_list_is_found_by_the_name_of_the_running_model_as_it_is_written():
    models = {"A": WORLD.predictions["a"], "B": WORLD.predictions["a"]}
    found = ol.evaluate(models, LOG, metrics=["overlap@3:B"])
    assert found["A", "overlap@3:B", "lists"].value == 1.0
