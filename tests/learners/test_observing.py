"""The chance of being observed at a learner's door: p, its floor and the share; and its sum over all cells."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from openloop.core.feedback import Feedback
from openloop.core.propensities import Propensities
from openloop.errors import AlignmentError, InputError, UndefinedError
from openloop.learners.observing import row_chances, unseen_odds
from openloop.propensity import Known, NaiveBayes, Popularity
from tests.facts import facts


class Anyone:
    """A learner, as far as the door is concerned."""


P = np.array([[0.5, 0.2, 0.1], [0.4, 0.8, 1.0]])
LOG = Feedback.from_arrays([0, 0, 1], [0, 2, 1], [4, 1, 5], users=2, items=3)
SEEN = np.array([0.5, 0.1, 0.8])


def chances(log=LOG, propensities=P, sample_weight=None):
    return row_chances(Anyone(), log, sample_weight, propensities)


def test_p_may_come_in_any_form():
    for given in (P, SEEN, Propensities(values=SEEN), Known(P).fit(LOG)):
        np.testing.assert_array_equal(chances(propensities=given).values, SEEN)
    np.testing.assert_array_equal(chances(propensities=None, sample_weight=Propensities(values=SEEN)).values, SEEN)
    np.testing.assert_array_equal(chances(replace(LOG, propensity=SEEN), None).values, SEEN)


def test_floor_and_share_by_hand():
    half = replace(LOG, share=np.full(1, 0.5))
    found = chances(half, Propensities(values=SEEN, floor=0.2))
    np.testing.assert_allclose(found.values, [0.25, 0.1, 0.4])
    assert found.floor == 0.2


def test_the_odds_of_all_cells_by_hand():
    # 1/p − 1 is 1, 4, 9, 1.5, 0.25, 0; with p at least 0.2, 4 in place of 9; of half a log 3, 9, 19, 4, 1.5, 1.
    assert unseen_odds(Anyone(), LOG, chances(), 0.0) == pytest.approx(15.75)
    assert unseen_odds(Anyone(), LOG, chances(propensities=Known(P).fit(LOG)), 0.2) == pytest.approx(10.75)
    half = replace(LOG, share=np.full(1, 0.5))
    assert unseen_odds(Anyone(), half, chances(half), 0.0) == pytest.approx(37.5)


def test_the_floor_of_a_model_holds_for_all_cells():
    class Floored:
        def predict(self, feedback):
            return Propensities(values=P[feedback.user, feedback.item], floor=0.2)

        def matrix(self):
            return P

    assert unseen_odds(Anyone(), LOG, chances(propensities=Floored()), 0.0) == pytest.approx(10.75)


def test_a_log_without_p_is_refused():
    with pytest.raises(UndefinedError, match=facts("Anyone", "propensities=", "propensity=")):
        chances(propensities=None)


def test_weights_are_refused():
    with pytest.raises(InputError, match=facts("Anyone", "sample_weight", "ndarray", "propensities=")):
        chances(propensities=None, sample_weight=1 / SEEN)
    with pytest.raises(InputError, match=facts("Anyone", "sample_weight", "propensities=")):
        chances(sample_weight=Propensities(values=SEEN))


def test_p_of_other_rows_is_refused():
    with pytest.raises(AlignmentError, match=facts("Propensities", 2, 3)):
        chances(propensities=np.array([0.5, 0.5]))


def test_a_part_without_a_share_is_refused():
    with pytest.raises(UndefinedError, match=facts("Anyone", "share")):
        chances(replace(LOG, share=None))


def test_p_fitted_on_clicks_are_refused():
    clicks = Feedback.from_arrays([0, 0, 1, 1], [0, 2, 1, 2], [1, 1, 1, 1], users=2, items=3, positives=True)
    with pytest.raises(UndefinedError, match=facts("Anyone", "positives")):
        chances(clicks, Popularity(gamma=1.0).fit(clicks))


def test_p_of_rows_has_no_odds_of_all_cells():
    for given in (SEEN, Propensities(values=SEEN)):
        with pytest.raises(UndefinedError, match=facts("targeted=True", "matrix()", type(given).__name__)):
            unseen_odds(Anyone(), LOG, chances(propensities=given), 0.0)
    sample = Feedback.from_arrays([0, 1, 1], [1, 0, 2], [4, 1, 5], users=2, items=3)
    by_rating = NaiveBayes().fit(LOG, uniform=sample)
    with pytest.raises(UndefinedError, match="NaiveBayes"):
        unseen_odds(Anyone(), LOG, chances(propensities=by_rating), 0.0)


def test_parts_of_uneven_shares_have_no_odds_of_all_cells():
    uneven = replace(LOG, share=np.array([0.5, 0.5, 0.25]))
    with pytest.raises(UndefinedError, match=facts("targeted=True", "share", 0.25, 0.5)):
        unseen_odds(Anyone(), uneven, chances(uneven), 0.0)
