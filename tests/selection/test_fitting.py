"""What a learner is given in a part of the log: weights 1/(p·s), p·s of the rows, or p·s of all cells."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import openloop as ol
from openloop.data.simulate import movie_lovers
from openloop.errors import UndefinedError
from openloop.learners.base import Learner
from openloop.selection.fitting import fitting, with_propensities
from tests.facts import facts

WORLD = movie_lovers(users=12, items=9)
LOG = WORLD.observe(1)
PART = next(ol.folds(LOG, 4, rng=0))[0]


class Witness(Learner):
    """Tells what it was given."""

    def fit(self, feedback, sample_weight=None, propensities=None):
        self.seen_ = {"sample_weight": sample_weight, "propensities": propensities}
        self.log_ = feedback
        return self


class NeedsP(Witness):
    needs_propensities = True


class NeedsAll(NeedsP):
    needs_matrix = True


def seen(learner, part=PART, given=None, *, weighted=None):
    log = with_propensities(LOG, given)
    return fitting(log, given, [learner], weighted=weighted).fit(learner, part).seen_


def test_weights_are_the_inverse_of_what_the_part_observes():
    told = seen(Witness())
    np.testing.assert_array_equal(told["sample_weight"], 1 / (PART.propensity * PART.share))
    assert told["propensities"] is None
    assert seen(Witness(), weighted=False) == {"sample_weight": None, "propensities": None}


@pytest.mark.parametrize("weighted", [None, False])
def test_who_needs_p_gets_that_of_the_part(weighted):
    told = seen(NeedsP(), weighted=weighted)
    np.testing.assert_array_equal(told["propensities"], PART.propensity * PART.share)
    assert told["sample_weight"] is None


def test_the_share_is_counted_once_whether_a_learner_multiplies_by_it_or_not():
    learner = NeedsP()
    told = seen(learner)["propensities"]
    np.testing.assert_array_equal(told * learner.log_.share, PART.propensity * PART.share)
    np.testing.assert_array_equal(learner.log_.propensity, told)
    late = replace(PART, share=None)  # of a split by time: nobody knows its share, and who needs it can say so
    assert seen(learner, late)["propensities"] is not None
    assert learner.log_.share is None


@pytest.mark.parametrize("kind", ["array", "model"])
def test_who_needs_p_of_all_cells_gets_them_times_the_share(kind):
    model = ol.propensity.Popularity().fit(LOG)
    given = model if kind == "model" else model.matrix()
    told = seen(NeedsAll(), given=given)["propensities"]
    np.testing.assert_array_equal(told, model.matrix() * PART.share[0])
    by_row = with_propensities(LOG, given).propensity
    np.testing.assert_allclose(told[LOG.user, LOG.item], by_row * PART.share[0], rtol=1e-12)


def test_shares_that_differ_say_nothing_of_other_cells():
    part, _ = ol.split(LOG, by="leave-k-out", k=2, rng=0)
    with pytest.raises(UndefinedError, match=facts("NeedsAll", "split by row")):
        seen(NeedsAll(), part, WORLD.propensities)
