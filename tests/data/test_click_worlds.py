"""Logs of a click world are what its truths say; its rankers know every user."""

from __future__ import annotations

import numpy as np
import pytest

from openloop.data.click_worlds import click_world
from openloop.data.logging_policies import ranks

MODELS = ("pbm", "cascade", "trust")


def per_request(log, values):
    """Sums per request, and the mean over requests with its standard error over users."""
    x = np.bincount(log.request, values, minlength=log.n_requests)
    n = np.bincount(log.user, minlength=log.n_clusters)
    mean = x.mean()
    error = np.bincount(log.user, x - mean, minlength=log.n_clusters)
    assert n.min() >= 1
    return mean, np.sqrt(np.square(error).sum()) / log.n_requests


@pytest.mark.parametrize("logging", ["shuffled", "plackett-luce"])
@pytest.mark.parametrize("model", MODELS)
def test_whole_lists_weighted_by_one_over_their_probability_give_the_truth(model, logging):
    world = click_world(6000, 4, 2, model=model, logging=logging)
    log = world.observe(rng=3)
    own = np.argsort(-world.scores("b", log.users.ids), axis=1)[:, :2]  # (U, K)
    same = (log.item.reshape(-1, 2) == own[log.user]).all(axis=1)
    mean, error = per_request(log, log.reward * np.repeat(same / log.slate, 2))
    assert error < 0.04
    assert mean == pytest.approx(world.truth("b"), abs=4 * error)


@pytest.mark.parametrize("logging", ["shuffled", "plackett-luce", "two-rankers"])
def test_clicks_weighted_by_exposure_give_the_truth_where_position_and_item_make_them(logging):
    world = click_world(4000, logging=logging, shuffle=0.3)
    log = world.observe(rng=8)
    rank = ranks(world.scores("a", log.users.ids))[log.user[log.request], log.item]
    wanted = np.append(world.theta, [0, 0, 0])[rank - 1]  # θ at the ranker's position, 0 below the list
    mean, error = per_request(log, log.reward * wanted / (log.exposure @ world.theta))
    assert error < 0.02
    assert mean == pytest.approx(world.truth("a"), abs=4 * error)
    mean, error = per_request(log, log.reward * (rank == log.position) / log.propensity)
    assert error < 0.05
    assert mean == pytest.approx(world.truth("a"), abs=4 * error)


def test_a_deterministic_logger_logs_no_probabilities_and_others_do():
    log = click_world(50, logging="deterministic").observe(rng=0)
    assert [log.propensity, log.exposure, log.prefix, log.slate, log.shuffled, log.arms] == [None] * 6
    two = click_world(50, logging="two-rankers").observe(rng=0)
    assert (two.shuffled, two.arms.shape, two.arms.min()) == (None, (len(two), 2), 1)
    at = two.position[:, None] == two.arms
    np.testing.assert_array_equal(two.propensity, at.mean(axis=1))  # every row is where one of the arms has it
    assert two.propensity.min() == 0.5
    np.testing.assert_array_equal(two.exposure[np.arange(len(two)), two.position - 1], two.propensity)
    many = click_world(50, 60, 4, logging="plackett-luce").observe(rng=0)
    assert (many.propensity, many.exposure) == (None, None)
    assert 0 < many.slate.min() < many.slate.max() < 1
