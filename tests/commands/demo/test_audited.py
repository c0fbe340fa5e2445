"""The choice of the demo: blind propensities do not decide, balanced ones name the truly best model."""

from __future__ import annotations

import re

import numpy as np
import pytest

from openloop.commands.demo import estimates as d
from openloop.commands.demo.audited import audited_world
from tests.facts import facts


@pytest.fixture(scope="module")
def found():
    return audited_world(200, 300, seed=1)


def test_the_audit_names_the_truly_best_model(found):
    assert found.audit.verdict.winner == found.best == "mf-ips"
    assert found.truth["mf-ips"] < min(found.truth["mf"], found.truth["bias"])


def test_without_ratings_drawn_at_random_the_log_does_not_decide_and_says_what_would_help(found):
    assert found.blind.level != "verdict"
    assert found.blind.remedy
    assert re.search(facts("activity and popularity", found.blind.headline), found.findings()[0])
    assert re.search(facts("200 ratings", "mf-ips beats"), found.findings()[1])


def test_intervals_hold_the_truth_where_the_plain_ones_do_not(found):
    for model, truth in found.truth.items():
        assert truth in found.audit.result[model, "mae", "snips"].interval(0.999)
        assert truth not in found.audit.result[model, "mae", "naive"].interval(0.999)


def test_a_tiny_world_is_still_judged():
    tiny = audited_world(10, 50, seed=0)
    assert not tiny.audit.verdict.supported  # ten users are too few
    assert all(np.isfinite(value) for value in tiny.truth.values())


MODELS = ("REC_ONES", "REC_FOURS", "ROTATE", "SKEWED", "COARSENED")


@pytest.fixture(scope="module")
def shown():
    return d.demonstrate(300, 400, seed=0)


# -- by simulation with known truth --------------------------------------------------------------------------


@pytest.mark.parametrize("estimator", ["ips", "snips", "stratified"])
def test_weighted_estimates_are_within_five_standard_errors_of_the_truth(shown, estimator):
    for model in MODELS:
        for metric in d.METRICS:
            judged = shown[model, metric, estimator]
            error = (judged.high - judged.low) / 2 / 1.96
            assert abs(judged.value - judged.truth) <= 5 * error + 1e-9


def test_naive_errs_as_in_the_paper(shown):
    assert ("REC_ONES", "REC_FOURS") in shown.order("mae", "naive").wrong
    assert not any(shown[model, metric, "naive"].covers for model in MODELS for metric in d.METRICS)
    ones, fours = (shown[model, "mae", "ips"].truth for model in ("REC_ONES", "REC_FOURS"))
    assert ones / fours == pytest.approx(4, rel=0.01)
    assert re.search(facts("REC_ONES to REC_FOURS", "4 times"), shown.findings()[0])
