"""Numbers in words: rounded to what an interval can speak for, and never a false 0 or 100 %."""

from __future__ import annotations

import math

import pytest

from openloop.metrics.naming import AT_K, PLAIN
from openloop.reporting.words import about_estimator, about_metric, decimals_of, fixed, moment, number, rounded, signed


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.123456, "0.1235"), (-2.5, "−2.5"), (1234567.8, "1,234,568"), (1109.3, "1,109"), (None, "–"), (math.nan, "–"),
     (math.inf, "∞"), (-math.inf, "−∞"), (0.0, "0")],
)  # fmt: skip
def test_a_number_has_four_digits_and_a_true_minus(value, text):
    assert number(value) == text


def test_a_sign_is_shown_where_there_is_one():
    assert (signed(0.5), signed(-0.5), signed(0.0)) == ("+0.5", "−0.5", "0")


def test_value_and_interval_are_rounded_alike_to_two_digits_of_the_half_width():
    assert rounded(0.026617, 0.019772, 0.033481) == ("0.0266", "0.0198 … 0.0335")
    assert rounded(2.469, 2.141, 2.796) == ("2.47", "2.14 … 2.80")
    assert rounded(1534.2, 1200.0, 1900.0) == ("1,530", "1,200 … 1,900")
    assert rounded(0.13, 0.02, 0.24, sign=True)[0] == "+0.13"


def test_a_point_keeps_its_digits_and_a_missing_interval_is_a_dash():
    assert rounded(0.5, 0.5, 0.5) == ("0.5", "0.5 … 0.5")
    assert rounded(0.5, math.nan, math.nan) == ("0.5", "– … –")
    assert decimals_of(1.0, 1.0) is None
    assert decimals_of(0.2180451127819549 - 1e-15, 0.2180451127819549 + 1e-15) is None  # a sum that was rounded
    assert decimals_of(0.0, 1e-15) is not None


def test_zero_has_no_sign_after_rounding():
    assert fixed(-0.0001, 2) == "0.00"


def test_a_time_is_written_for_people_and_other_text_is_left_alone():
    assert moment("2026-11-15T17:30:21+00:00") == "2026-11-15 17:30 UTC"
    assert moment("yesterday") == "yesterday"
    assert moment("") == ""


def test_every_metric_and_estimator_has_a_line():
    assert all(about_metric(name) for name in PLAIN)
    assert all(about_metric(f"{name}@7").endswith("(k = 7)") for name in AT_K)
    assert (about_metric("rbp")[-9:], about_metric("rbp:0.95")[-10:]) == ("(p = 0.8)", "(p = 0.95)")
    for name in ("naive", "ips", "snips", "snips_user", "clipped@20", "dr", "stratified@3:width", "ips_eq3"):
        assert about_estimator(name)
    assert about_estimator("clipped@20").endswith("(the cap is 20)")
    assert about_metric("mine@5") == about_estimator("mine") == ""
