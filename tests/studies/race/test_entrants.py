"""Who runs: each entrant selects, fits and predicts; stacks take the λ that their bases chose on the log."""

from __future__ import annotations

import math

import numpy as np
import pytest

from openloop.studies.race.entrants import BASELINE, RACERS, chosen_reg, doubly_robust, raced, stack
from openloop.studies.race.protocol import settled, starting


@pytest.fixture
def start(ground):
    return starting(ground.given, seed=0, quick=True)


@pytest.mark.parametrize("name", RACERS)
def test_an_entrant_predicts_every_test_cell(ground, name):
    found = raced(ground.given, entrant=name, seed=1, quick=True)
    assert found["prediction"].shape == (len(ground.test),)
    assert np.isfinite(found["prediction"]).all()
    assert str(found["chosen"])


def test_a_stack_has_three_weights_and_the_penalties_chosen_on_the_log(start):
    ips, naive = chosen_reg(start, weighted=True), chosen_reg(start, weighted=False)
    assert ips == settled(RACERS[BASELINE], start).chosen["reg"]
    assert naive == settled(RACERS["MF naive"], start).chosen["reg"]
    first, (second, half), (third, none) = stack(start).bases
    assert (half, none) == (0.5, 0.0)
    assert (first.reg, second.reg, third.reg) == (ips, math.sqrt(ips * naive), naive)
    assert doubly_robust(start).imputation.reg == ips
