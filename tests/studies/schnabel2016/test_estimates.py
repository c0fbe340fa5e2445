"""Sums over draws are openloop's estimates; with α = 1 SNIPS is naive; learned propensities obey the lemma."""

from __future__ import annotations

import math

import numpy as np
import pytest

import openloop as ol
from openloop.data.simulate import low_rank
from openloop.estimators.bounds import ips_bias
from openloop.propensity.naive_bayes import NaiveBayes
from openloop.studies.schnabel2016 import estimates, worlds

GIVEN = {"Y": low_rank(80, 150, 3, rng=0).astype(np.int8)}


def first_log(alpha, seed):
    world = worlds.semi_synthetic(GIVEN, alpha, seed)
    return world, world.observe(np.random.default_rng([seed, worlds.DRAWS, 0]))


def test_estimates_are_those_of_evaluate():
    found = estimates.with_known_propensities(GIVEN, alpha=0.25, seed=4, first=0, draws=1)
    world, log = first_log(0.25, 4)
    result = ol.evaluate(world.predictions, log, metrics=estimates.METRICS, estimators=["naive", "ips", "snips"])
    for m, metric in enumerate(estimates.METRICS):
        for j, model in enumerate(worlds.MODELS):
            for name in ("naive", "ips", "snips"):
                assert found[name][0, m, j] == pytest.approx(result[model, metric, name].value, rel=1e-10)


def test_without_selection_bias_snips_is_naive():
    found = estimates.with_known_propensities(GIVEN, alpha=1.0, seed=0, first=0, draws=5)
    assert np.max(np.abs(found["snips"] / found["naive"] - 1)) < 1e-12
    assert np.max(np.abs(found["ips"] / found["naive"] - 1)) > 1e-3


def test_ips_is_unbiased_and_naive_is_not():
    found = estimates.with_known_propensities(GIVEN, alpha=0.25, seed=0, first=0, draws=200)
    error = found["ips"].mean(axis=0) - found["truth"]
    assert np.all(np.abs(error) <= 4 * found["ips"].std(axis=0, ddof=1) / math.sqrt(200))
    assert np.all(np.abs(found["naive"].mean(axis=0) / found["truth"] - 1) > 0.1)


def test_proposition_31_holds_in_every_draw_here():
    found = estimates.with_known_propensities(GIVEN, alpha=0.25, seed=0, first=0, draws=50)
    assert np.mean(np.abs(found["ips"] - found["truth"]) > found["tail"]) <= estimates.ETA


def test_learned_propensities_of_the_scored_log_make_ips_equal_snips():
    found = estimates.with_learned_propensities(GIVEN, alpha=0.5, seed=0, first=0, draws=3, sizes=(20, 2_000))
    assert found["ips"].shape == (3, 2, 3, 5)
    assert found["ips"] == pytest.approx(found["snips"], rel=1e-9)
    assert found["missing"][:, 0].sum() > found["missing"][:, 1].sum() == 0


def test_the_bias_is_that_of_the_lemma():
    found = estimates.with_learned_propensities(GIVEN, alpha=0.5, seed=1, first=0, draws=1, sizes=(50,))
    world, log = first_log(0.5, 1)
    sample = worlds.uniform_sample(world, 50, np.random.default_rng([1, worlds.SAMPLES, 0, 50]))
    by_rating = NaiveBayes().fit(log, uniform=sample).propensity_by_rating_
    P_hat = np.array([by_rating[r] for r in (1.0, 2.0, 3.0, 4.0, 5.0)])[GIVEN["Y"] - 1]
    delta = worlds.losses(world, estimates.METRICS)
    for m in range(3):
        for j in range(5):
            expected = ips_bias(delta[m, j], world.propensities.ravel(), P_hat.ravel())
            assert found["bias"][0, 0, m, j] == pytest.approx(expected, rel=1e-9)
    unlikeness = np.mean(np.abs(1 - world.propensities / P_hat))
    assert found["unlikeness"][0, 0] == pytest.approx(unlikeness)
