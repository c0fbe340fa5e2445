"""Table 2: published numbers stand beside ours, and significance is Student's or by user.

On Coat: tests/studies/test_quick.py.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from openloop.studies.kit.results import Value
from openloop.studies.schnabel2016 import real_data, table2
from openloop.studies.schnabel2016.table2 import NAMES


def test_a_data_set_in_the_shape_of_yahoo_is_learned_and_shown_beside_the_published_numbers(songs, run):
    tables, claims = table2.of_data_set(run, "yahoo-r3", real_data.yahoo(*songs, seed=0), seeds=2)
    errors, _, significance, _ = tables  # the second is without cells that are in the log too
    assert [row[0] for row in errors.rows] == [NAMES["bayes"], NAMES["naive"], "HL-MNAR", "HL-MAR", "CPT-v"]
    (_, mae, mse), naive = errors.rows[0], errors.rows[1]
    assert (mae.published, mse.published) == (0.810, 0.989)
    assert mse.value < naive[2].value
    assert errors.rows[4][1:] == (Value(value=None, published=0.770), Value(value=None, published=1.115))
    assert len(significance.rows) == 2
    assert len(claims) == 5


def test_significance_is_students_over_cells_and_that_of_evaluate_by_user(songs):
    test = real_data.yahoo(*songs, seed=0).test
    rng = np.random.default_rng(2)
    truth = test.rating
    good, bad = (truth + rng.normal(scale=scale, size=(2, len(truth))) for scale in (0.5, 0.6))
    found = [
        real_data.Tested(by=by, loss="squared", predictions=predictions, chosen=("",))
        for by, predictions in (("bayes", good), ("naive", bad))
    ]
    (contrast,) = table2.contrasts(test, found)
    tests = [stats.ttest_rel(a, b) for a, b in zip((good - truth) ** 2, (bad - truth) ** 2, strict=True)]
    assert contrast.over_cells.pvalue in [pytest.approx(test.pvalue) for test in tests]
    assert contrast.by_user.value == pytest.approx(contrast.over_cells.value)
    assert contrast.by_user.stderr != contrast.over_cells.stderr


def test_errors_without_some_cells_have_no_published_number_beside_them(songs):
    test = real_data.yahoo(*songs, seed=0).test
    n, exact = len(test), np.tile(test.rating, (1, 1))
    found = [
        real_data.Tested(by="naive", loss=loss, predictions=exact + 1, chosen=("",)) for loss in ("squared", "absolute")
    ]
    some = np.arange(n) > 0
    table = table2.error_table("yahoo-r3", test, found, some, "some")
    assert [(value.value, value.published) for _, value in table.values()] == [(1.0, None), (1.0, None)]
    whole = table2.error_table("yahoo-r3", test, found, np.ones(n, bool), "all")
    assert [value.published for _, value in whole.values()][:2] == [1.154, 1.891]


def test_the_start_of_a_fit_is_the_deviation_among_seeds_that_chose_the_same():
    means = np.array([1.0, 1.2, 5.0, 5.4, 9.0])
    pooled = np.sqrt((2 * 0.1**2 + 2 * 0.2**2) / 2)
    assert table2.start_deviation(means, ["a", "a", "b", "b", "c"]) == pytest.approx(pooled)
    assert table2.start_deviation(means, list("abcde")) == 0  # seeds that choose otherwise excuse nothing


def test_seeds_that_choose_otherwise_do_not_widen_what_is_allowed(songs):
    test = real_data.yahoo(*songs, seed=0).test
    predictions = np.array([test.rating + shift for shift in (0.5, 0.9)])
    found = [
        real_data.Tested(by="naive", loss=loss, predictions=predictions, chosen=("λ = 1", "λ = 2"))
        for loss in ("squared", "absolute")
    ]
    table = table2.error_table("yahoo-r3", test, found, np.ones(len(test), bool), "all")
    assert [value.tolerance for _, value in table.values()][:2] == [0.0005, 0.0005]
