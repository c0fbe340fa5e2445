"""What learners share: weights at the door, codes, and scores that are one product."""

from __future__ import annotations

import numpy as np
import pytest

from openloop.core.feedback import Feedback
from openloop.core.propensities import Propensities
from openloop.data.simulate import movie_lovers
from openloop.errors import AlignmentError, InputError, UnknownIdError
from openloop.learners import Bias
from openloop.learners.base import (
    FactorLearner,
    weights,
)
from tests.facts import facts


class Made(FactorLearner):
    """Factors drawn at random: a learner in all but learning."""

    def fit(self, feedback, sample_weight=None):
        rng, U, I = np.random.default_rng(0), feedback.n_users, feedback.n_items
        weights(self, feedback, sample_weight)
        self.user_factors_, self.item_factors_ = rng.normal(size=(U, 3)), rng.normal(size=(I, 3))
        self.user_bias_, self.item_bias_, self.intercept_ = rng.normal(size=U), rng.normal(size=I), 2.5
        return self._remember(feedback, "nothing was learned")


def three(**columns) -> Feedback:
    return Feedback.from_arrays([2, 0, 1], [0, 1, 3], [5, 1, 3], users=4, items=5, **columns)


# -- weights -------------------------------------------------------------------------------------------------


def test_weights_have_mean_one():
    assert weights(Made(), three(), [1, 2, 6]).tolist() == [1 / 3, 2 / 3, 2]
    assert weights(Made(), three(), np.array([7, 7, 7], np.int8)).tolist() == [1, 1, 1]
    assert weights(Made(), three(), None).tolist() == [1, 1, 1]


@pytest.mark.parametrize("scale", [1e-320, 1e-300, 1e300, 1.7e308])
def test_a_factor_on_all_weights_changes_nothing(scale):
    np.testing.assert_allclose(weights(Made(), three(), np.full(3, scale)), [1, 1, 1], rtol=1e-12)


def test_the_logs_own_weights_multiply_those_of_propensities():
    log = three(weight=np.array([6.0, 1, 2]))
    p = Propensities(values=np.array([1.0, 0.5, 0.25]))
    expected = log.weight * [1, 2, 4]
    np.testing.assert_allclose(weights(Made(), log, p), expected / expected.mean(), rtol=1e-12)
    np.testing.assert_allclose(weights(Made(), three(), p), np.array([1, 2, 4]) * 3 / 7, rtol=1e-12)


def test_propensities_weigh_by_their_inverse_and_belong_to_the_log():
    log = three()
    p = Propensities(values=np.array([1, 0.5, 0.1]), floor=0.25)
    np.testing.assert_allclose(weights(Made(), log, p), np.array([1, 2, 4]) * 3 / 7)
    with pytest.raises(AlignmentError):
        weights(Made(), log, Propensities(values=np.full(3, 0.5), fingerprint="another"))


@pytest.mark.parametrize("value", [0, -1, np.nan, np.inf])
def test_weights_that_are_not_positive_and_finite_are_refused(value):
    with pytest.raises(InputError, match=facts("Made", "sample_weight", "1 of 3", float(value), "index 1")):
        weights(Made(), three(), [1, value, 2])


@pytest.mark.parametrize("value", [[1, 2], [[1], [2], [3]], 1.0, []])
def test_weights_of_another_shape_are_refused(value):
    with pytest.raises(AlignmentError, match=facts("Made", "sample_weight", np.shape(value), "3 rows")):
        weights(Made(), three(), value)


# -- codes ---------------------------------------------------------------------------------------------------


def test_codes_outside_the_grid_are_refused():
    model = Made().fit(three())
    for users in ([4], [-1], [0, 99]):
        with pytest.raises(UnknownIdError, match=facts("Made", "user", 0, 3, min(users), max(users))):
            model.scores(users)
    with pytest.raises(UnknownIdError, match=facts("Made", "item", 0, 4, 5)):
        model.predict([0], [5])


# -- factors -------------------------------------------------------------------------------------------------


def test_a_score_is_the_product_and_the_offsets():
    model = Made().fit(three())
    expected = model.user_factors_ @ model.item_factors_.T + model.user_bias_[:, None] + model.item_bias_ + 2.5
    np.testing.assert_allclose(model.scores(range(4)), expected, rtol=1e-12)
    u, i = np.indices((4, 5)).reshape(2, -1)
    np.testing.assert_allclose(model.predict(u, i), expected[u, i], rtol=1e-12)


# -- propensities --------------------------------------------------------------------------------------------


def test_weights_and_propensities_at_once_are_refused():
    log = movie_lovers(users=20, items=16).observe(3)
    with pytest.raises(InputError, match=facts("Bias", "sample_weight", "propensities")):
        Bias().fit(log, sample_weight=1 / log.propensity, propensities=log.propensity)
    with pytest.raises(InputError, match=facts("Bias", "propensities", "str")):
        Bias().fit(log, propensities="p")
