"""A Feedback and models made ready: what is resolved once, before any row is reduced."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import openloop as ol
from openloop.errors import AlignmentError, InputError, PredictionError, UndefinedError
from openloop.sources.arrays.preparing import from_feedback
from openloop.sources.question import Question
from tests.examples import small_world
from tests.facts import facts

WORLD = small_world()
LOG = WORLD.observe(1)
SCORES = WORLD.predictions["a"]
SOME = pl.DataFrame({"user": LOG.user, "item": LOG.item, "score": SCORES[LOG.user, LOG.item]})


def source(models=None, log=LOG, propensities=None, **options):
    asked = Question(**({"metrics": ["mae"], "estimators": ["naive"]} | options))
    return from_feedback(models or {"a": SCORES}, log, propensities, asked)


def test_rows_without_a_prediction_leave_with_all_that_belongs_to_them():
    groups = {"half": np.arange(len(LOG)) % 2}
    found, notes = source({"a": SCORES, "b": SOME.tail(-3)}, missing="drop", groups=groups)
    scored = found._scored
    assert len(scored.log) == len(LOG) - 3
    assert scored.log.origin == LOG.fingerprint
    assert {len(values) for values in (*scored.predicted.values(), scored.groups["half"][1])} == {len(LOG) - 3}
    np.testing.assert_array_equal(scored.propensity, LOG.propensity[3:])
    assert notes[0].startswith("3 rows")


def test_rows_without_a_prediction_may_count_as_the_furthest_rating():
    found, _ = source({"b": SOME.tail(-3)}, missing="worst")
    worst = np.where(LOG.rating - 1 > 5 - LOG.rating, 1, 5)
    np.testing.assert_array_equal(found._scored.predicted["b"][:3], worst[:3])


def test_models_that_serve_no_ratings_are_left_out_where_nobody_asked_for_them():
    found, _ = source({"a": SCORES, "b": SOME.tail(-3)}, metrics=["mae", "recall@3"], lenient=True)
    assert list(found._scored.predicted) == ["a"]
    with pytest.raises(PredictionError, match=f"'b': no prediction for 3 of {len(LOG)} "):
        source({"b": SOME.tail(-3)})


def test_ratings_are_not_asked_of_models_where_only_rankings_are_judged():
    assert source(metrics=["recall@3"])[0]._scored.predicted == {}


def test_the_threshold_is_given_or_that_of_the_scale():
    assert source()[0]._scored.threshold == 4
    assert source(threshold=2.5)[0]._scored.threshold == 2.5
    clicks = ol.Feedback.from_arrays(LOG.user, LOG.item, np.ones(len(LOG)), users=30, items=12)
    assert source(log=clicks)[0]._scored.threshold == 1


def test_groups_have_a_label_for_each_row_and_not_too_many():
    with pytest.raises(AlignmentError, match=r"groups\['g'\]"):
        source(groups={"g": np.zeros(3)})
    with pytest.raises(InputError, match=r"groups\['g'\]: .* 50"):
        source(groups={"g": np.arange(len(LOG))})


def test_a_floor_counts_what_it_raised():
    floored = ol.Propensities(values=LOG.propensity, floor=0.5)
    scored = source(propensities=floored)[0]._scored
    assert scored.floored == np.mean(LOG.propensity < 0.5)
    np.testing.assert_array_equal(scored.propensity, np.maximum(LOG.propensity, 0.5))
    assert source(propensities=WORLD.propensities)[0]._scored.grid is not None


@pytest.mark.parametrize("given", [np.full((30, 12), np.nan), np.ones((12, 30)), 3])
def test_imputations_are_a_number_for_every_cell(given):
    with pytest.raises(InputError, match="imputation"):
        source(imputation=given)


def test_a_log_of_positives_takes_exposure_that_is_given_and_none_that_was_fitted_on_it():
    clicks = replace(LOG, rating=np.ones(len(LOG)), positives=True)
    for p in (None, LOG.propensity, ol.propensity.Known().fit(clicks), ol.propensity.Uniform().fit(clicks)):
        _, notes = source(log=clicks, propensities=p)
        assert any("positives" in note for note in notes)
    for model in (
        ol.propensity.Popularity(),
        ol.propensity.Calibrated(ol.propensity.Logistic(), method=None, floor=0.01),
    ):
        with pytest.raises(UndefinedError, match=facts("positives", "shown", "column")):
            source(log=clicks, propensities=model.fit(clicks))


class Shares:
    """A propensity model of one's own: fit and predict, and nothing else."""

    def fit(self, feedback):
        self.p = (np.bincount(feedback.item, minlength=feedback.n_items) + 1) / (feedback.n_users + 2)
        return self

    def predict(self, feedback):
        return ol.Propensities(values=self.p[feedback.item])


class TurnedShares(Shares):
    def matrix(self):
        return np.tile(self.p[:, None], (1, 30))


def test_a_propensity_model_without_a_matrix_gives_what_its_numbers_give():
    world = small_world()
    log, asked = world.observe(3), {"metrics": ["mae", "recall@3"], "estimators": ["ips", "snips", "stratified@3"]}
    model = Shares().fit(log)
    found = ol.evaluate(world.predictions, log, model, **asked)
    wanted = ol.evaluate(world.predictions, log, model.p[log.item], **asked)
    for key, estimate in wanted.estimates.items():
        assert found[key].value == estimate.value
        assert found[key].stderr == estimate.stderr


def test_a_matrix_of_another_shape_is_refused():
    world = small_world()
    log = world.observe(3)
    with pytest.raises(AlignmentError, match=facts("TurnedShares.matrix()", "(30, 12)", "(12, 30)")):
        ol.evaluate(world.predictions, log, TurnedShares().fit(log))


def test_an_audit_of_a_model_that_cannot_be_copied_says_what_it_left_out():
    world = ol.simulate.movie_lovers()
    log = world.observe(rng=0)
    models = {name: world.predictions[name] for name in ("Y1", "Y2")}
    found = ol.audit(models, log, Shares().fit(log), metrics=["mae"])
    assert facts_in(found.check.not_computed["calibration"], "Shares", "matrix()")
    assert found.verdict.level != "verdict"  # p by item is blind to the rating, and Y1 is better
    with pytest.raises(InputError, match=facts("refit=", "Shares", "refit(feedback)")):
        ol.evaluate(models, log, Shares().fit(log), refit=True)


def facts_in(text, *parts):
    return re.search(facts(*parts), text)
