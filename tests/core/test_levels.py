"""A sample of ratings drawn at random: levels and their shares."""

from __future__ import annotations

import numpy as np

from openloop.core.levels import LevelSample


def test_a_level_holds_the_ratings_up_to_the_next():
    sample = LevelSample(levels=np.array([1.0, 3.0, 4.5]), shares=np.array([0.5, 0.3, 0.2]), size=10, rows=100.0)
    assert sample.codes(np.array([1.0, 2.9, 3.0, 4.4, 4.5, 5.0])).tolist() == [0, 0, 1, 1, 2, 2]
    assert sample.codes(np.array([0.5])).tolist() == [0]  # below the lowest
    assert len(sample) == 3
