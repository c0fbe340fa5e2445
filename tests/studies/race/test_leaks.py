"""Leaks: what tuning gains is computed by hand on small tables; halves of users are never both tuned on and tested."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from openloop.propensity.naive_bayes import NaiveBayes
from openloop.studies.race import leaks
from openloop.studies.race.measures import AUC, MSE, NDCG
from openloop.studies.race.user_draws import Resampled
from tests.studies.race.conftest import U, claim_about


def test_random_settings_have_an_error_on_the_log_and_predictions_of_the_test(ground):
    found = leaks.random_settings(ground.given, draw=0, number=4, seed=0, quick=True)
    assert found["prediction"].shape == (4, len(ground.test))
    assert (found["error"] > 0).all()
    assert len(set(found["error"].tolist())) == 4
    other = leaks.random_settings(ground.given, draw=1, number=4, seed=0, quick=True)
    assert set(other["error"].tolist()).isdisjoint(found["error"].tolist())


def test_settings_are_even_in_their_logarithms():
    rng = np.random.default_rng(0)
    drawn = [leaks._drawn(rng) for _ in range(2000)]
    reg = np.log([one["reg"] for one in drawn]) / np.log(50)
    assert abs(reg.mean() - 0.5) < 4 * np.sqrt(1 / 12 / 2000)
    assert {min(one["factors"] for one in drawn), max(one["factors"] for one in drawn)} <= set(range(2, 33))


def test_the_gain_is_of_the_best_over_the_one_that_the_log_chooses(monkeypatch):
    monkeypatch.setattr(leaks, "HALVES", 2)
    # Three settings; the log prefers the second. Columns: all users, two halves, their other halves.
    errors = np.array([2.0, 1.0, 3.0])
    table = np.array([[0.7, 0.9, 0.6, 0.5, 0.8], [0.6, 0.6, 0.6, 0.6, 0.6], [0.5, 0.5, 0.7, 0.5, 0.4]])
    found = leaks._tuned([errors], [table])
    assert found.chosen == pytest.approx([0.6])
    assert found.gain == pytest.approx([0.1])
    assert found.tuned_half == pytest.approx([(0.3 + 0.1) / 2])
    assert found.other_half == pytest.approx([(-0.1 + -0.2) / 2])


def test_p_from_test_ratings_is_naive_bayes_of_their_shares(ground):
    log = replace(ground.log, propensity=None)
    p = leaks._bayes(log, ground.test.rating)
    model = NaiveBayes().fit(log, uniform=ground.test.rating)
    assert p == pytest.approx([model.propensity_by_rating_[r] for r in log.rating.tolist()])


def test_users_without_positives_are_the_whole_difference(ground):
    finish = leaks.Finish(
        name="x", entrant=leaks.RACERS["popularity"], predictions={0: np.zeros((1, len(ground.test)))}, chosen=()
    )
    positive = ground.test.rating >= 5
    none = U - len(np.unique(ground.test.user[positive]))
    assert none > 0
    out, one = leaks._inflation(ground.test, finish, 5)
    assert one == pytest.approx((out * (U - none) + none) / U)


def test_a_small_run_has_three_tables_and_claims_that_can_fail(ground, run, monkeypatch):
    monkeypatch.setattr(leaks, "coat_ground", lambda _: ground)
    monkeypatch.setattr(type(run), "load", lambda *_: None)
    result = leaks.leaks(run)
    tuning, bayes, ones = result.tables
    assert [row[0] for row in tuning.rows] == [AUC, NDCG]
    assert all(row[2].value >= 0 for row in tuning.rows)
    assert [row[0] for row in bayes.rows] == [leaks.NO_P, leaks.OF_COVARIATES, leaks.OF_SOME, leaks.OF_ALL]
    assert len(ones.rows) == 6
    nothing = leaks.Tuned(*(np.array([0.0, 1e-9, -1e-9]) for _ in range(4)))
    same = {MSE: Resampled(np.append(0.0, np.random.default_rng(0).normal(size=100)))}
    told = list(
        leaks.claims({AUC: nothing}, dict.fromkeys((leaks.NO_P, leaks.OF_COVARIATES, leaks.OF_ALL), same), (0.5, 0.55))
    )
    assert not any(claim.holds for claim in told)
    assert claim_about(result.claims, "nDCG@5", "random order").found
