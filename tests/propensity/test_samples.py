"""Ratings of cells drawn at random: counted, smoothed, and who gave them where that is known."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from openloop.core.feedback import Feedback
from openloop.data.reading import read
from openloop.errors import InputError, LeakError, RatingError
from openloop.propensity.samples import Drawn, level_codes, levels_of, refuse_sample, refuse_sample_frame
from tests.facts import facts

LOG = Feedback.from_arrays([0, 0, 1, 2], [0, 1, 1, 2], [1, 2, 2, 5], users=3, items=3)
LEVELS = np.array([1.0, 2.0, 5.0])


def test_shares_are_laplaces():
    drawn = Drawn.of("Model", [1, 1, 2], LOG)
    np.testing.assert_allclose(drawn.shares(LEVELS, 1.0), [3 / 6, 2 / 6, 1 / 6])
    np.testing.assert_allclose(drawn.shares(LEVELS, 0.0), [2 / 3, 1 / 3, 0])


def test_a_sample_of_the_logs_users_names_them_and_another_does_not():
    sample = Feedback.from_arrays([0, 2], [1, 0], [5, 2], users=3, items=2)
    found = Drawn.of("Model", sample, LOG).level_sample(LEVELS, np.full(3, 1 / 3), 4.0)
    assert (found.user.tolist(), found.level.tolist(), found.size, found.rows) == ([0, 2], [2, 1], 2, 4.0)
    strangers = Feedback.from_arrays([0, 3], [1, 0], [5, 2], users=4, items=2)
    found = Drawn.of("Model", strangers, LOG).level_sample(LEVELS, np.full(3, 1 / 3), 4.0)
    assert (found.user, found.level) == (None, None)


def test_users_of_a_sample_read_alone_are_found_by_their_ids():
    log = read(pl.DataFrame({"user": ["a", "b", "c"], "item": [1, 2, 3], "rating": [1, 2, 5]}))
    alone = pl.DataFrame({"user": ["c", "a"], "item": [9, 1], "rating": [5, 2]})
    found = Drawn.of("Model", read(alone, uniform=True), log)
    assert sorted(zip(found.user.tolist(), found.rating.tolist(), strict=True)) == [(0, 2.0), (2, 5.0)]
    other = alone.with_columns(user=pl.Series(["c", "x"]))
    assert Drawn.of("Model", read(other, uniform=True), log).user is None
    assert Drawn.of("Model", read(alone.with_columns(user=pl.Series([0, 1])), uniform=True), log).user is None


def test_a_part_of_a_sample_keeps_users_beside_their_ratings():
    sample = Feedback.from_arrays([0, 1, 2], [0, 0, 0], [1, 2, 5], users=3, items=2)
    drawn = Drawn.of("Model", sample, LOG).some("Model", 2, np.random.default_rng(0))
    assert len(drawn) == 2
    np.testing.assert_array_equal(LEVELS[drawn.user], drawn.rating)
    with pytest.raises(InputError, match=facts("Model", "sample_size=4", 3)):
        Drawn.of("Model", sample, LOG).some("Model", 4, np.random.default_rng(0))


def test_a_rating_between_levels_is_of_the_lower_one():
    assert level_codes(LEVELS, np.array([0.5, 1, 1.9, 2, 7], np.float32)).tolist() == [0, 0, 0, 1, 2]


def test_levels_are_those_of_both_and_not_too_many():
    assert levels_of("Model", LOG.rating, np.array([3], np.float32)).tolist() == [1, 2, 3, 5]
    many = np.linspace(0, 1, 1001, dtype=np.float32)
    with pytest.raises(RatingError, match=facts("Model", "1,000", "1,001")):
        levels_of("Model", many, many)


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


def test_only_the_very_frame_that_was_the_sample_is_refused():
    frame = pl.DataFrame({"stars": [5.0]})
    with pytest.raises(LeakError, match=facts("Model", "uniform sample")):
        refuse_sample_frame("Model", frame, frame)
    refuse_sample_frame("Model", frame, frame.clone())
