"""Propensities lie in (0, 1], remember their floor, and belong to one Feedback."""

from __future__ import annotations

import re

import numpy as np
import pytest

from openloop.core.feedback import Feedback
from openloop.core.propensities import Propensities, check_exposure, observed_probability, predicted_by
from openloop.errors import AlignmentError, InputError, PropensityError, UndefinedError
from tests.facts import facts

LOG = Feedback.from_arrays([0, 0, 1], [0, 1, 1], [1, 2, 3], users=2, items=2)


def test_weights_are_one_over_p_and_no_larger_than_the_floor_allows():
    p = Propensities(values=[0.5, 0.01, 1.0], floor=0.1)
    assert p.weights.tolist() == [2, 10, 1]
    assert p.clipped == pytest.approx(1 / 3)
    assert re.search(facts("floor", 0.1, "33.3%"), repr(p))
    assert Propensities(values=[0.5]).clipped == 0


def test_a_floor_makes_zeros_usable():
    assert Propensities(values=[0.0, 0.5], floor=0.25).weights.tolist() == [4, 2]
    with pytest.raises(PropensityError, match=facts("1 of 2", "are 0", "floor=")):
        Propensities(values=[0.0, 0.5])


@pytest.mark.parametrize("floor", [0.0, 0.25])
@pytest.mark.parametrize("bad", [-0.1, 1.1, np.nan, np.inf, -np.inf])
def test_a_floor_repairs_nothing_else(bad, floor):
    with pytest.raises(PropensityError, match=facts("1 of 2", "(0, 1]", bad)):
        Propensities(values=[0.5, bad], floor=floor)


def test_they_check_the_length_and_where_known_the_cells():
    assert Propensities(values=[0.1, 0.2, 0.3]).check(LOG)
    with pytest.raises(AlignmentError, match=facts(2, 3, "feedback.align")):
        Propensities(values=[0.1, 0.2]).check(LOG)
    own = Propensities(values=[0.1, 0.2, 0.3], fingerprint=LOG.fingerprint)
    assert own.check(LOG) is own
    other = Feedback.from_arrays([0, 0, 1], [0, 1, 0], [1, 2, 3], users=2, items=2)
    with pytest.raises(AlignmentError, match=facts("another", "Feedback", "predict")):
        own.check(other)


def test_a_weight_that_would_overflow_is_refused():
    with pytest.raises(PropensityError, match=facts("1 of 2", 1e-100, "floor=")):
        Propensities(values=[0.5, 1e-310])
    assert np.isfinite(np.square(Propensities(values=[1e-100]).weights)).all()
    assert Propensities(values=[1e-310], floor=0.1).weights.tolist() == [10]


def test_a_part_observes_a_cell_with_its_share_of_the_log_given_that_the_excluded_part_does_not_hold_it():
    # Of 100 cells with p = 0.5, 25 are in the scored half, 25 in the excluded one: 25 of 75 candidates are observed.
    assert observed_probability(0.5, share=0.5, excluded_share=0.5) == pytest.approx(1 / 3)
    assert observed_probability(0.5, share=0.25) == 0.125
    assert observed_probability(0.5) == 0.5
    assert observed_probability(1.0, share=0.2, excluded_share=0.8) == pytest.approx(1.0)


@pytest.mark.parametrize(("s", "t"), [(0, 0.5), (1.2, 0), (0.5, -0.1), (0.5, 0.6), (float("nan"), 0), (True, 0)])
def test_shares_that_no_parts_of_a_log_have_are_refused(s, t):
    with pytest.raises(InputError, match="share="):
        observed_probability(0.5, share=s, excluded_share=t)


@pytest.mark.parametrize("p", [0, 1.5, -1, "x", None, [0.5, 2], np.array([0.1, np.nan])])
def test_what_is_no_probability_is_refused_before_it_is_scaled(p):
    with pytest.raises(PropensityError, match="observed_probability"):
        observed_probability(p, share=0.5)


def test_balanced_values_may_exceed_one_and_their_base_may_not():
    p = Propensities(values=[0.5, 1.25], base=[0.4, 0.9])
    assert p.weights.tolist() == [2, 0.8]
    with pytest.raises(ValueError, match="read-only"):
        p.base[0] = 1
    with pytest.raises(PropensityError, match=facts("Propensities.base", "1 of 2", 1.1)):
        Propensities(values=[0.5, 1.25], base=[0.4, 1.1])


@pytest.mark.parametrize("bad", [0, -0.1, np.nan, np.inf])
def test_balanced_values_are_positive_and_finite(bad):
    with pytest.raises(PropensityError, match=facts("1 of 2", bad, "index 1")):
        Propensities(values=[0.5, bad], base=[0.5, 0.5])


CLICKS = Feedback.from_arrays([0, 0, 1], [0, 1, 1], [1, 1, 1], users=2, items=2, positives=True)


def test_p_that_were_fitted_on_positives_are_no_exposure():
    with pytest.raises(UndefinedError, match=facts("evaluate", "positives", "column")):
        check_exposure("evaluate", Propensities(values=[0.1, 0.2, 0.3], blind=True), CLICKS)


# -- models of your own --------------------------------------------------------------------------------------


class Own:
    """A model with predict alone, which says `told` of its propensities."""

    def __init__(self, **told):
        self.told = told

    def predict(self, feedback):
        return Propensities(values=np.full(len(feedback), 0.5), **self.told)


def test_a_model_of_your_own_is_taken_to_be_blind_unless_it_says_that_it_sees_ratings():
    assert predicted_by("audit", Own(), LOG).blind
    assert predicted_by("audit", Own(), LOG).fingerprint == LOG.fingerprint
    sees = Own()
    sees.sees_rating = True
    assert not predicted_by("audit", sees, LOG).blind
    assert not predicted_by("audit", Own(by_rating=True), LOG).blind
    assert not predicted_by("audit", Own(base=np.full(3, 0.4)), LOG).blind


def test_p_of_your_own_that_were_fitted_on_positives_are_no_exposure():
    class Varies:
        def predict(self, feedback):
            return Propensities(values=np.linspace(0.1, 0.3, len(feedback)))

    with pytest.raises(UndefinedError, match="positives"):
        check_exposure("evaluate", predicted_by("evaluate", Varies(), CLICKS), CLICKS)
