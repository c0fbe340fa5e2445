"""An audit of impressions: right where its estimators' assumptions hold, silent where a check speaks against it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import openloop as ol
from openloop.audits.shown import ShownAuditQuestion, conduct_shown
from openloop.core.impressions import Impressions
from openloop.propensity.examination import Examination
from openloop.reporting.html import page
from openloop.reporting.sections import Subject


def world_of(model="pbm", logging="shuffled", users=2000, items=6, depth=3, **settings):
    return ol.simulate.click_world(users, items, depth, model=model, logging=logging, **settings)


def audited(world, rng, **asked):
    log = world.observe(rng=rng)
    return conduct_shown(world.ranks(log), log, Examination(by="randomised").fit(log), ShownAuditQuestion(**asked))


@pytest.fixture(scope="module")
def found():
    return audited(world_of(), 1)


def test_the_better_ranker_wins_by_examination(found):
    assert found.verdict.supported
    assert found.verdict.winner == "a"
    assert (found.metric, found.estimator) == ("clicks", "snpbm")
    world = world_of()
    gap = world.truth("a") - world.truth("b")
    c = found.contrast("a", "b")
    assert c.low < gap < c.high


def test_equal_rankers_get_no_verdict():
    world = world_of()
    log = world.observe(rng=3)
    ranks = world.ranks(log)["b"]
    exam = Examination(by="randomised").fit(log)
    same = conduct_shown({"one": ranks, "two": ranks}, log, exam, ShownAuditQuestion())
    assert not same.verdict.supported
    assert same.verdict.reasons[0].code == "same"


def test_a_cascade_takes_the_word_from_estimators_that_ignore_items_above():
    """Twenty logs of a cascade: the check rejects in nearly all, and then neither pbm nor iips decides."""
    world, decided = world_of("cascade"), []
    for seed in range(20):
        one = audited(world, seed)
        assert one.verdict.winner != "b"
        decided.append(one.estimator)
    assert decided.count("snrips") >= 17  # 95 % of them, less two standard errors


def test_without_an_estimator_that_survives_the_check_the_log_cannot_tell():
    one = audited(world_of("cascade"), 1, estimators=["snpbm", "sniips"])
    assert one.verdict.level == "none"
    assert "items-above" in {reason.code for reason in one.verdict.reasons}
    assert "snrips" in one.verdict.remedy


def test_few_clicks_are_no_support():
    world = replace(world_of(), users=60)
    one = audited(world, 0)
    assert not one.verdict.supported
    weak = {reason.code for pair in one.verdict.pairs for reason in pair.reasons}
    assert weak & {"clicks", "rows", "untold"}


def test_rows_in_an_engine_are_not_checked_and_give_no_verdict_by_what_a_check_could_reject():
    world = world_of("cascade")
    log = world.observe(rng=0)
    rows = pl.DataFrame({
        "request": log.request, "user": log.users.ids[log.user[log.request]], "item": log.item,
        "position": log.position, "click": log.reward, "p": log.propensity,
    })  # fmt: skip
    exam = Examination(by="randomised").fit(log)
    named = {"position": "position", "request": "request", "user": "user", "item": "item", "reward": "click"}
    one = ol.audit(world.ranks(log), ol.scan(rows, propensity="p", **named), exam)
    assert one.verdict.level == "none"
    assert "unchecked" in {reason.code for reason in one.verdict.reasons}
    assert one.positions.in_engine
    text = page(Subject.of(one))
    assert 'id="positions"' in text
    assert 'id="strata"' not in text


def test_examination_by_user_and_item_decides_nothing_where_reactions_cannot_be_checked():
    world = ol.simulate.click_world(1000, 10, 5, logging="two-rankers", feedback="boost")
    log = replace(world.observe(rng=0), time=None)
    exam = Examination(by="user-item").fit(log)
    assert any("react" in note for note in exam.notes_)
    one = conduct_shown(world.ranks(log), log, exam, ShownAuditQuestion(estimators=["snpbm"], candidates="shown"))
    assert not one.verdict.supported
    assert "unchecked" in {reason.code for reason in one.verdict.reasons}


def test_requests_with_gaps_give_no_verdict():
    world = world_of()
    log = world.observe(rng=1)
    kept = (log.reward > 0) | (np.random.default_rng(0).random(len(log)) < 0.5)  # half of what was not clicked is lost
    named = ("request", "position", "item", "reward")
    some = {name: getattr(log, name)[kept] for name in named}
    request = np.unique(some["request"], return_inverse=True)[1]
    gapped = Impressions.from_arrays(
        **some | {"request": request}, items=log.items, users=log.users, user=log.user[log.request[kept]],
        shuffled=log.shuffled[log.request[kept]],
    )  # fmt: skip
    one = ol.audit(world.ranks(log), replace(gapped, candidates="shown"), world.theta)
    assert "gaps" in {reason.code for reason in one.verdict.reasons}
    assert one.verdict.reasons[0].value == one.positions.gaps > 1000


def test_what_a_log_never_showed_is_not_filled_in():
    """Ranker a puts an item that the log never had first, for two users of five."""
    world = world_of()
    log = world.observe(rng=0)
    ranks = world.ranks(log)
    moved = ranks["a"].filter(pl.col("user") % 5 < 2).with_columns(pl.col("rank") + 1)
    junk = moved.group_by("user").agg(item=pl.lit(99, pl.Int64), rank=pl.lit(1, pl.Int64))
    rest = ranks["a"].filter(pl.col("user") % 5 >= 2)
    parts = [part.select(pl.col("user", "item", "rank").cast(pl.Int64)) for part in (rest, moved, junk)]
    one = ol.audit({"a": pl.concat(parts), "b": ranks["b"]}, log, Examination().fit(log))
    assert not one.verdict.supported
    reached = [reason for pair in one.verdict.pairs for reason in pair.reasons if reason.code == "reach"]
    assert not one.verdict.pairs[0].better or reached


def test_a_given_theta_is_checked_where_the_log_allows_it_and_decides_nothing_where_it_does_not():
    trust = ol.simulate.click_world(6000, 6, 3, model="trust")
    log = trust.observe(rng=0)
    one = ol.audit(trust.ranks(log), log, trust.theta)
    assert one.positions.checks["one theta"].rejects
    assert one.estimator == "sniips"
    fixed = ol.simulate.click_world(2000, 6, 6, logging="deterministic", model="trust")
    shown = fixed.observe(rng=0)
    other = ol.audit(fixed.ranks(shown), shown, fixed.theta)
    assert not other.verdict.supported
    assert "unchecked" in {reason.code for reason in other.verdict.reasons}
