"""Rating levels: by hand, the mean of a distribution as prediction, and what a model of the likelihood refuses."""

from __future__ import annotations

import numpy as np
import pytest

from openloop.core.feedback import Feedback
from openloop.errors import InputError, RatingError
from openloop.learners.rating_levels import (
    RatingDistribution,
    check_unweighted,
    level_codes,
    levels_of_log,
)
from tests.facts import facts


def log_of(ratings, **columns) -> Feedback:
    n = len(ratings)
    return Feedback.from_arrays(np.arange(n) % 2, np.arange(n), np.asarray(ratings, np.float32), items=n, **columns)


class Shares(RatingDistribution):
    """The levels' shares of the log, of odd items in reverse."""

    def fit(self, feedback, sample_weight=None, propensities=None):
        check_unweighted(self, feedback, sample_weight, propensities)
        self.levels_ = levels_of_log("Shares", feedback)
        self.shares_ = np.bincount(level_codes(feedback, self.levels_)) / len(feedback)
        return self._remember(feedback)

    def _proba(self, user, item):
        return np.where(item[:, None] % 2, self.shares_[::-1], self.shares_)


LOG = log_of([1, 5, 5, 2.5])


def test_levels_and_codes_by_hand():
    levels = levels_of_log("Anyone", LOG)
    assert levels.tolist() == [1, 2.5, 5]
    assert levels.dtype == np.float32
    # users 0, 0, 1, 1: the rows are 1, 5, 5, 2.5 sorted by user
    assert level_codes(LOG, levels).tolist() == [0, 2, 2, 1]
    with pytest.raises(ValueError, match="read-only"):
        levels[0] = 2


def test_predictions_are_the_means_of_the_distribution():
    model = Shares().fit(LOG)
    np.testing.assert_array_equal(model.predict_proba([0, 1], [0, 1]), [[0.25, 0.25, 0.5], [0.5, 0.25, 0.25]])
    # 1/4 + 2.5/4 + 5/2 and 1/2 + 2.5/4 + 5/4
    np.testing.assert_allclose(model.predict([0, 1], [0, 1]), [3.375, 2.375])
    np.testing.assert_allclose(model.scores([1, 1, 0]), [[3.375, 2.375, 3.375, 2.375]] * 3)
    assert model.scores([]).shape == (0, 4)


@pytest.mark.parametrize(("ratings", "told"), [([3, 3, 3], (1, "3.0")), (np.arange(21), (21, "0.0"))])
def test_too_few_and_too_many_levels_are_refused(ratings, told):
    with pytest.raises(RatingError, match=facts("Anyone", "2 to 20", *told)):
        levels_of_log("Anyone", log_of(ratings))


@pytest.mark.parametrize("given", ["sample_weight", "propensities"])
def test_weights_and_propensities_are_refused(given):
    with pytest.raises(InputError, match=facts("Shares", given, "MF")):
        Shares().fit(LOG, **{given: np.ones(len(LOG))})
