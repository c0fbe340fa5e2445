"""Each rule speaks where its number misses the limit, with number and remedy, and is silent elsewhere."""

from __future__ import annotations

import re

import pytest

from openloop.audits import rules
from tests.facts import facts

ENOUGH = {"users": 30, "rows": 500, "effective": 100.0, "largest": 0.1}


def test_overlap_is_silent_inside_its_range_and_without_a_scale():
    assert [list(rules.overlap(mass)) for mass in (None, 0.7, 1.0, 1.4)] == [[], [], [], []]


@pytest.mark.parametrize(
    ("mass", "rare", "limit", "remedy"),
    [
        pytest.param(0.41, 0.0, 0.7, rules.RANDOMISED, id="never seen"),
        pytest.param(0.41, 0.6, 0.7, rules.RARE, id="rare items"),
        pytest.param(83.8, 0.1, 1.4, rules.GIVEN, id="p too low"),
    ],
)
def test_weights_that_do_not_add_up_have_a_remedy(mass, rare, limit, remedy):
    (reason,) = rules.overlap(mass, rare=rare)
    assert (reason.code, reason.value, reason.limit, reason.remedy) == ("overlap", mass, limit, remedy)
    assert re.search(facts("weights", f"{mass:.3g}", "population"), reason.text)


def test_support_at_its_limits_is_enough():
    assert list(rules.support(**ENOUGH)) == []
    assert list(rules.support(users=30, rows=100, effective=None, largest=None)) == []


@pytest.mark.parametrize(
    ("seen", "code", "told"),
    [
        pytest.param({"users": 29}, "users", facts("29 users", 30), id="users"),
        pytest.param({"effective": 99.4}, "rows", facts("500 rows", 99.4, 100), id="rows"),
        pytest.param({"effective": None, "rows": 99}, "rows", facts("99 rows", 100), id="unweighted rows"),
        pytest.param({"largest": 0.25}, "heavy-row", facts("one row", "25 %", "10 %"), id="heavy row"),
    ],
)
def test_thin_support_speaks(seen, code, told):
    (reason,) = rules.support(**ENOUGH | seen)
    assert reason.code == code
    assert re.search(told, reason.text)
    assert reason.remedy == rules.LONGER


def test_where_rare_items_carry_the_weights_leaving_them_out_comes_first():
    (rows,) = rules.support(**ENOUGH | {"effective": 12.0}, rare=0.5)
    assert rows.remedy == rules.RARE


def test_a_difference_that_rests_on_one_user_is_told():
    assert list(rules.influential(None, 0.95)) == []
    assert list(rules.influential(0.04, 0.95)) == []
    (reason,) = rules.influential(0.2, 0.95)
    assert reason.code == "one-user"
    assert re.search(facts("one user", "0.200"), reason.text)


# -- assumptions ---------------------------------------------------------------------------------------------


def test_what_is_not_known_is_in_the_way():
    (rho,), (kappa,) = rules.blind(None, None), rules.clicks(None, None)
    assert (rho.value, kappa.value) == (None, None)
    assert (rho.code, kappa.code) == ("rho", "kappa")


# -- remedies ------------------------------------------------------------------------------------------------


def test_weights_that_are_cut_or_averaged_away_correct_nothing():
    assert list(rules.corrected(None, None, None)) == list(rules.corrected(0.7, 0.25, 5)) == []
    (cut,), (coarse,) = rules.corrected(0.69, None, None), rules.corrected(None, 0.26, None)
    assert (cut.code, cut.value, cut.limit, cut.remedy) == ("clipped", 0.69, 0.7, rules.UNCUT)
    assert (coarse.code, coarse.value, coarse.limit, coarse.remedy) == ("coarse", 0.26, 0.25, rules.ESTIMATOR)
    (few,) = rules.corrected(None, None, 4.5)
    assert (few.code, few.value, few.limit, few.remedy) == ("few-relevant", 4.5, 5, rules.ESTIMATOR)


@pytest.mark.parametrize(
    ("kept", "limit", "size", "told"),
    [(0.9, 0.12, 1.0, True), (0.9, 0.11, 1.0, False), (1.0, 0.0, 1.0, True), (None, 0.0, None, True),
     (0.9, 5.0, None, False)],
)  # fmt: skip
def test_what_a_cap_or_a_floor_cuts_off_must_not_be_able_to_reverse_the_order(kept, limit, size, told):
    found = list(rules.cut_off(kept, limit, size))
    assert bool(found) is not told
    assert all((r.code, r.value, r.remedy) == ("cut", limit, rules.UNCUT) for r in found)
    if size is not None:  # 0.9·θ > 0.1·M
        assert [r.limit for r in found] == ([] if told else [pytest.approx(1 / 9)])
