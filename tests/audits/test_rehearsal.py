"""What a rehearsal counts, and how it says it."""

from __future__ import annotations

from scipy import stats

from openloop.audits.rehearsal import Outcomes, Rehearsal, binomial_interval
from tests.examples import same

FOUND = Rehearsal(
    a="first", b="second", metric="mae", estimator="snips", draws=200, difference=-0.0421, rows=1234.5,
    equal=Outcomes(right=4, wrong=2, conditional=10, none=184),
    different=Outcomes(right=120, wrong=1, conditional=29, none=50),
)  # fmt: skip


def test_every_verdict_on_equal_models_is_false_and_only_the_right_one_finds_the_difference():
    assert (FOUND.false_rate, FOUND.power) == (0.03, 0.6)


def test_intervals_are_clopper_and_pearsons():
    for k in (0, 1, 7, 20):
        wanted = stats.binomtest(k, 20).proportion_ci(0.95, method="exact")
        same(binomial_interval(k, 20), (wanted.low, wanted.high), rtol=1e-8)
    assert FOUND.false_rate in FOUND.false_interval
    assert FOUND.power in FOUND.power_interval


def test_records_hold_counts_and_rates():
    found = FOUND.records()
    assert found["equal"] == {"right": 4, "wrong": 2, "conditional": 10, "none": 184}
    assert (found["false_rate"], found["power"], found["draws"]) == (0.03, 0.6, 200)
    assert found["assumes"]


def test_it_says_both_rates_with_their_intervals():
    text = str(FOUND)
    assert all(word in text for word in ("200 logs", "first", "second", "3.0 %", "60 %", "0.0421"))
