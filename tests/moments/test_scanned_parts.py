"""Scanned logs and what is excluded: rows that count once, positives, users that were split, blocks without rows."""

from __future__ import annotations

from dataclasses import replace

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
ASKED = {"metrics": ["mae", "dcg@3"], "estimators": ["ips", "snips"]}


def frame(log):
    return pl.DataFrame({"user": log.user, "item": log.item, "rating": log.rating, "propensity": log.propensity})


def scanned(rows, **options):
    return ol.scan(rows, users=U, items=I, propensity="propensity", **options)


def same(found, memory):
    assert found.estimates.keys() == memory.estimates.keys()
    return all(found.estimates[key].value == memory.estimates[key].value for key in memory.estimates)


@pytest.mark.parametrize("scans", [True, False])
def test_a_block_may_have_no_users(monkeypatch, scans):
    log = LOG.take(LOG.user < 3)
    p = ol.propensity.Uniform().fit(log)
    asked = {"metrics": ["mae"], "estimators": ["snips", "stratified"]}
    plain = ol.evaluate(MODELS, log, p, **asked)
    monkeypatch.setattr(store.bounds, "__defaults__", (1,))
    found = ol.evaluate(MODELS, scanned(frame(log)) if scans else log, p, **asked)
    assert found["m", "mae", "snips"].value == pytest.approx(plain["m", "mae", "snips"].value, rel=1e-12)
