"""One protocol: labels from a threshold on, p at the rows, settings that cross-validation on the log chooses."""

from __future__ import annotations

import numpy as np
import pytest

import openloop as ol
from openloop.studies.race.protocol import FOLDS, QUICK_FOLDS, Entrant, predicted, settled, starting


def bias(_):
    return ol.learners.Bias()


@pytest.fixture
def start(ground):
    return starting(ground.given, label=0, seed=0, quick=False)


def test_a_trial_is_given_no_rating_of_the_test_set(ground):
    assert sorted(ground.given) == [
        "item", "item_covariates", "p", "rating", "shape", "test_item", "test_user", "user", "user_covariates",
    ]  # fmt: skip
    assert len(ground.given["rating"]) == len(ground.log)


def test_the_log_starts_with_the_p_of_its_rows_from_a_grid_or_from_rows(ground, start):
    log = ground.log
    rows = ground.p[log.user, log.item]
    assert start.log.propensity == pytest.approx(rows)
    assert start.log.rating == pytest.approx(log.rating)
    by_rows = starting({**ground.given, "p": rows}, label=0, seed=0, quick=True)
    assert by_rows.log.propensity == pytest.approx(rows)
    assert (start.folds, by_rows.folds) == (FOLDS, QUICK_FOLDS)


def test_labels_begin_at_the_threshold(ground):
    labels = starting(ground.given, label=4, seed=0, quick=True).log.rating
    assert labels.tolist() == (ground.log.rating >= 4).astype(float).tolist()


def test_the_setting_is_that_of_select_on_the_log(start):
    found = settled(Entrant(bias, {"reg": (0.1, 3.0, 1000.0)}), start)
    asked = ol.select(ol.learners.Bias(), start.log, start.p, grid={"reg": [0.1, 3.0, 1000.0]}, rng=0)
    assert found.chosen == asked.best
    assert found.model.user_bias_.tolist() == asked.model.user_bias_.tolist()


def test_an_unweighted_learner_is_selected_under_p_too(start):
    found = settled(Entrant(bias, {"reg": (3.0,)}, weighted=False), start)
    assert found.model.user_bias_ == pytest.approx(ol.learners.Bias(3.0).fit(start.log).user_bias_)


def test_without_a_grid_the_learner_is_fitted_as_it_is(ground, start):
    found = settled(Entrant(bias, {}), start)
    assert found.chosen == {}
    weighted = ol.learners.Bias().fit(start.log, 1 / np.asarray(start.log.propensity))
    assert found.model.user_bias_ == pytest.approx(weighted.user_bias_)
    outcome = predicted(found, ground.given)
    assert outcome["prediction"] == pytest.approx(weighted.predict(ground.test.user, ground.test.item))


def test_a_quick_run_tries_the_middle_two():
    one = Entrant(bias, {"reg": (1, 2, 3, 4, 5), "x": (7,)})
    assert one.settings(quick=True) == {"reg": (2, 3), "x": (7,)}
    assert one.settings(quick=False) == one.grid
