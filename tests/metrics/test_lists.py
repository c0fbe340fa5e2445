"""Metrics of lists by their definitions: by hand, by law, and on lists whose answer is known."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from openloop.errors import NameFormatError
from openloop.metrics.lists import coverage, gini, mean_cosines, new, novelty, popularity, similarity
from openloop.metrics.naming import OF_LISTS, any_metric, metric
from openloop.moments.lists import Entries
from tests.examples import same
from tests.facts import facts

counts = hnp.arrays(np.float64, st.integers(1, 30), elements=st.integers(0, 50)).filter(lambda x: x.sum() > 0)


def by_pairs(x):
    """The textbook: half the mean absolute difference over the mean."""
    return np.abs(x[:, None] - x).mean() / (2 * x.mean())


def test_coverage_by_hand():
    assert coverage(2).spread(np.array([3.0, 0, 1, 0])) == 0.5


@given(counts)
def test_gini_is_half_the_relative_mean_difference(x):
    same(gini(5).spread(x), by_pairs(x))


@pytest.mark.parametrize(("k", "items"), [(1, 4), (3, 10), (10, 10)])
def test_where_all_lists_are_one_gini_and_coverage_are_known(k, items):
    exposure = np.where(np.arange(items) < k, 77.0, 0.0)
    same(coverage(k).spread(exposure), k / items)
    same(gini(k).spread(exposure), 1 - k / items)


def test_popularity_novelty_and_new_by_hand():
    x = Entries(8, np.array([4.0, 1.0, 0.0, 8.0]), None)
    same(popularity(4).gain(x), [0.5, 0.125, 0, 1])
    same(novelty(4).gain(x), [1, 3, 3, 0])  # no row counts as one: log2 U at most
    same(new(4).gain(x), [0, 0, 1, 0])


def test_cosines_are_those_of_all_pairs():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(9, 4))
    lists = np.array([[0, 3, 5], [8, 2, -1], [-1, 4, -1], [-1, -1, -1]])
    unit = X / np.linalg.norm(X, axis=1, keepdims=True)
    first = np.mean([unit[i] @ unit[j] for i in lists[0] for j in lists[0] if i != j])
    same(mean_cosines(lists, X), [first, unit[8] @ unit[2], np.nan, np.nan])


def test_equal_directions_have_cosine_1_and_no_direction_has_0():
    X = np.array([[1.0, 2], [3, 6], [0, 0], [-2, 1]])
    same(mean_cosines(np.array([[0, 1], [0, 2], [0, 3]]), X), [1, 0, 0])


@pytest.mark.parametrize("stem", OF_LISTS)
def test_names_parse_back(stem):
    found = any_metric(f" {stem.upper()}@07 ")
    assert (found.name, found.k) == (f"{stem}@7", 7)
    assert any_metric(found) is found


def test_similarity_compares_two_items():
    with pytest.raises(NameFormatError, match=facts("'similarity@1'", 2)):
        similarity(1)


def test_a_metric_of_lists_judges_nothing():
    with pytest.raises(NameFormatError, match=facts("'coverage@10'", "metrics=")):
        metric("coverage@10")
