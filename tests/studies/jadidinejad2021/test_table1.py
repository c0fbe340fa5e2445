"""Table 1: the kidney stones by their counts, the illustration as printed."""

from __future__ import annotations

import pytest
from scipy.stats import chi2, chi2_contingency

from openloop.audits.paradox import find
from openloop.studies.jadidinejad2021.published import PUBLISHED
from openloop.studies.jadidinejad2021.table1 import kidney_stones, mantel_haenszel, published_pair, table1, two_rates
from tests.studies.jadidinejad2021 import many


def test_the_kidney_stones_by_eq_5_from_the_counts():
    result = table1(many.Plain())
    stones = result.tables[0]
    a, b = (stones.rows[-1][at].value for at in (1, 2))
    assert (a, b) == (pytest.approx(0.8325, abs=5e-5), pytest.approx(0.7789, abs=5e-5))
    assert [(place, v.published) for _, place, v in result.astray()] == [
        ("expected (Eq. 5), pooled shares, A", 0.832),
        ("expected (Eq. 5), pooled shares, B", 0.782),
    ]
    assert all(claim.holds for claim in result.claims)


def test_the_published_expectations_come_of_rounded_rates():
    # From the counts 0.8325 and 0.7789; from the printed percentages and shares what the paper has.
    assert (round(0.93 * 0.51 + 0.73 * 0.49, 3), round(0.87 * 0.51 + 0.69 * 0.49, 3)) == PUBLISHED["table1"]["expected"]


def test_the_illustration_comes_out():
    values = [v for _, v in table1(many.Plain()).tables[1].values() if v.published is not None]
    assert [v.came_out for v in values] == [True, True]


def test_the_reversal_is_found_as_it_stands_but_not_by_its_counts():
    (found,) = find([kidney_stones(tested=False)])
    assert (found.kind, found.preferred, found.majority.name) == ("reversal", "A", "small")
    assert find([kidney_stones(tested=True)]) == ()
    assert kidney_stones(tested=True).aggregate.rows == 700


def test_two_rates_are_compared_by_pearsons_test():
    for x, n, y, m in ((81, 87, 234, 270), (192, 263, 55, 80), (273, 350, 289, 350)):
        other = chi2_contingency([[x, n - x], [y, m - y]], correction=False).pvalue
        assert two_rates(x, n, y, m) == pytest.approx(other)


def test_one_stratum_has_its_own_odds_ratio_and_nearly_pearsons_test():
    odds, p = mantel_haenszel([((81, 87), (234, 270))])
    assert odds == pytest.approx((81 * 36) / (6 * 234))
    statistic = chi2_contingency([[81, 6], [234, 36]], correction=False).statistic
    assert p == pytest.approx(chi2.sf(statistic * 356 / 357, 1))  # Mantel-Haenszel's variance divides by n − 1


def test_arithmetic_on_printed_numbers_counts_in_no_tally():
    result = table1(many.Plain())
    assert [claim.counted for claim in result.claims] == [False] * 4
    assert result.held() == (0, 0)


def test_copies_of_a_stratum_leave_the_odds_ratio_and_sharpen_the_test():
    once, twice = mantel_haenszel([((8, 10), (5, 10))]), mantel_haenszel([((8, 10), (5, 10))] * 2)
    assert once[0] == pytest.approx(twice[0])
    assert twice[1] < once[1]


@pytest.mark.parametrize(("item", "kind"), [("table2", "reversal"), ("table3", "reversal"), ("table4", "reversal"),
                                            ("table5", "masking")])  # fmt: skip
def test_the_printed_tables_are_instances(item, kind):
    (found,) = find([published_pair(item)])
    assert (found.kind, found.preferred, found.majority.name) == (kind, PUBLISHED[item]["pair"][1], "Q1")


def test_the_note_on_rounding_is_computed():
    note = table1(many.Plain()).notes[0]
    assert "0.832 and 0.782 come from the rounded percentages of Table 1a" in note
    assert "(0.93·0.51 + 0.73·0.49 and 0.87·0.51 + 0.69·0.49)" in note
    assert "357/700 and 343/700, Eq. 5 gives 0.8325 and 0.7789" in note
