"""Who runs: each entrant selects, fits and predicts; stacks take the λ that their bases chose on the log."""

from __future__ import annotations

import math

import numpy as np
import pytest

from openloop.commands.recipes import learner_of
from openloop.studies.race.entrants import BASELINE, RACERS, chosen_reg, doubly_robust, raced, stack
from openloop.studies.race.finishing import learned
from openloop.studies.race.protocol import settled, starting


@pytest.fixture
def start(ground):
    return starting(ground.given, label=0, seed=0, quick=True)


@pytest.mark.parametrize("name", RACERS)
def test_an_entrant_predicts_every_test_cell(ground, name):
    found = raced(ground.given, entrant=name, label=learned(RACERS[name])[0], seed=1, quick=True)
    assert found["prediction"].shape == (len(ground.test),)
    assert np.isfinite(found["prediction"]).all()
    assert str(found["chosen"])


def test_the_same_seed_gives_the_same_bits(ground):
    found, again = (raced(ground.given, entrant="Recalibrated", label=0, seed=1, quick=True) for _ in range(2))
    assert found["prediction"].tolist() == again["prediction"].tolist()


def test_those_that_rate_are_near_the_ratings_and_the_others_are_not_asked(ground):
    for name in (BASELINE, "Recalibrated", "Stack"):
        found = raced(ground.given, entrant=name, label=0, seed=0, quick=True)["prediction"]
        assert np.mean((found - ground.test.rating) ** 2) < np.var(ground.test.rating)
    assert not any(entrant.rates for entrant in RACERS.values() if entrant.learns == "label")


def test_a_stack_has_three_weights_and_the_penalties_chosen_on_the_log(start):
    ips, naive = chosen_reg(start, weighted=True), chosen_reg(start, weighted=False)
    assert ips == settled(RACERS[BASELINE], start).chosen["reg"]
    assert naive == settled(RACERS["MF naive"], start).chosen["reg"]
    first, (second, half), (third, none) = stack(start).bases
    assert (half, none) == (0.5, 0.0)
    assert (first.reg, second.reg, third.reg) == (ips, math.sqrt(ips * naive), naive)
    assert doubly_robust(start).imputation.reg == ips


def test_probabilities_are_between_0_and_1(ground):
    found = raced(ground.given, entrant="logistic MF-IPS", label=3, seed=0, quick=True)["prediction"]
    assert 0 < found.min() < found.max() < 1


def test_the_row_of_which_nothing_was_selected_is_the_stack_of_the_command(start):
    given = {"factors": start.factors, "threads": 1, "rng": start.seed}
    theirs = learner_of("stack", given, start.log, weighted=True)
    ours = RACERS["Stack + Exposure, nothing selected"].learner(start)
    assert (theirs.folds, theirs.reg, theirs.final) == (ours.folds, ours.reg, ours.final)
    for one, other in zip(theirs.bases, ours.bases, strict=True):
        pairs = [base if isinstance(base, tuple) else (base, 1.0) for base in (one, other)]
        assert pairs[0][0].get_params() == pytest.approx(pairs[1][0].get_params())
        assert pairs[0][1] == pairs[1][1]
