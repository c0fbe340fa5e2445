"""An audit of impressions: right where its estimators' assumptions hold, silent where a check speaks against it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import openloop as ol
from openloop.audits.shown import ShownAudit, conduct_shown
from openloop.errors import InputError
from openloop.propensity.examination import Examination
from tests.facts import facts


def world_of(model="pbm", logging="shuffled", **settings):
    return ol.simulate.click_world(2000, 6, 3, model=model, logging=logging, **settings)


def audited(world, rng, **asked):
    log = world.observe(rng=rng)
    return conduct_shown(world.ranks(log), log, Examination(by="randomised").fit(log), ShownAudit(**asked))


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
    same = conduct_shown({"one": ranks, "two": ranks}, log, exam, ShownAudit())
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

    evidence = shown._evidence(replace(result, estimates=turned), ShownAudit(), found.positions)
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
        conduct_shown({"a": world.ranks(log)["a"]}, log, None, ShownAudit())
    with pytest.raises(InputError, match=facts("baseline", "'c'")):
        conduct_shown(world.ranks(log), log, None, ShownAudit(baseline="c"))


def test_without_examination_the_logged_propensities_decide():
    world = world_of()
    log = world.observe(rng=2)
    one = conduct_shown(world.ranks(log), log, None, ShownAudit())
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
