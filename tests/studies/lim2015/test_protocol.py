"""The protocol: laws of densification, of the parts and of a trial; what is chosen; paired means by hand."""

from __future__ import annotations

import numpy as np
import pytest

import openloop as ol
from openloop.core.feedback import Feedback
from openloop.studies.lim2015.protocol import (
    Competitor,
    Fit,
    Fits,
    by_user,
    densified,
    over_folds,
    over_users,
    parts,
    trial,
)
from openloop.studies.lim2015.published import ADG, AUC, MEASURES
from tests.studies.lim2015.fitted import positives


def feedback(given):
    users, items = given["shape"].tolist()
    return Feedback.from_arrays(given["user"], given["item"], np.ones(len(given["user"])), users=users, items=items)


# -- densification -------------------------------------------------------------------------------------------


def test_densification_by_hand():
    # Items have 2, 3, 1, 2 positives: item 1 and, the first among equals, item 0 stay. Of these the users like 2, 1, 2,
    # 0: users 0 and 2 stay, although user 3 likes two items altogether.
    user, item = np.nonzero([[1, 1, 0, 0], [0, 1, 0, 0], [1, 1, 0, 1], [0, 0, 1, 1]])
    dense = densified(user, item, (4, 4), (2, 2))
    assert dense["shape"].tolist() == [2, 2]
    assert list(zip(dense["user"].tolist(), dense["item"].tolist(), strict=True)) == [(0, 0), (0, 1), (1, 0), (1, 1)]


# -- parts ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("n", "counts"), [(1, (0, 0)), (3, (0, 1)), (5, (1, 1)), (10, (1, 2)), (94, (9, 19))])
def test_a_tenth_and_a_fifth_of_each_users_positives_are_held_out(n, counts):
    liked = Feedback.from_arrays(np.repeat([0, 1], [n, 100]), np.r_[:n, :100], np.ones(n + 100))
    train, validation, test = parts(liked, np.random.default_rng(0))
    assert np.bincount(validation.user, minlength=2).tolist() == [counts[0], 10]
    assert np.bincount(test.user, minlength=2).tolist() == [counts[1], 20]
    assert np.array_equal(np.sort(np.concatenate([train.cell, validation.cell, test.cell])), liked.cell)


# -- a trial -------------------------------------------------------------------------------------------------


def test_measures_by_user_average_to_those_of_evaluate_with_only_training_excluded():
    train, validation, test = parts(feedback(positives(1)), np.random.default_rng(0))
    model = ol.learners.Popularity().fit(train)
    for part in (validation, test):
        found = ol.evaluate({"m": model}, part, metrics=MEASURES, estimators=["naive"], exclude=train, threshold=1)
        values = by_user(model, part, train)
        assert np.array_equal(~np.isnan(values[0]), np.bincount(part.user, minlength=60) > 0)
        for measure, row in zip(MEASURES, values, strict=True):
            assert np.nanmean(row) == pytest.approx(found["m", measure, "naive"].value, rel=1e-5)


def test_a_trial_is_the_same_again_and_differs_by_fold_and_seed():
    given, setting = positives(2), {"learner": ADG, "updates": 2000, "reg": 0.1, "rate": 0.1}
    first = trial(given, seed=0, fold=0, **setting)
    again = trial(given, seed=0, fold=0, **setting)
    assert all(np.array_equal(first[name], again[name], equal_nan=True) for name in first)
    for other in (trial(given, seed=0, fold=1, **setting), trial(given, seed=1, fold=0, **setting)):
        assert not np.array_equal(first["test"], other["test"], equal_nan=True)


def test_where_taste_is_what_is_missing_the_learners_find_it():
    given = positives(4)
    for params in ({"learner": AUC}, {"learner": ADG}):
        outcome = trial(given, seed=0, fold=0, updates=30_000, reg=0.3, rate=0.1, **params)
        assert np.nanmean(outcome["test"][MEASURES.index("atop")]) > 0.65  # chance has 0.5
    svd = trial(given, seed=0, fold=0, learner="SVD", factors=2)
    assert np.nanmean(svd["test"][MEASURES.index("atop")]) > 0.65


def test_a_fit_that_diverges_has_no_outcome():
    setting = {"learner": AUC, "updates": 200_000, "reg": 0.0, "rate": 1e6}
    assert trial(positives(5), seed=0, fold=0, **setting) == {}


# -- what is chosen ------------------------------------------------------------------------------------------


def fit(fold, reg, validation, test, learner=AUC):
    """All measures have the same value, for two users."""
    values = {"validation": np.full((5, 2), validation), "test": np.full((5, 2), test)}
    return Fit({"fold": fold, "learner": learner, "updates": 10, "reg": reg}, values)


def of(*fits):
    return Fits("made up", {}, 10, fits, (0, 0, 0))


def test_each_fold_takes_what_is_best_on_its_validation_part_and_shows_its_test_value():
    found = of(fit(0, 0.1, 0.5, 0.1), fit(0, 0.2, 0.4, 0.9), fit(1, 0.1, 0.3, 0.8), fit(1, 0.2, 0.6, 0.2))
    assert [f.setting["reg"] for f in found.chosen(Competitor(AUC, 10))] == [0.1, 0.2]
    assert found.users(Competitor(AUC, 10), "map").tolist() == [[0.1, 0.1], [0.2, 0.2]]


# -- statistics ----------------------------------------------------------------------------------------------


def test_users_without_a_value_are_left_out():
    a, b = np.array([[1.0, 2.0, np.nan], [3.0, 5.0, np.nan]]), np.array([[0.0, 0.0, np.nan], [0.0, 1.0, np.nan]])
    assert over_users(a, b).value == np.mean([2, 3])
    assert over_folds(a).value == np.mean([1.5, 4])
    assert over_folds(a).stderr == np.std([1.5, 4], ddof=1) / np.sqrt(2)
