"""Table 2: published numbers stand beside ours, and significance is Student's or by user.

On Coat: tests/studies/test_quick.py.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from openloop.studies.kit.results import Value
from openloop.studies.schnabel2016 import real_data, table2
from openloop.studies.schnabel2016.published import PUBLISHED
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


def test_what_is_allowed_is_less_than_a_quarter_of_what_separates_the_methods():
    assert table2.allowed("coat", "mae") == pytest.approx(0.2 * (0.884 - 0.860))  # HL-MNAR is nearest
    assert table2.allowed("coat", "mse") == pytest.approx(0.2 * (1.202 - 1.093))  # MF-Naive is
    for name, printed in PUBLISHED["table2"].items():
        for metric in ("mae", "mse"):
            ips, others = printed["MF-IPS"][metric], [row[metric] for by, row in printed.items() if by != "MF-IPS"]
            assert 0.0005 < table2.allowed(name, metric) < min(abs(other - ips) for other in others) / 4
            assert table2.allowed(name, metric) < ips / 4


def test_our_own_seeds_do_not_widen_what_is_allowed(songs):
    test = real_data.yahoo(*songs, seed=0).test
    for shifts in ((0.5, 0.9), (0.7, 0.7)):
        predictions = np.array([test.rating + shift for shift in shifts])
        found = [
            real_data.Tested(by="naive", loss=loss, predictions=predictions, chosen=("λ = 1", "λ = 1"))
            for loss in ("squared", "absolute")
        ]
        table = table2.error_table("yahoo-r3", test, found, np.ones(len(test), bool), "all")
        allowed = [table2.allowed("yahoo-r3", metric) for metric in ("mae", "mse")]
        assert [value.tolerance for _, value in table.values()][:2] == allowed


@pytest.mark.parametrize(("shift", "comes_out"), [(1.15, True), (1.2, False)])
def test_a_number_comes_out_within_what_is_allowed_and_not_beyond(songs, shift, comes_out):
    test = real_data.yahoo(*songs, seed=0).test
    found = [
        real_data.Tested(by="naive", loss=loss, predictions=test.rating[None] + shift, chosen=("",))
        for loss in ("squared", "absolute")
    ]
    table = table2.error_table("yahoo-r3", test, found, np.ones(len(test), bool), "all")
    assert table.rows[0][1].came_out is comes_out  # MAE, published 1.154
