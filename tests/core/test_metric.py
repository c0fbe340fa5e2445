"""A Metric says what it is, and refuses what contradicts itself."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from openloop.core.metric import default_threshold, reaches
from openloop.core.positives import only_positives
from openloop.metrics.naming import metric
from tests.examples import METRICS, ORDERED

EVERY = [metric(name) for name in (*METRICS, "cg@3")]


def test_unbiased_under_the_missing_data_model_are_adg_atop_and_recall_and_no_other():
    assert {m.name for m in EVERY if m.unbiased} == {"adg", "atop", "recall@3"}


def test_additive_are_all_sums_over_cells():
    assert {m.name for m in EVERY if not m.additive} == {"rmse", *ORDERED}


def test_only_errors_are_better_when_lower():
    assert {m.name for m in EVERY if m.better == "lower"} == {"mae", "mse", "rmse"}


def test_gains_that_look_at_a_users_other_items_say_so():
    assert {m.name for m in EVERY if m.groups} == {"map", "mrr", "hit@3"}


@pytest.mark.parametrize(
    ("levels", "cut"),
    [
        ([0, 1], 1),
        ([1], 1),
        ([0], 1),
        ([0, 1, 2], 4),
        ([1, 2, 3, 4, 5], 4),
        ([0.5, 1], 4),
        ([3], 3),
        ([5], 4),
        ([-1], 4),
    ],
)
def test_what_is_relevant_begins_at_4_or_at_1_where_ratings_are_0_and_1(levels, cut):
    assert default_threshold(np.array(levels, float)) == cut


NUMBERS = st.floats(-1e38, 1e38)  # ratings are finite in single precision


@given(NUMBERS, NUMBERS)
def test_a_rating_reaches_the_threshold_in_single_precision(rating, threshold):
    around = np.nextafter([rating, rating, threshold, threshold], [-np.inf, np.inf, -np.inf, np.inf])
    for value in (rating, threshold, *around.tolist()):
        wanted = bool(np.float32(value) >= np.float32(threshold))
        assert reaches(value, threshold) == wanted
        for dtype in (np.float32, np.float64):
            assert reaches(np.array([value], dtype), threshold).tolist() == [wanted]


@pytest.mark.parametrize(("low", "high"), [(1, 1), (0.5, 0.5), (4, 5), (5, 5), (4.5, 5)])
def test_one_rating_above_0_or_the_best_of_five_are_positives(low, high):
    assert only_positives(low, high)


@pytest.mark.parametrize(("low", "high"), [(0, 0), (0, 1), (1, 5), (3, 5), (4, 10), (-1, -1)])
def test_others_are_not(low, high):
    assert not only_positives(low, high)
