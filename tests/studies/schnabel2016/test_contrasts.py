"""Contrasts: Student's t over cells, by user that of evaluate, and of several seeds the one that speaks least for a."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from openloop.studies.schnabel2016 import real_data
from openloop.studies.schnabel2016.contrasts import (
    OVER_CELLS,
    contrast,
    outperforms,
)


@pytest.fixture(scope="module")
def uniform_set(songs):
    return real_data.yahoo(*songs, seed=0).test


def erring(test, by, scales, loss="squared", seed=2):
    """Predictions that err by normal noise, a row for each seed."""
    rng = np.random.default_rng(seed)
    predictions = np.array([test.rating + rng.normal(scale=scale, size=len(test)) for scale in scales])
    return real_data.Tested(by=by, loss=loss, predictions=predictions)


def test_significance_is_students_over_cells_and_that_of_evaluate_by_user(uniform_set):
    good, bad = erring(uniform_set, "bayes", (0.5, 0.5)), erring(uniform_set, "naive", (0.6, 0.6), seed=3)
    found = contrast(uniform_set, good, bad)
    both = zip(good.losses(uniform_set.rating), bad.losses(uniform_set.rating), strict=True)
    assert found.over_cells.pvalue in [pytest.approx(stats.ttest_rel(a, b).pvalue) for a, b in both]
    assert found.by_user.value == pytest.approx(found.over_cells.value)
    assert found.by_user.stderr != found.over_cells.stderr


def test_a_seed_that_speaks_against_the_method_counts_before_one_that_is_less_certain(uniform_set):
    # The first seed is better without doubt, the second worse without doubt: its p is not the largest.
    a, b = erring(uniform_set, "a", (0.5, 1.2)), erring(uniform_set, "b", (0.55, 0.5), seed=3)
    found = contrast(uniform_set, a, b)
    assert found.over_cells.value > 0
    assert found.by_user.value > 0
    assert not outperforms("coat", "A", "B", OVER_CELLS, [found]).holds
