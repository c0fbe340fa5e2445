"""Parts of a rehearsal, by hand and by law."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from openloop.audits.drawing import LevelLead, Levels, exchanged
from openloop.core.levels import LevelSample
from openloop.metrics.naming import metric
from openloop.sources.arrays.completing import Completed
from openloop.sources.arrays.rows import Rows
from tests.examples import same

RATING = np.array([[1, 1, 5], [5, 5, 1]], np.float32)
NO_ROWS = Rows(user=np.empty(0, np.int32), rating=np.empty(0), relevant=np.empty(0), cells=np.full(2, 3.0))


def whole(a, probability=0.5, factor=1.0, rating=RATING):
    gains = {"a": np.array(a, np.float32), "b": np.zeros(rating.shape, np.float32)}
    p = np.broadcast_to(np.float32(probability), rating.shape)
    return Completed(
        rating=rating, probability=p, gains=gains, factor=np.full(len(rating), factor), like=NO_ROWS, threshold=4
    )


def test_columns_change_places_where_they_are_told_to():
    found = exchanged(np.array([1.0, 2.0, 4.0]), np.array([5.0, 6.0, 7.0]), np.array([True, False, True]))
    same(found, [[5, 2, 7], [1, 6, 4]])


def test_a_lead_is_the_mean_difference_at_each_level():
    found = LevelLead.of(whole([[1, 2, 3], [4, 5, 6]]), metric("mae"), ("a", "b"), per_user=False)
    same(found.by_level, [3, 4])
    same(found.mean, 3.5)
    assert found.levels(np.array([1.0, 5.0])).tolist() == [0, 1]


@pytest.mark.parametrize(("per_user", "mean"), [(False, 4.0), (True, 4.0)])
def test_a_lead_on_relevant_items_is_that_of_the_levels_that_are(per_user, mean):
    found = LevelLead.of(whole([[1, 2, 3], [4, 5, 6]]), metric("recall@1"), ("a", "b"), per_user=per_user)
    same(found.by_level, [4])
    same(found.mean, mean)


def test_a_mean_over_users_counts_users_once():
    # Level 4 leads by 1 and level 5 by 3; the first user has three times 4 and the second once 5.
    rating = np.array([[4, 4, 4], [5, 1, 1]], np.float32)
    given = whole([[1, 1, 1], [3, 0, 0]], rating=rating)
    pooled, each = (LevelLead.of(given, metric("recall@1"), ("a", "b"), per_user=x).mean for x in (False, True))
    same((pooled, each), (1.5, 2.0))


def test_excluded_cells_have_no_part_in_a_lead():
    p = np.where(RATING == 5, np.float32(0.5), np.float32(0))
    found = LevelLead.of(whole([[9, 9, 3], [4, 5, 9]], probability=p), metric("mae"), ("a", "b"), per_user=False)
    same(found.mean, 4)


def test_ratings_that_are_no_levels_are_grouped():
    rating = np.linspace(0, 1, 600, dtype=np.float32).reshape(2, 300)
    found = LevelLead.of(whole(2 * rating, rating=rating), metric("mae"), ("a", "b"), per_user=False)
    assert len(found.by_level) <= 20
    assert np.all(np.diff(found.by_level) > 0)
    same(found.mean, 1.0, rtol=1e-3)


SAMPLE = LevelSample(levels=[1, 5], shares=[0.5, 0.5], size=100, rows=4)


def drawn():
    return Rows(
        user=np.array([0, 0, 1], np.int32), rating=np.array([1.0, 5, 1]), relevant=np.array([0.0, 1, 0]),
        cells=np.full(2, 3.0), probability=np.array([0.5, 0.25, 0.5]),
    )  # fmt: skip


@pytest.mark.parametrize(("rows", "off"), [(4, 4 / 3), (2, 7 / 6)], ids=["all rows", "half of them"])
def test_levels_are_fitted_to_the_log_that_was_drawn(rows, off):
    # Each level has Σw = 4 for its 3 cells. Where half of the fitted rows are scored, half of that is undone.
    subject = SimpleNamespace(sample=SAMPLE, balanced=False, log=range(rows))
    levels = Levels.of(subject, whole(RATING))
    found = levels.refitted(drawn())
    same(levels.cells, [3, 3])
    assert found.stratum.tolist() == [0, 1, 0]
    assert found.edges == (0.5,)
    same(found.probability, np.array([0.5, 0.25, 0.5]) * off)


def test_balanced_weights_are_balanced_once_more_whatever_part_is_scored():
    subject = SimpleNamespace(sample=SAMPLE, balanced=True, log=range(1))
    assert Levels.of(subject, whole(RATING)).share == 1


def test_without_a_sample_there_are_no_levels_to_fit():
    assert Levels.of(SimpleNamespace(sample=None), whole(RATING)) is None
