"""Claims of the factorial experiment hold in worlds where they are true, and fail where they are not."""

from __future__ import annotations

import pytest

from openloop.studies.lim2015.designs import ALL, CELLS, HALF, OF_ADG, OF_AUC
from openloop.studies.lim2015.effects import ALONE, MORE_STEPS, TOGETHER, UNTIL, all_effects
from openloop.studies.lim2015.factorial_claims import ABOUT_HALF, NO_GAIN, claims_of, explained, weights_claim
from openloop.studies.lim2015.protocol import TOO_WIDE
from tests.studies.lim2015.experiments import made_up

# gain at equal updates, more steps carry it, gain at equal steps, until carries that, one part carries the gain on ADG,
# on ATOP, fewer steps are why MF-AUC is behind on ATOP, the weight is inert
WORLDS = {
    "steps": (((0.0, 0.0, 0.0), 0.05), [True, True, False, False, True, True, True, True]),
    "steps and until": (((0.0, 0.0, 0.02), 0.05), [True, True, True, True, True, True, True, True]),
    "until": (((0.0, 0.0, 0.05), 0.0), [True, False, True, True, True, True, False, True]),
    "items": (((0.05, 0.0, 0.01), 0.0), [True, False, True, False, True, True, False, True]),
    "weight": (((0.0, 0.05, 0.0), 0.0), [True, False, True, False, False, False, False, False]),
    "all a little": (((0.03, 0.0, 0.02), 0.03), [True, False, True, False, False, False, False, True]),
    "nothing": (((0.0, 0.0, 0.0), 0.0), [False, False, False, False, False, False, False, True]),
    "worse": (((0.0, -0.05, -0.05), -0.05), [False, False, False, False, False, False, False, False]),
}
STEPS_AND_UNTIL = {"effects": (0.0, 0.0, 0.02), "steps": 0.05, "own": 0.001}


def claims(e):
    return list(claims_of(e, all_effects([e])))


def held(e):
    return [claim.holds for claim in claims(e)]


@pytest.mark.parametrize("world", WORLDS)
def test_each_claim_holds_where_it_is_true(world):
    (effects, steps), wanted = WORLDS[world]
    assert held(made_up(effects, steps=steps, own=0.001)) == wanted


# which of the claims above there is nothing to decide about, for want of a gain
OPEN = {
    "steps": [False, False, False, True, False, False, False, False],
    "until": [False] * 8,
    "nothing": [False, True, False, True, True, True, True, False],
}


@pytest.mark.parametrize("world", OPEN)
def test_where_no_gain_is_significant_there_is_nothing_to_be_carried(world):
    effects, steps = WORLDS[world][0]
    found = claims(made_up(effects, steps=steps, own=0.001))
    assert [claim.undecided == NO_GAIN for claim in found] == OPEN[world]
    assert all(claim.ours for claim in found)


def test_a_share_of_about_half_is_not_decided():
    found = claims(made_up((0.0, 0.0, 0.05), steps=0.05, own=0.001))
    assert (found[1].holds, found[1].undecided) == (False, ABOUT_HALF)


@pytest.mark.parametrize("world", ["steps and until", "items", "all a little", "nothing"])
def test_the_half_of_the_design_tells_the_same_but_nothing_about_the_weight(world):
    (effects, steps), wanted = WORLDS[world]
    assert held(made_up(effects, steps=steps, own=0.001, cells=HALF)) == wanted[:-1]


def test_what_the_parts_do_together_is_no_single_part():
    found = claims(made_up((0.0, 0.05, 0.0), own=0.001, cells=HALF))
    assert [claim.holds for claim in found[4:6]] == [False, False]
    assert all(TOGETHER in claim.found for claim in found[4:6])


# --- the rank weight


@pytest.mark.parametrize(("percent", "inert"), [(0.5, True), (1.8, False), (-1.8, False)])
def test_the_weight_is_inert_by_its_effect_where_it_acts(percent, inert):
    # MF-AUC is at 0.3. Averaged over cells that draw once as well, 1.8 % would be 0.9 %.
    assert held(made_up((0.0, percent / 100 * 0.3, 0.0), own=0.001))[-1] is inert


def test_little_data_does_not_make_the_weight_inert():
    claim = claims(made_up((0.0, 0.0, 0.0), own=0.2))[-1]
    assert (claim.holds, claim.undecided) == (False, TOO_WIDE)
    outside = claims(made_up((0.0, 0.1, 0.0), own=0.001))[-1]
    assert (outside.holds, outside.undecided) == (False, "")


# --- fits that ended short


def test_claims_at_equal_steps_are_not_decided_where_a_fit_had_fewer_and_say_so():
    e = made_up(**STEPS_AND_UNTIL)
    e.found[ALL, OF_AUC][0].best.outcome["tally"][1] -= 1
    found = claims(e)
    assert [claim.holds for claim in found] == [True, *[False] * 6, True]  # the weight is compared in other cells
    assert [bool(claim.undecided) for claim in found] == [False, *[True] * 6, False]
    assert [claim.undecided[: len("1 of 16 fits")].rstrip(" e") for claim in found[1:4]] == [
        "1 of 2 fits", "1 of 4 fits", "1 of 16 fits",
    ]  # fmt: skip
    assert found[1].gist


def test_the_claim_on_the_weight_is_not_decided_where_a_fit_with_fewer_positives_ended_short():
    e = made_up(**STEPS_AND_UNTIL)
    e.found[12, OF_ADG][1].best.outcome["tally"][1] -= 1
    assert held(e) == [*[True] * 7, False]


# --- in words


def sentence(effects, steps=0.0, cells=CELLS):
    e = made_up(effects, steps=steps, own=0.0005, cells=cells)
    return explained(e, all_effects([e]))


def test_the_largest_part_is_named_with_its_share():
    said = sentence((0.0, 0.0, 0.02), 0.08)  # 80 % of the gain at equal updates, and all of that at equal steps
    assert [said.count(x) for x in (MORE_STEPS, UNTIL, "80% of it", "100% of it")] == [2, 2, 2, 2]
    assert "mainly because it takes fewer steps" in said
    assert "in 80 % of its updates" in said
    assert ALONE[0] in sentence((0.05, 0.0, 0.0), cells=HALF)


def test_another_reason_or_no_gap_is_told_as_such():
    assert "is not shown" in sentence((0.05, 0.0, 0.0))
    assert "does not fall significantly behind" in sentence((0.0, 0.0, 0.0))
    assert "not significant after Holm (the interval is unadjusted)" in sentence((0.0, 0.0, 0.0))
    worse = sentence((0.0, 0.0, -0.05))
    assert "significantly below 0" in worse
    assert "largest part" not in worse


def test_fewer_steps_are_not_shown_to_be_the_reason_where_fits_ended_short():
    e = made_up(**STEPS_AND_UNTIL)
    e.found[ALL, OF_AUC][0].best.outcome["tally"][1] -= 1
    said = explained(e, all_effects([e]))
    assert "is not shown" in said
    assert "1 of 16 fits" in said


def test_the_range_of_the_weight_is_arithmetic_and_not_counted():
    # 1,700 items and γ = 100: C is 1 - 1/log2(k + 2) of k = 1699 in the first draw to 99 in the 17th
    claim = weights_claim([made_up((0, 0, 0))])
    assert (claim.holds, claim.counted) == (True, False)
    assert "0.850 to 0.907" in claim.found
