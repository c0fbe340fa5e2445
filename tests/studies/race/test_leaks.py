"""Leaks: what tuning gains is computed by hand on small tables; halves of users are never both tuned on and tested."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from openloop.propensity.naive_bayes import NaiveBayes
from openloop.studies.race import leaks
from openloop.studies.race.measures import AUC, NDCG
from tests.studies.race.conftest import U


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


@pytest.fixture
def small(ground, run, monkeypatch):
    """All leaks on the small ground."""
    monkeypatch.setattr(leaks, "coat_ground", lambda _: ground)
    monkeypatch.setattr(type(run), "load", lambda *_: None)
    return leaks.leaks(run)


def test_a_small_run_has_three_tables(small, ground, run):
    tuning, bayes, ones = small.tables
    assert [row[0] for row in tuning.rows] == [AUC, NDCG]
    assert [row[0] for row in bayes.rows] == [leaks.NO_P, leaks.OF_COVARIATES, leaks.OF_SOME, leaks.OF_ALL]
    assert len(ones.rows) == 6
    assert len(small.claims) == 3
    # The AUC of the setting that the log chooses, by counting pairs.
    positive, settings = ground.test.rating >= 3, {"number": leaks.QUICK_TRIED, "seed": 0, "quick": True}
    found = [leaks.random_settings(ground.given, draw=d, **settings) for d in range(leaks.QUICK_TUNINGS)]
    chosen = [one["prediction"][one["error"].argmin()].astype(float) for one in found]
    above = [np.sign(f[positive][:, None] - f[~positive]).mean() for f in chosen]
    assert tuning.rows[0][1].value == pytest.approx((1 + np.mean(above)) / 2)


def test_mf_without_p_is_not_even_selected_by_one(ground):
    none = {**ground.given, "p": np.full(len(ground.log), 0.1)}
    one, other = (leaks.raced(given, entrant=leaks.NO_P, label=0, seed=0, quick=True) for given in (ground.given, none))
    assert one["prediction"].tolist() == other["prediction"].tolist()


def test_stars_of_one_half_are_tested_on_both(ground, run, monkeypatch):
    monkeypatch.setattr(leaks, "QUICK_SPLITS", 1)
    found = leaks.own_stars(run, ground)
    (half, _) = leaks._halved(U, np.random.default_rng([0, leaks.SPLITTING]))
    assert half.sum() == U // 2
    mine, truth = half[ground.test.user] == 1, ground.test.rating
    errors = {}
    for told in (True, False):
        given = {**ground.given, "p": leaks._bayes(ground.log, truth[mine == told])}
        f = leaks.raced(given, entrant=leaks.BASELINE, label=0, seed=0, quick=True)["prediction"]
        errors |= {(told, tested): np.mean((f - truth)[mine == tested] ** 2) for tested in (True, False)}
    assert found.own == pytest.approx([(errors[True, True] + errors[False, False]) / 2])
    assert found.other == pytest.approx([(errors[True, False] + errors[False, True]) / 2])
    assert found.own != pytest.approx(found.other, abs=1e-9)


def three(*means):
    return (mean + np.array([0.0, 1e-3, -1e-3]) for mean in means)


@pytest.mark.parametrize(
    ("means", "own", "holds"),
    [
        ((0.8, 0.02, 0.02, 0.02), (1.0, 1.0), [True, False, False]),
        ((0.8, 0.001, 0.02, 0.01), (1.0, 1.0), [False, True, False]),
        ((0.8, 0.001, 0.01, 0.02), (0.9, 1.0), [False, False, True]),
        ((0.8, 0.001, 0.01, 0.02), (1.1, 1.0), [False, False, False]),
    ],
)
def test_every_claim_can_hold_and_can_fail(means, own, holds):
    wobble = np.array([1e-3, -1e-3, 0.0])  # of the tested half alone: else no gap would have a spread
    mine, other = three(*own)
    chosen, gain, tuned_half, other_half = three(*means)
    tuned = {AUC: leaks.Tuned(chosen, gain, tuned_half + wobble, other_half)}
    assert [claim.holds for claim in leaks.claims(tuned, leaks.OwnStars(mine + wobble, other))] == holds


def test_counting_users_without_positives_as_one_shrinks_differences_by_their_share(small, ground):
    none = U - len(np.unique(ground.test.user[ground.test.rating >= 4]))
    assert none > 0
    (note,) = (note for note in small.notes if "random order" in note)
    assert f"s is {100 * none / U:.0f} %" in note
    four = [row for row in small.tables[2].rows if "4 stars" in row[0]]
    (_, out, one, _), (_, other_out, other_one, _) = (row[1:] for row in four[:2])
    shrunk = (one.value - other_one.value) / (out.value - other_out.value)
    assert shrunk == pytest.approx(1 - none / U)
