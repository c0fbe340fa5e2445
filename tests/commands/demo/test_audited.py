"""The choice of the demo: blind propensities do not decide, balanced ones name the truly best model."""

from __future__ import annotations

import re

import numpy as np
import pytest

from openloop.commands.demo.audited import METRICS, audited_world
from tests.facts import facts


@pytest.fixture(scope="module")
def found():
    return audited_world(200, 300, seed=1)


def test_the_audit_names_the_truly_best_model(found):
    assert found.audit.verdict.winner == found.best == "mf-ips"
    assert found.truth["mf-ips"] < min(found.truth["mf"], found.truth["bias"])


def test_the_plain_average_does_not(found):
    assert found.audit.result.ranking("mae", "naive")[0] != found.best
    assert re.search(facts("plain average", found.audit.result.ranking("mae", "naive")[0]), found.findings()[2])


def test_without_ratings_drawn_at_random_the_log_does_not_decide_and_says_what_would_help(found):
    assert found.blind.level != "verdict"
    assert found.blind.remedy
    assert re.search(facts("activity and popularity", found.blind.headline), found.findings()[0])
    assert re.search(facts("200 ratings", "mf-ips beats"), found.findings()[1])


def test_intervals_hold_the_truth_where_the_plain_ones_do_not(found):
    for model, truth in found.truth.items():
        assert truth in found.audit.result[model, "mae", "snips"].interval(0.999)
        assert truth not in found.audit.result[model, "mae", "naive"].interval(0.999)


def test_it_has_an_open_loop_and_all_metrics(found):
    assert found.audit.result.metrics == METRICS
    by = {s.estimator: s for s in found.audit.open_loop.scores if s.metric == "mae"}
    assert by["snips"].error < by["naive"].error
    assert by["snips"].right >= 2  # mf-ips is first; mf and bias differ by less than 1 %


def test_the_same_seed_is_the_same_choice(found):
    again = audited_world(200, 300, seed=1)
    assert again.truth == found.truth
    assert again.audit.verdict == found.audit.verdict


def test_a_tiny_world_is_still_judged():
    tiny = audited_world(10, 50, seed=0)
    assert not tiny.audit.verdict.supported  # ten users are too few
    assert all(np.isfinite(value) for value in tiny.truth.values())
