"""The chance of being observed at a learner's door: p, its floor and the share; and its sum over all cells."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from openloop.core.feedback import Feedback
from openloop.core.propensities import Propensities
from openloop.errors import UndefinedError
from openloop.learners.observing import row_chances, unseen_odds
from openloop.propensity import Known, Popularity
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


def test_p_fitted_on_clicks_are_refused():
    clicks = Feedback.from_arrays([0, 0, 1, 1], [0, 2, 1, 2], [1, 1, 1, 1], users=2, items=3, positives=True)
    with pytest.raises(UndefinedError, match=facts("Anyone", "positives")):
        chances(clicks, Popularity(gamma=1.0).fit(clicks))
