"""Ratings that are all the same, or all the best, are of positives."""

from __future__ import annotations

import pytest

from openloop.core.positives import only_positives


@pytest.mark.parametrize(("low", "high"), [(1, 1), (0.5, 0.5), (4, 5), (5, 5), (4.5, 5)])
def test_one_rating_above_0_or_the_best_of_five_are_positives(low, high):
    assert only_positives(low, high)


@pytest.mark.parametrize(("low", "high"), [(0, 0), (0, 1), (1, 5), (3, 5), (4, 10), (-1, -1)])
def test_others_are_not(low, high):
    assert not only_positives(low, high)
