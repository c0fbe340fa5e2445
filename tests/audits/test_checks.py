"""What is checked beside the estimates: models that were fitted, and checks that are there already."""

from __future__ import annotations

import numpy as np
import pytest

import openloop as ol
from openloop.audits.checks import MANY_ROWS, benchmarks_of, check_folds_of, check_of

LOG = ol.Feedback.from_arrays(np.repeat(np.arange(12), 4), np.tile(np.arange(8), 6), np.tile([1.0, 5.0], 24))


def test_a_fitted_model_is_checked_and_bare_numbers_are_not():
    model = ol.propensity.Uniform().fit(LOG)
    assert check_of(model, LOG, 0) == ol.propensity.check(model, LOG, folds=5, rng=0)
    assert check_of(ol.Propensities(values=np.full(len(LOG), 0.5)), LOG, 0) is None
    assert check_of(model, False, 0) is None


def test_a_check_that_was_made_where_the_rows_are_stays():
    found = ol.propensity.check(ol.propensity.Uniform().fit(LOG), LOG)
    assert check_of("propensity", found, 0) is found


@pytest.mark.parametrize(("rows", "folds"), [(MANY_ROWS - 1, 5), (MANY_ROWS, 2)])
def test_large_logs_are_held_out_in_two_folds(rows, folds):
    assert check_folds_of(rows) == folds


def test_only_logistic_models_have_benchmarks():
    assert benchmarks_of(ol.propensity.Uniform().fit(LOG), LOG) == ()
    assert len(benchmarks_of(ol.propensity.Logistic(reg=1.0).fit(LOG), LOG)) == 2
