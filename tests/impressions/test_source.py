"""Rows in memory: random rankers, sums that do not depend on the order, and what the log lacks."""

from __future__ import annotations

from dataclasses import replace

import polars as pl
import pytest

import openloop as ol
from openloop.impressions.question import ShownQuestion
from openloop.impressions.source import ShownSource
from tests.click_cases import log_of, taken, world
from tests.examples import same


def source(log=None, models=None, exam=None, **options):
    log = log_of() if log is None else log
    given = world().ranks(log) if models is None else models
    return ShownSource(given, log, world().theta if exam is None else exam, ShownQuestion(**options))


def certain(table):
    """A list as the random ranker that always shows it."""
    return table.select("user", "item", position="rank", probability=pl.lit(1.0))


@pytest.mark.parametrize("kind", ["iips", "pbm", "pi"])
def test_a_certain_random_ranker_is_its_list(kind):
    found = source(models={name: certain(table) for name, table in world().ranks(log_of()).items()}).moments("a", kind)
    wanted = source().moments("a", kind)
    for name in ("weight", "wgain", "squares", "slope_wgain", "slope_wtheta"):
        same(getattr(found, name), getattr(wanted, name))


def test_a_mixture_of_rankers_has_the_mixture_of_their_values():
    ranks = world().ranks(log_of())
    both = pl.concat([certain(table).with_columns(probability=0.5) for table in ranks.values()])
    mixed = both.group_by("user", "item", "position").agg(pl.col("probability").sum())
    found = ol.evaluate(ranks | {"mixed": mixed}, log_of(), world().theta, estimators=["iips", "pbm", "pi", "sips"])
    for name in ("iips", "pbm", "pi"):
        a, b, m = (found[model, "clicks", name].value for model in ("a", "b", "mixed"))
        assert m == pytest.approx((a + b) / 2)
    assert "'mixed'" in found.skipped["clicks", "sips"]


def test_support_tells_what_is_there():
    bare = replace(log_of(), propensity=None, exposure=None, prefix=None, slate=None, shuffled=None, pool=None)
    found = source(bare).support
    assert not any(getattr(found, name) for name in ("propensity", "exposure", "prefix", "slate", "shuffled", "pool"))
    assert found.denominator == "shown"
    assert source().support.unlisted == ""
    assert source(models={"a": log_of().position}).support.unlisted == "a"
    assert not source(taken(log_of(), log_of().position != 2)).support.gapless


def test_without_users_intervals_are_over_requests():
    bare = replace(log_of(), user=None, users=None)
    found = ol.evaluate({"a": bare.position}, bare, world().theta, estimators=["iips"])
    assert found["a", "clicks", "iips"].n_users == log_of().n_requests
    assert any("requests" in note for note in found.notes)


def test_only_the_propensity_of_the_own_position_is_noted():
    found = ol.evaluate(world().ranks(log_of()), replace(log_of(), exposure=None), world().theta, estimators=["pbm"])
    assert any("every position" in note for note in found.notes)
