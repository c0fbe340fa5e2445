"""Estimates in the order asked for, each for all rankers or for none, with lifts and differences."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import openloop as ol
from openloop.errors import InputError, UndefinedError
from tests.click_cases import log_of, world
from tests.examples import same
from tests.facts import facts


def evaluate(models=None, log=None, exam=None, **options):
    log = log_of() if log is None else log
    return ol.evaluate(world().ranks(log) if models is None else models, log, exam, **options)


def test_what_is_skipped_says_why():
    found = evaluate(metrics=["clicks", "dcg"], estimators=["snpbm", "sniips", "affine"])
    assert list(found.estimates) == [("a", "clicks", "sniips"), ("b", "clicks", "sniips")]
    assert "Examination" in found.skipped["clicks", "snpbm"]
    assert "dcg" in found.skipped["dcg", "sniips"]
    assert found.better == {"clicks": "higher", "dcg": "higher"}
    with pytest.raises(UndefinedError, match=facts("snpbm", "ol.propensity.Examination")):
        evaluate(estimators=["snpbm"])


@pytest.mark.parametrize(
    "options",
    [{"threshold": 3}, {"missing": "drop"}, {"pairs": "all"}, {"errors": ol.Refit()}, {"device": "cuda"}],
    ids=str,
)
def test_what_impressions_have_no_use_for_is_refused(options):
    (name,) = options
    with pytest.raises(InputError, match=facts(f"{name}=", "impressions")):
        evaluate(estimators=["sniips"], **options)


@pytest.mark.parametrize("options", [{"missing": "drop"}, {"cold": "drop"}, {"rehearse": 2}, {"running": "a"}], ids=str)
def test_audits_of_impressions_refuse_it_too(options):
    (name,) = options
    with pytest.raises(InputError, match=facts(f"{name}=", "impressions")):
        ol.audit(world().ranks(log_of()), log_of(), **options)


def test_an_estimate_is_there_for_all_rankers_or_for_none():
    models = world().ranks(log_of()) | {"late": np.where(log_of().position == 1, 0, log_of().position).astype(np.int32)}
    found = evaluate(models, exam=world().theta, estimators=["sniips", "rips", "pi"])
    assert {name for _, _, name in found.estimates} == {"pi"}
    assert "'late'" in found.skipped["clicks", "sniips"]


def test_differences_and_lifts_are_paired():
    found = evaluate(exam=world().theta, estimators=["snpbm"])
    a, b = (found[model, "clicks", "snpbm"] for model in "ab")
    d = found.difference("a", "b", metric="clicks", estimator="snpbm")
    same(d.value, a.value - b.value)
    assert d.stderr < np.hypot(a.stderr, b.stderr)
    lift = found.lift("a", "b", metric="clicks", estimator="snpbm")
    same(lift.value, a.value / b.value - 1)
    slope = (a.influence - a.value / b.value * b.influence) / b.value
    same(lift.influence, slope)
    assert lift.stderr == pytest.approx(np.sqrt(np.square(slope).sum()) / len(slope), rel=0.02)
    same(found.lift("a", "a", metric="clicks", estimator="snpbm").stderr, 0)


def test_scaling_rewards_scales_values():
    twice = evaluate(log=replace(log_of(), reward=2 * log_of().reward), estimators=["sniips"])["a", "clicks", "sniips"]
    once = evaluate(estimators=["sniips"])["a", "clicks", "sniips"]
    same([twice.value, twice.stderr], [2 * once.value, 2 * once.stderr])
