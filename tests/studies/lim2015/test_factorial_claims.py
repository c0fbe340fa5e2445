"""Claims of the factorial experiment hold in worlds where they are true, and fail where they are not."""

from __future__ import annotations

import pytest

from openloop.studies.lim2015.designs import HALF
from openloop.studies.lim2015.effects import all_effects
from openloop.studies.lim2015.factorial_claims import claims_of, weights_claim
from tests.studies.lim2015.experiments import made_up

# gain at equal updates, more steps carry it, gain at equal steps, until carries that, the weight is inert
WORLDS = {
    "steps": (((0.0, 0.0, 0.0), 0.05), [True, True, False, False, True]),
    "steps and until": (((0.0, 0.0, 0.02), 0.05), [True, True, True, True, True]),
    "until": (((0.0, 0.0, 0.05), 0.0), [True, False, True, True, True]),
    "items": (((0.05, 0.0, 0.01), 0.0), [True, False, True, False, True]),
    "weight": (((0.0, 0.05, 0.0), 0.0), [True, False, True, False, False]),
    "nothing": (((0.0, 0.0, 0.0), 0.0), [False, False, False, False, True]),
    "worse": (((0.0, -0.05, -0.05), -0.05), [False, False, False, False, False]),
}


@pytest.mark.parametrize("world", WORLDS)
def test_each_claim_holds_where_it_is_true(world):
    (effects, steps), wanted = WORLDS[world]
    e = made_up(effects, steps=steps, own=0.001)
    assert [claim.holds for claim in claims_of(e, all_effects([e]))] == wanted


def test_the_half_of_the_design_tells_the_same():
    (effects, steps), wanted = WORLDS["steps and until"]
    e = made_up(effects, steps=steps, own=0.001, cells=HALF)
    assert [claim.holds for claim in claims_of(e, all_effects([e]))] == wanted


def test_little_data_does_not_make_the_weight_inert():
    e = made_up((0.0, 0.0, 0.0), own=0.2)
    assert not list(claims_of(e, all_effects([e])))[-1].holds


def test_the_range_of_the_weight_is_arithmetic_and_not_counted():
    # 1,700 items and γ = 100: C is 1 - 1/log2(k + 2) of k = 1699 in the first draw to 99 in the 17th
    claim = weights_claim([made_up((0, 0, 0))])
    assert (claim.holds, claim.counted) == (True, False)
    assert "0.850 to 0.907" in claim.found
