"""The bounds of Schnabel et al. 2016, by hand and by simulation."""

from __future__ import annotations

import math

import numpy as np
import pytest

import openloop as ol
from openloop.errors import InputError, UndefinedError
from openloop.estimators.bounds import (
    generalisation_bound,
    hoeffding,
    inaccurate_bound,
    ips_bias,
    tail_bound,
)
from tests.examples import same, small_world
from tests.facts import facts

P = np.array([[0.5, 0.25], [1.0, 0.1]])
DELTA = np.array([[1.0, 2.0], [3.0, 4.0]])


def test_proposition_3_1_by_hand():
    # ρ = δ/P where P < 1: 2, 8, 0 and 40.
    same(tail_bound(DELTA, P, eta=0.1), math.sqrt(math.log(2 / 0.1) / 2 * (4 + 64 + 1600)) / 4)
    same(tail_bound(4.0, P, eta=0.1), math.sqrt(math.log(2 / 0.1) / 2 * (64 + 256 + 1600)) / 4)


def test_uniform_propensities_give_the_papers_rate():
    # O(1/(p √(U·I))): δ = 1 and p everywhere.
    same(tail_bound(1.0, np.full((20, 30), 0.2), eta=0.05), math.sqrt(math.log(40) / 2) / (0.2 * math.sqrt(600)))


def test_theorem_4_2_by_hand():
    # R̂ + Δ/(U·I) · √(log(2|H|/η)/2) · √Σ 1/P²; a certain cell counts here.
    expected = 0.7 + 4 / 4 * math.sqrt(math.log(2 * 10 / 0.05) / 2) * math.sqrt(4 + 16 + 1 + 100)
    same(generalisation_bound(0.7, P, 4.0, hypotheses=10, eta=0.05), expected)


def test_theorem_5_2_by_hand():
    p_hat = np.array([[0.25, 0.25], [1.0, 0.2]])
    bias = 4 / 4 * (abs(1 - 2) + 0 + 0 + abs(1 - 0.5))
    spread = 4 / 4 * math.sqrt(math.log(2 * 10 / 0.05) / 2) * math.sqrt(16 + 16 + 1 + 25)
    same(inaccurate_bound(0.7, P, p_hat, 4.0, hypotheses=10, eta=0.05), 0.7 + bias + spread)


def test_theorem_5_2_with_the_true_propensities_is_theorem_4_2():
    same(inaccurate_bound(0.7, P, P, 4.0, 10), generalisation_bound(0.7, P, 4.0, 10))


def test_lemma_5_1_by_hand():
    p_hat = np.array([[0.25, 0.25], [1.0, 0.2]])
    same(ips_bias(DELTA, P, p_hat), (1 * (1 - 2) + 0 + 0 + 4 * (1 - 0.5)) / 4)
    assert ips_bias(DELTA, P, P) == 0


def test_lemma_5_1_is_the_truth_less_what_ips_expects():
    world, rng = small_world(20, 10), np.random.default_rng(0)
    delta = np.abs(world.ratings - world.predictions["a"])
    p_hat = np.sqrt(world.propensities)  # too large everywhere, so that ips finds too little
    found = []
    for _ in range(400):
        log = world.observe(rng)
        result = ol.evaluate({"m": world.predictions["a"]}, log, p_hat, metrics=["mae"], estimators=["ips"])
        found.append(result["m", "mae", "ips"].value)
    bias = ips_bias(delta, world.propensities, p_hat)
    error = np.std(found) / 20
    assert bias > 10 * error
    assert abs((delta.mean() - np.mean(found)) - bias) < 3.5 * error


# -- Hoeffding around an estimate ----------------------------------------------------------------------------

WORLD = small_world()
LOG = WORLD.observe(1)
MODELS = {"m": WORLD.predictions["a"]}


def ips(p, log=LOG, name="mae", **options):
    return ol.evaluate(MODELS, log, p, metrics=[name], estimators=["ips"], **options)["m", name, "ips"]


def test_hoeffding_is_proposition_3_1_with_a_bound_for_every_loss():
    estimate = ips(WORLD.propensities)
    half = tail_bound(4.0, WORLD.propensities, eta=0.1)
    same(hoeffding(estimate, bound=4.0, level=0.9), (estimate.value - half, estimate.value + half))


def test_excluded_cells_are_not_in_its_population():
    train, test = ol.split(LOG, test=0.25, rng=0)
    estimate = ips(WORLD.propensities, test, "dcg@3", exclude=train)
    s, t = float(test.share[0]), float(train.share[0])
    keep = np.ones(WORLD.propensities.shape, bool)
    keep[train.user, train.item] = False
    p = WORLD.propensities[keep]
    half = tail_bound(60.0, p * s / (1 - p * t), eta=0.05)
    same(hoeffding(estimate, bound=60.0), (estimate.value - half, estimate.value + half))


def test_hoeffding_covers_and_is_no_narrower_than_it_says():
    rng, truth = np.random.default_rng(0), np.abs(WORLD.ratings - MODELS["m"]).mean()
    inside = [truth in hoeffding(ips(WORLD.propensities, WORLD.observe(rng)), bound=4.0) for _ in range(200)]
    assert np.mean(inside) >= 0.95


def test_hoeffding_needs_the_whole_grid():
    with pytest.raises(UndefinedError, match=facts("hoeffding", "matrix()")):
        hoeffding(ips(None), bound=4.0)


# -- what is refused -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("eta", [0.0, 1.0, -0.1, math.nan])
def test_eta_is_a_chance(eta):
    with pytest.raises(InputError, match="eta"):
        tail_bound(DELTA, P, eta=eta)
