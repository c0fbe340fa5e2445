"""What weights rest on may be too little for a verdict, however clear the difference is."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from openloop.audits.auditing import audit
from openloop.audits.basis import Basis
from openloop.audits.suspicions import copies, off_scale
from openloop.audits.verdict import decide
from openloop.core.feedback import Feedback
from openloop.core.propensities import Propensities
from openloop.moments.requests import Answers, LogFacts
from tests.verdicts import comparison, evidence


def clear(basis):
    """Evidence of two models that differ clearly, with weights that rest on this."""
    users = np.random.default_rng(3).normal(0.3, 0.1, 400)
    return evidence(comparison({"mf": users + 0.05, "bpr": users}), basis=basis, ranked=False)


def test_weights_by_the_rating_alone_judge_ratings_and_no_rankings():
    basis = Basis(sample=600, by_rating=True)
    assert decide(clear(basis)).level == "verdict"
    found = decide(replace(clear(basis), ranked=True))
    assert (found.level, found.reasons[0].code) == ("none", "by-rating")
    assert "Balanced" in found.remedy
    alone = replace(clear(replace(basis, balanced=True)), ranked=True)
    assert decide(alone).level == "none"  # balancing by the rating adds nothing to weights by the rating
    balanced = replace(clear(Basis(sample=600, balanced=True)), ranked=True)
    assert decide(balanced).level == "verdict"


def test_the_guess_of_a_joint_model_is_no_ground():
    found = decide(clear(Basis(modelled=True)))
    assert (found.level, [r.code for r in found.reasons]) == ("none", ["modelled"])
    assert "Balanced" in found.remedy


@pytest.mark.parametrize(("unseen", "level"), [(0.05, "verdict"), (0.06, "none")])
def test_ratings_that_the_log_never_has_are_no_ground(unseen, level):
    assert decide(clear(Basis(sample=600, balanced=True, unseen=unseen))).level == level


SHARE = 0.28  # of the ratings that are 4 or 5
LOW = (0.6 - SHARE * 0.35) / (1 - SHARE), (0.6 - SHARE * 0.85) / (1 - SHARE)  # so that both are off by 0.6


def equals(seed, users=300, items=60):
    """Two models with equal errors on all cells, all ratings, and a log that has more of the high ones."""
    rng = np.random.default_rng(seed)
    high = np.broadcast_to(rng.permuted(np.arange(items) < SHARE * items, axis=0), (users, items))
    high = rng.permuted(high, axis=1)
    ratings = np.where(high, 4.0, 2.0)
    p = np.clip(0.05 * 3.0**high * np.exp(0.7 * rng.normal(size=(users, items))), 0.003, 1)
    user, item = np.nonzero(rng.random(p.shape) < p)
    models = {
        name: ratings + np.where(high, off, low) * rng.choice([-1, 1], ratings.shape)
        for name, off, low in zip("ab", (0.35, 0.85), (LOW), strict=True)
    }
    log = Feedback.from_arrays(user, item, ratings[user, item], users=users, items=items, propensity=p[user, item])
    return models, ratings, log


@pytest.mark.parametrize(("floor", "estimator"), [(0.05, "snips"), (0.06, "ips"), (0.0, "clipped@18")])
def test_weights_that_are_cut_do_not_tell_equal_models_apart(floor, estimator):
    wrong, cut = 0, 0
    for seed in range(12):
        models, _, log = equals(seed)
        known = Propensities(values=log.propensity, floor=floor)
        found = audit(models, log, known, metrics=["mae"], estimators=[estimator], strata=[], check=False)
        wrong += found.verdict.level == "verdict"
        cut += any(reason.code == "cut" for reason in found.verdict.reasons)
        assert found.result["a", "mae", estimator].diagnostics.kept_weight > 0.75  # which no other rule is against
    assert wrong <= 1
    assert cut > 9


@pytest.mark.parametrize("metric", ["mae", "rmse", "recall@10"])
def test_a_difference_that_exceeds_what_is_cut_off_is_told(metric):
    ratings, log = equals(0)[1:]
    near = ratings + np.random.default_rng(0).normal(0, 0.3, ratings.shape)
    models = {"near": near, "far": near + np.random.default_rng(1).normal(0, 2.5, near.shape)}
    known = Propensities(values=log.propensity, floor=0.02)
    found = audit(models, log, known, metrics=[metric], estimators=["snips"], strata=[], check=False)
    assert found.result["near", metric, "snips"].diagnostics.kept_weight < 0.99
    assert (found.verdict.level, found.verdict.winner) == ("verdict", "near")


def test_what_is_cut_off_is_unknown_where_losses_are():
    users = np.random.default_rng(3).normal(0.3, 0.1, 400)
    found = decide(evidence(comparison({"mf": users + 0.05, "bpr": users}, kept_weight=0.99), ranked=False))
    assert (found.level, [r.code for r in found.reasons]) == ("none", ["cut"])
    assert decide(evidence(comparison({"mf": users + 0.05, "bpr": users}, kept_weight=1.0))).level == "verdict"


ABOUT = LogFacts(rows=9, users=3, items=3, scored_users=3, ratings=(), span=(1.0, 5.0), threshold=4.0)


@pytest.mark.parametrize(("low", "high", "off"), [(1, 5, False), (-7, 13, False), (-7.1, 5, True), (1, 13.1, True)])
def test_predictions_more_than_twice_the_scale_beyond_it_are_on_another(low, high, off):
    assert off_scale(Answers(low=low, high=high, copied=0.0), ABOUT) is off


@pytest.mark.parametrize(("copied", "leak"), [(0.5, False), (0.98, False), (0.99, True), (1.0, True)])
def test_nearly_all_rows_must_be_copied_for_a_leak(copied, leak):
    source = SimpleNamespace(answers=lambda _: Answers(low=1.0, high=5.0, copied=copied), about=lambda: ABOUT)
    assert copies(source, "m") is leak
