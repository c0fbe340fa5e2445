"""One protocol: labels from a threshold on, p at the rows, settings that cross-validation on the log chooses."""

from __future__ import annotations

import pytest

import openloop as ol
from openloop.studies.race.protocol import FOLDS, QUICK_FOLDS, Entrant, settled, starting


def bias(_):
    return ol.learners.Bias()


@pytest.fixture
def start(ground):
    return starting(ground.given, seed=0, quick=False)


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
    by_rows = starting({**ground.given, "p": rows}, seed=0, quick=True)
    assert by_rows.log.propensity == pytest.approx(rows)
    assert (start.folds, by_rows.folds) == (FOLDS, QUICK_FOLDS)


def test_the_setting_is_that_of_select_on_the_log(start):
    found = settled(Entrant(bias, {"reg": (0.1, 3.0, 1000.0)}), start)
    asked = ol.select(ol.learners.Bias(), start.log, start.p, grid={"reg": [0.1, 3.0, 1000.0]}, rng=0)
    assert found.chosen == asked.best
    assert found.model.user_bias_.tolist() == asked.model.user_bias_.tolist()
