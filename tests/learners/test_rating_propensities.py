"""P(observed | rating, cell) of a joint model: by hand, and the contract of propensity models."""

from __future__ import annotations

import numpy as np
import pytest

from openloop.core.feedback import Feedback
from openloop.errors import RatingError
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


# 10 × 10 cells, five levels of 20 cells each by the model; 1 is seen twice, 5 eight times
LOG = Feedback.from_arrays(
    np.arange(16) % 10, np.arange(16) // 2, [1, 1, 2, 2, 3, 3, 4, 4, *[5] * 8], users=10, items=10
)


def test_by_hand():
    p = Even().fit(LOG).propensities_
    np.testing.assert_allclose(p.by_level([3, 4], [0, 1]), [[0.1, 0.1, 0.1, 0.1, 0.4]] * 2)
    np.testing.assert_allclose(p.predict(LOG).values, np.where(LOG.rating == 5, 0.4, 0.1))
    assert p.levels_.tolist() == [1, 2, 3, 4, 5]


def test_p_of_a_part_is_that_of_the_log():
    # every second row: half of the rates, divided by the share of 1/2; capped at 1 where the part says more
    part = LOG.take(np.arange(16) % 2 == 0, share=np.full(8, 0.5))
    model = Even().fit(part)
    assert model.share_ == 0.5
    np.testing.assert_allclose(model.propensities_.by_level([0], [0])[0], 2 * model.rates_)
    tiny = LOG.take(np.arange(16) % 2 == 0, share=np.full(8, 0.01))
    assert Even().fit(tiny).propensities_.predict(LOG).values.max() == 1


def test_an_unknown_rating_has_no_p():
    half = Feedback.from_arrays([0, 0], [0, 1], [3.5, 5], users=LOG.users, items=LOG.items)
    above = Feedback.from_arrays([0, 0], [0, 1], [5, 6], users=LOG.users, items=LOG.items)
    p = Even().fit(LOG).propensities_
    for log, rating in ((half, 3.5), (above, "6.0")):
        with pytest.raises(RatingError, match=facts("RatingPropensities", rating, "all levels")):
            p.predict(log)
