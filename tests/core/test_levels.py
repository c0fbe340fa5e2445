"""A sample of ratings drawn at random: levels and their shares."""

from __future__ import annotations

import numpy as np

from openloop.core.levels import LevelSample, spread


def test_a_level_holds_the_ratings_up_to_the_next():
    sample = LevelSample(levels=np.array([1.0, 3.0, 4.5]), shares=np.array([0.5, 0.3, 0.2]), size=10, rows=100.0)
    assert sample.codes(np.array([1.0, 2.9, 3.0, 4.4, 4.5, 5.0])).tolist() == [0, 0, 1, 1, 2, 2]
    assert sample.codes(np.array([0.5])).tolist() == [0]  # below the lowest
    assert len(sample) == 3


def test_levels_that_are_absent_leave_their_shares_to_the_nearest_on_both_sides():
    shares, present = np.array([0.1, 0.2, 0.3, 0.4]), np.array([False, True, False, True])
    np.testing.assert_allclose(spread(shares, present), [0, 0.2 + 0.1 + 0.15, 0, 0.4 + 0.15])
    np.testing.assert_allclose(spread(shares, np.ones(4, bool)), shares)
    np.testing.assert_allclose(spread(shares, np.array([True, False, False, False])), [1, 0, 0, 0])


def test_levels_that_no_rating_has_are_unseen():
    sample = LevelSample(levels=np.array([1.0, 2.0, 4.0]), shares=np.array([0.5, 0.3, 0.2]), size=10, rows=5)
    assert sample.present(np.array([1.0, 5.0])).tolist() == [True, False, True]
    assert sample.unseen(np.array([1.0, 5.0])) == 0.3
    assert sample.unseen(np.array([1.0, 3.0, 4.0])) == 0
