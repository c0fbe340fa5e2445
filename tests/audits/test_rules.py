"""Each rule speaks where its number misses the limit, with number and remedy, and is silent elsewhere."""

from __future__ import annotations

import math
import re

import pytest

from openloop.audits import rules
from openloop.audits.answers import Reason
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


@pytest.mark.parametrize("rho_low", [1.5, 2.2, math.inf])
def test_an_order_that_holds_up_to_one_and_a_half_needs_no_assumption(rho_low):
    assert list(rules.blind(math.inf, rho_low)) == []


def test_blind_propensities_name_the_value_at_which_the_order_turns():
    (reason,) = rules.blind(1.73, 1.42)
    assert (reason.code, reason.value, reason.limit, reason.remedy) == ("rho", 1.42, 1.5, rules.RATINGS)
    assert re.search(facts("1.73 times", "1.42 times", "1.5 times"), reason.text)
    (never,) = rules.blind(math.inf, 1.42)
    assert re.search(facts("no longer significant", "1.42 times"), never.text)


def test_what_is_not_known_is_in_the_way():
    (rho,), (kappa,) = rules.blind(None, None), rules.clicks(None, None)
    assert (rho.value, kappa.value) == (None, None)
    assert (rho.code, kappa.code) == ("rho", "kappa")


def test_clicks_must_hold_for_every_share_of_exposure():
    assert list(rules.clicks(math.inf, math.inf)) == []
    (reason,) = rules.clicks(0.67, 0.5)
    assert (reason.code, reason.value, reason.limit, reason.remedy) == ("kappa", 0.5, 1.0, rules.EXPOSURE)
    assert re.search(facts("67 %", "50 %", "popularity", "exposure"), reason.text)
    assert list(rules.clicks(math.inf, 1.0))  # at κ = 1 itself the interval covers 0


def test_rankings_by_fitted_propensities_must_hold_while_these_are_a_bit_off():
    assert list(rules.fitted(1.3, 1.1)) == list(rules.fitted(math.inf, math.inf)) == []
    (reason,), (unknown,) = rules.fitted(1.2, 1.06), rules.fitted(None, None)
    assert (reason.code, reason.value, reason.limit, reason.remedy) == ("gamma", 1.06, 1.1, rules.RATINGS)
    assert re.search(facts("rankings", "1.1 times", "1.20 times", "1.06 times"), reason.text)
    assert (unknown.code, unknown.value, unknown.limit) == ("gamma", None, 1.1)


def test_a_list_that_was_shown_more_must_lead_by_more_than_that():
    two = ("new", "old")
    # odds: .2/.8 against .1/.9 is 2.25; .15/.85 against .1/.9 is 1.59
    assert list(rules.lists(two, (0.2, 0.1), (0.15, 0.1), odds=True, balanced=True)) == []
    assert list(rules.lists(two, (0.2, 0.1), (0.08, 0.1), odds=True, balanced=True)) == []  # shown less, and ahead
    (reason,) = rules.lists(two, (0.15, 0.1), (0.2, 0.1), odds=True, balanced=True)
    assert (reason.code, reason.remedy) == ("lists", rules.EXPOSURE)
    assert (reason.value, reason.limit) == pytest.approx((2.25, 0.15 / 0.85 * 9))
    assert re.search(facts("new", "2.25 times", "old", "1.59 times"), reason.text)
    (plain,) = rules.lists(two, (3.0, 2.0), (0.75, 0.5), odds=False, balanced=False)
    assert (plain.value, plain.limit, plain.remedy) == (pytest.approx(1.5), 1.5, rules.RATINGS)
    (never,) = rules.lists(two, (0.2, 0.0), (0.2, 0.0), odds=True, balanced=True)  # of old's list nothing was seen
    assert never.value == never.limit == math.inf


@pytest.mark.parametrize(
    ("name", "limit", "holds_to", "required"),
    [("rho", 1.4, 1.3, 1.5), ("kappa", 0.6, 0.45, 1.0), ("gamma", 1.08, 1.06, 1.1)],
)
def test_what_is_printed_as_safe_is_three_quarters_of_the_way_to_the_limit(name, limit, holds_to, required):
    found = rules.assumption(name, 1.7, limit)
    assert found.holds_to == pytest.approx(holds_to)
    assert (found.flips_at, found.required) == (1.7, required)
    assert rules.assumption(name, 1.7, None) is None
    base = rules.BASE[name]
    assert rules.carried(found) == pytest.approx((holds_to - base) / (required - base))


# -- remedies ------------------------------------------------------------------------------------------------


def test_the_cheapest_remedy_is_told():
    dear, cheap, none = (Reason(code="x", text="", remedy=r) for r in (rules.RANDOMISED, rules.RARE, ""))
    assert rules.cheapest([dear, none, cheap]) == rules.RARE
    assert rules.cheapest([none]) == ""


def test_every_remedy_has_its_place_in_the_order():
    named = {v for k, v in vars(rules).items() if k.isupper() and isinstance(v, str)}
    assert named == set(rules.REMEDIES)


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


def test_sums_of_gains_that_do_not_begin_at_0_cannot_tell_whether_lists_are_held_alike():
    (reason,) = rules.unlike_lists()
    assert (reason.code, reason.value) == ("lists", None)
    assert "least gain is not 0" in reason.text
