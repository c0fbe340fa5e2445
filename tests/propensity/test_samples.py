"""Ratings of cells drawn at random: counted, smoothed, and not scored themselves."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from openloop.core.feedback import Feedback
from openloop.errors import InputError, LeakError, RatingError
from openloop.propensity.samples import Drawn, refuse_sample
from tests.facts import facts

LOG = Feedback.from_arrays([0, 0, 1, 2], [0, 1, 1, 2], [1, 2, 2, 5], users=3, items=3)
LEVELS = np.array([1.0, 2.0, 5.0])


def test_shares_are_laplaces():
    drawn = Drawn.of("Model", [1, 1, 2], LOG)
    np.testing.assert_allclose(drawn.shares(LEVELS, 1.0), [3 / 6, 2 / 6, 1 / 6])
    np.testing.assert_allclose(drawn.shares(LEVELS, 0.0), [2 / 3, 1 / 3, 0])


@pytest.mark.parametrize("given", [[], [[1.0]], "ratings", 3, object()])
def test_what_is_no_sample_is_refused(given):
    with pytest.raises(InputError, match=facts("Model", "uniform", type(given).__name__)):
        Drawn.of("Model", given, LOG)


def test_ratings_that_are_not_finite_are_refused():
    with pytest.raises(RatingError, match=facts("Model", "1 of 2")):
        Drawn.of("Model", [1, np.nan], LOG)


def test_the_sample_itself_is_not_scored():
    for feedback, sample in ((LOG, LOG), (Feedback.from_arrays([0], [0], [1], uniform=True), None)):
        with pytest.raises(LeakError, match=facts("Model", "uniform sample")):
            refuse_sample("Model", sample, feedback)
    refuse_sample("Model", [1, 2], LOG)
    with pytest.raises(LeakError, match=facts("Model", "the scored log itself", "ol.split")):
        refuse_sample("Model", LOG, LOG)


def test_the_ratings_of_a_frame_are_found_in_the_column_that_looks_like_them():
    drawn = Drawn.of("Model", pl.DataFrame({"stars": [5.0, 1.0, 2.0], "x": [0, 0, 0]}), LOG)
    assert drawn.rating.tolist() == [1, 2, 5]
    assert drawn.user is None
    with pytest.raises(RatingError, match=facts("Model", "uniform=", 1, 2)):
        Drawn.of("Model", pl.DataFrame({"stars": [5.0, None]}), LOG)
