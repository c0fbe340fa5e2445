"""P(observed | rating, cell) of a joint model: by hand, the contract of propensity models, shares, and refusals."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

import openloop as ol
from openloop.core.feedback import Feedback
from openloop.data.simulate import movie_lovers
from openloop.errors import RatingError, UndefinedError
from openloop.learners.rating_levels import check_unweighted, level_codes, levels_of_log
from openloop.learners.rating_propensities import JointModel, RatingPropensities
from tests.contracts import PropensityModelContract
from tests.facts import facts


class Even(JointModel):
    """All levels are equally common; P(observed | level) follows from their counts, of odd items halved if asked."""

    def __init__(self, by_items: bool = False):
        self.by_items = by_items

    @property
    def fits_items(self):
        return self.by_items

    def fit(self, feedback, sample_weight=None, propensities=None):
        check_unweighted(self, feedback, sample_weight, propensities)
        self.levels_ = levels_of_log("Even", feedback)
        cells = feedback.n_users * feedback.n_items / len(self.levels_)
        self.rates_ = np.bincount(level_codes(feedback, self.levels_)) / cells
        return self._remember(feedback)

    def _proba(self, user, item):
        return np.full((len(user), len(self.levels_)), 1 / len(self.levels_))

    def _observed(self, user, item):
        return self.rates_ * np.where(self.by_items & (item % 2 == 1), 0.5, 1.0)[:, None]


class TestRatingPropensities(PropensityModelContract):
    has_matrix = has_margins = sums_to_log = False

    def make(self):
        return RatingPropensities(Even())


class TestRatingPropensitiesByItems(TestRatingPropensities):
    def make(self):
        return RatingPropensities(Even(by_items=True))


# 10 × 10 cells, five levels of 20 cells each by the model; 1 is seen twice, 5 eight times
LOG = Feedback.from_arrays(
    np.arange(16) % 10, np.arange(16) // 2, [1, 1, 2, 2, 3, 3, 4, 4, *[5] * 8], users=10, items=10
)


def test_by_hand():
    p = Even().fit(LOG).propensities_
    np.testing.assert_allclose(p.by_level([3, 4], [0, 1]), [[0.1, 0.1, 0.1, 0.1, 0.4]] * 2)
    np.testing.assert_allclose(p.predict(LOG).values, np.where(LOG.rating == 5, 0.4, 0.1))
    assert p.levels_.tolist() == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("by_items", [False, True])
def test_what_p_depends_on_is_told(by_items):
    p = Even(by_items=by_items).fit(LOG).propensities_.predict(LOG)
    assert (p.by_rating, p.by_items, p.by_cells, p.blind) == (not by_items, by_items, False, False)
    assert np.ptp(p.values[LOG.rating == 5]) == pytest.approx(0.2 * by_items)


def test_p_of_a_part_is_that_of_the_log():
    # every second row: half of the rates, divided by the share of 1/2; capped at 1 where the part says more
    part = LOG.take(np.arange(16) % 2 == 0, share=np.full(8, 0.5))
    model = Even().fit(part)
    assert model.share_ == 0.5
    np.testing.assert_allclose(model.propensities_.by_level([0], [0])[0], 2 * model.rates_)
    tiny = LOG.take(np.arange(16) % 2 == 0, share=np.full(8, 0.01))
    assert Even().fit(tiny).propensities_.predict(LOG).values.max() == 1


def test_a_part_without_a_share_predicts_ratings_and_no_p():
    model = Even().fit(LOG.take(np.arange(16) % 2 == 0, share=None))
    assert model.predict([0], [0])[0] == pytest.approx(3)
    with pytest.raises(UndefinedError, match=facts("RatingPropensities", "share", "fit on the whole log")):
        _ = model.propensities_


def test_an_unknown_rating_has_no_p():
    half = Feedback.from_arrays([0, 0], [0, 1], [3.5, 5], users=LOG.users, items=LOG.items)
    above = Feedback.from_arrays([0, 0], [0, 1], [5, 6], users=LOG.users, items=LOG.items)
    p = Even().fit(LOG).propensities_
    for log, rating in ((half, 3.5), (above, "6.0")):
        with pytest.raises(RatingError, match=facts("RatingPropensities", rating, "all levels")):
            p.predict(log)


def test_an_unfitted_joint_model_has_none():
    with pytest.raises(NotFittedError, match="fit"):
        _ = Even().propensities_


def test_evaluate_audit_and_learners_take_it():
    world = movie_lovers(users=30, items=20)
    log = world.observe(7)
    p = Even().fit(log).propensities_
    models = {"bias": ol.learners.Bias().fit(log, propensities=p), "mean": ol.learners.GlobalAverage().fit(log)}
    got = ol.evaluate(models, log, p, metrics=["mae"], estimators=["snips"])
    values = p.predict(log).values
    mae = np.average(np.abs(models["bias"].predict(log.user, log.item) - log.rating), weights=1 / values)
    assert got["bias", "mae", "snips"].value == pytest.approx(mae)
    refit = ol.evaluate(models, log, p, metrics=["mae"], estimators=["snips"], refit=True, replicates=5, rng=0)
    assert refit["bias", "mae", "snips"].stderr > 0
    assert "modelled" in {reason.code for reason in ol.audit(models, log, p, metrics=["mae"]).verdict.reasons}


def test_ratings_drawn_at_random_take_the_place_of_the_guess():
    p = Even().fit(LOG).propensities_
    balanced = ol.propensity.Balanced(p).fit(LOG, uniform=np.random.default_rng(0).choice(LOG.rating, 250))
    assert (p.predict(LOG).modelled, balanced.predict(LOG).modelled) == (True, False)
