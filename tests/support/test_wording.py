"""One way to say lists, shares, p-values and factors; a reason is told once."""

from __future__ import annotations

import math

import pytest

from openloop.support.wording import (
    chance,
    counted,
    critical,
    estimands,
    first_line,
    joined,
    lasting,
    level_of,
    one_line,
    percent,
    pvalue,
    reasons,
    rows_at,
    times,
)


def test_rows_count_from_1_and_long_lists_of_them_are_cut():
    assert rows_at([3]) == "row 4 (the first row below a header is 1)"
    cut = rows_at(range(100))
    assert cut.startswith("rows 1, 2, 3, 4, 5, … (100 in all)")
    assert "6" not in cut


def test_names_are_joined():
    assert [joined(names) for names in (["a"], ["a", "b"], ["a", "b", "c"])] == ["a", "a and b", "a, b and c"]


@pytest.mark.parametrize(
    ("share", "text"),
    [(0.0, "0 %"), (1e-5, "< 0.1 %"), (0.0123, "1.2 %"), (0.5, "50 %"), (0.957, "95.7 %"), (0.99999, "> 99.9 %"),
     (1.0, "100 %")],
)  # fmt: skip
def test_a_share_is_neither_0_nor_100_percent_unless_it_is(share, text):
    assert percent(share) == text


def test_levels_chances_factors_and_counts():
    assert (level_of(0.95), level_of(0.995)) == ("95 %", "99.5 %")
    assert [chance(p) for p in (1e-9, 0.0234, 1.0)] == ["< 0.001", "= 0.023", "= 1"]
    assert [pvalue(p) for p in (1e-9, 0.0234, 1.0)] == ["< 0.001", "0.023", "1"]
    assert [times(g) for g in (None, math.inf, 1.876)] == ["–", "∞", "1.88×"]
    assert [counted(n, "row") for n in (1, 2, 1000)] == ["1 row", "2 rows", "1,000 rows"]


def test_a_reason_is_told_once_with_all_that_it_holds_for():
    skipped = {
        ("mae", "dr"): "dr of mae needs imputed ratings.",
        ("mse", "dr"): "dr of mse needs imputed ratings.",
        ("adg", "ips"): "ips of adg is undefined: so.",
    }
    assert reasons(skipped) == ["dr of mae, mse needs imputed ratings.", "ips of adg is undefined: so."]


def test_critical_values_are_factors_and_shares():
    assert [critical("gamma", 1.66), critical("rho", 1.7), critical("kappa", 0.4)] == ["1.66×", "1.7×", "40 %"]
    assert [critical("kappa", math.inf), critical("rho", None)] == ["∞", "–"]


def test_estimators_of_one_estimand_stand_together():
    found = {"snips": "per cell", "ips": "per cell", "naive": "on what was seen"}
    assert estimands(found) == "snips, ips per cell; naive on what was seen"


def test_a_setting_is_itself_or_one_line():
    assert [one_line(value) for value in (None, True, 3, 0.5, "cg")] == [None, True, 3, 0.5, "cg"]
    assert one_line([1, (2, "a")]) == "[1, (2, 'a')]"
    lines = type("Lines", (), {"__repr__": lambda _: "Lines(\n    a=1,\n)"})()
    assert one_line(lines) == "Lines( a=1, )"
    assert one_line(list(range(99)), 9) == "[0, 1, 2…"


def test_seconds_are_told_in_the_unit_that_suits_them():
    told = [lasting(seconds) for seconds in (0.734, 95, 119, 250, 7_199, 40_000, 200_000)]
    assert told == ["0.73 s", "95 s", "119 s", "4.2 min", "120 min", "11 h", "2.3 d"]


def test_a_function_says_what_it_is_in_its_first_line():
    def told():
        """Half as much.

        At each rank.
        """

    assert first_line(told, "nothing") == "Half as much"
    assert first_line(lambda: None, "nothing") == "nothing"
