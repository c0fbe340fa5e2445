"""An audit of impressions: right where its estimators' assumptions hold, silent where a check speaks against it."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import openloop as ol
from openloop.audits.shown import ShownAuditQuestion, conduct_shown
from openloop.core.impressions import Impressions
from openloop.errors import InputError, UndefinedError
from openloop.propensity.examination import Examination
from openloop.reporting.html import page
from openloop.reporting.sections import Subject
from tests.facts import facts


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


def test_a_contradicting_estimator_vetoes(found):
    result = found.result
    turned = {
        key: replace(e, value=-e.value, influence=-e.influence, deviations=-e.deviations) if key[2] == "sniips" else e
        for key, e in result.estimates.items()
    }
    from openloop.audits import shown
    from openloop.audits.verdict import decide

    evidence = shown._evidence(replace(result, estimates=turned), ShownAuditQuestion(), found.positions)
    assert "estimators" in {reason.code for reason in decide(evidence, shown.BOOK).reasons}


def test_positions_have_examination_beside_click_rates(found):
    lines = found.positions.lines
    assert [line.position for line in lines] == [1, 2, 3]
    assert sum(line.rows for line in lines) == found.setting.rows
    assert lines[0].theta == 1
    for line, theta in zip(lines[1:], world_of().theta[1:], strict=True):
        assert line.low < theta < line.high
    record = found.records()["positions"]
    assert record["clusters"] == "users"
    assert set(record["checks"]) == {"items above", "reaction", "one theta"}


def test_one_model_is_not_compared():
    world = world_of()
    log = world.observe(rng=0)
    with pytest.raises(InputError, match=facts("two", "a")):
        conduct_shown({"a": world.ranks(log)["a"]}, log, None, ShownAuditQuestion())
    with pytest.raises(InputError, match=facts("baseline", "'c'")):
        conduct_shown(world.ranks(log), log, None, ShownAuditQuestion(baseline="c"))


def test_without_examination_the_logged_propensities_decide():
    world = world_of()
    log = world.observe(rng=2)
    one = conduct_shown(world.ranks(log), log, None, ShownAuditQuestion())
    assert one.estimator == "sniips"
    assert np.isnan([line.theta or np.nan for line in one.positions.lines]).all()


def test_audit_takes_impressions(found):
    world = world_of()
    log = world.observe(rng=1)
    exam = Examination(by="randomised").fit(log)
    same = ol.audit(world.ranks(log), log, exam)
    assert same.verdict == found.verdict
    with pytest.raises(InputError, match=facts("threshold")):
        ol.audit(world.ranks(log), log, exam, threshold=3)
    with pytest.raises(InputError, match=facts("prefix", "Impressions")):
        ol.audit(world.ranks(log), log, exam, prefix="p")


def test_rows_in_an_engine_are_not_checked_and_give_no_verdict_by_what_a_check_could_reject():
    world = world_of("cascade")
    log = world.observe(rng=0)
    rows = pl.DataFrame({
        "request": log.request, "user": log.users.ids[log.user[log.request]], "item": log.item,
        "position": log.position, "click": log.reward, "p": log.propensity,
    })  # fmt: skip
    exam = Examination(by="randomised").fit(log)
    named = {"position": "position", "request": "request", "user": "user", "item": "item", "reward": "click"}
    one = ol.audit(world.ranks(log), rows, exam, propensity="p", **named)
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
    one = ol.audit(world.ranks(log), gapped, world.theta, candidates="shown")
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


def test_pi_needs_lists_that_fill_every_position_and_never_decides():
    world = world_of()
    log = world.observe(rng=0)
    short = {name: table.filter(pl.col("rank") <= 2) for name, table in world.ranks(log).items()}
    with pytest.raises(UndefinedError, match=facts("pi", "shorter", 3)):
        ol.evaluate(short, log, None, estimators=["pi"])
    one = ol.audit(world.ranks(log), log, None, estimators=["pi"])
    assert not one.verdict.supported
    assert "estimator" in {reason.code for reason in one.verdict.reasons}


def test_a_log_without_propensities_is_told_to_log_them_first():
    world = world_of(logging="shuffled", shuffle=0.3, items=8, depth=3, users=300)
    log = replace(world.observe(rng=1), propensity=None, exposure=None, prefix=None, slate=None)
    exam = Examination(by="randomised").fit(log)
    with pytest.raises(UndefinedError, match=r"^snpbm.*as propensity=.*other estimators.*sniips.*prefix=") as refused:
        ol.audit(world.ranks(log), replace(log, pool=None), exam)
    assert "pool=" in str(refused.value)
    one = ol.audit(world.ranks(log), log, exam)  # with the number of candidates pi is defined, and decides nothing
    assert (one.estimator, one.verdict.level) == ("pi", "none")
    assert re.search(facts("probability of each item at its position"), one.verdict.remedy)
    assert "sniips" in one.next_steps[0].command
    assert not any("propensities as known" in sentence for sentence in one.verdict.sentences)


def test_examination_with_trust_brings_its_own_estimator():
    trust = ol.simulate.click_world(4000, 6, 3, model="trust", shuffle=1.0, requests=8)
    log = trust.observe(rng=0)
    one = ol.audit(trust.ranks(log), log, Examination(method="affine").fit(log))
    assert "affine" in one.result.estimators
    plain = ol.audit(trust.ranks(log), log, trust.theta)
    assert ("clicks", "affine") not in plain.result.skipped
