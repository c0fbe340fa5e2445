"""Intervals cover the truth as often as they say, where people rate what they like; naive's do not."""

from __future__ import annotations

import numpy as np
import pytest

import openloop as ol
from openloop.data.simulate import World

USERS, ITEMS = 200, 60
DRAWS = 400  # of a fixed seed; a share of 95 % then has a standard error of 1.1 %
LEVELS = np.arange(1, 6)
CHANCE = np.array([0.05, 0.1, 0.2, 0.35, 0.5])  # p by rating
ESTIMATORS = ["naive", "ips", "snips", "dr", "stratified"]
HONEST = ["ips", "snips", "dr", "stratified"]

# Two types of users, half and half, who rate item i like 1 + Binomial(4, taste[type, i]); one type is harder to
# please, so that users differ in their propensities too.
TASTE = np.random.default_rng(0).uniform([[0.1], [0.4]], [[0.6], [0.9]], (2, ITEMS))
PREDICTED = 1.5 + 4 * TASTE.mean(axis=0) + np.random.default_rng(1).normal(0, 0.7, ITEMS)  # (I,) half a star too high
BINOMIAL = np.array([1, 4, 6, 4, 1])
SHAPE = BINOMIAL * TASTE[..., None] ** (LEVELS - 1) * (1 - TASTE[..., None]) ** (5 - LEVELS)  # (2, I, 5)
TRUE_MEAN = float((SHAPE * np.abs(LEVELS - PREDICTED[:, None])).sum(axis=-1).mean())


def population(rng) -> World:
    taste = TASTE[rng.integers(2, size=USERS)]
    Y = 1 + rng.binomial(4, taste)
    return World(ratings=Y.astype(np.float32), propensities=CHANCE[Y - 1])


def estimated(log, p=None):
    models = {"m": np.broadcast_to(PREDICTED, (USERS, ITEMS)).copy()}
    ways = [ol.dr(np.full((USERS, ITEMS), 3.0)) if name == "dr" else name for name in ESTIMATORS]
    found = ol.evaluate(models, log, p, metrics=["mae"], estimators=ways, pairs=())
    return {name: found["m", "mae", name] for name in ESTIMATORS}


def coverage(draw, truth, over):
    inside = {name: [] for name in ESTIMATORS}
    for _ in range(DRAWS):
        for name, estimate in draw().items():
            inside[name].append(truth in estimate.interval(0.95, over=over))
    found = {name: float(np.mean(values)) for name, values in inside.items()}
    print(over, found)  # noqa: T201 (shown by pytest -s, and when this fails)
    return found


def assert_honest(found):
    assert {name: rate for name, rate in found.items() if name in HONEST and not 0.93 <= rate <= 0.97} == {}
    assert found["naive"] < 0.05


def test_the_superpopulation_mean_is_what_a_large_population_has():
    rng = np.random.default_rng(5)
    means = [np.abs(population(rng).ratings - PREDICTED).mean() for _ in range(50)]
    assert abs(np.mean(means) - TRUE_MEAN) < 4 * np.std(means) / np.sqrt(50)


known = pytest.mark.parametrize("grid", [False, True], ids=["estimated shares", "known shares"])


@known
def test_over_cells_these_users_and_only_the_observation_random(grid):
    rng = np.random.default_rng(11)
    world = population(rng)
    truth = float(np.abs(world.ratings - PREDICTED).mean())
    p = np.array(world.propensities) if grid else None
    assert_honest(coverage(lambda: estimated(world.observe(rng), p), truth, "cells"))


@known
def test_over_users_the_users_random_too(grid):
    rng = np.random.default_rng(12)

    def draw():
        world = population(rng)
        return estimated(world.observe(rng), np.array(world.propensities) if grid else None)

    assert_honest(coverage(draw, TRUE_MEAN, "users"))
