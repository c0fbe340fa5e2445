"""Checks of positions: their size where assumptions hold, and their power where they do not."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom

from openloop.data.click_worlds import click_world
from openloop.data.logging_policies import ranks
from openloop.errors import UndefinedError
from openloop.propensity.checks.positions import (
    better_items,
    items_above_check,
    one_theta_check,
    reaction_check,
)
from openloop.propensity.solvers.harvesting import ThetaCurve
from openloop.propensity.solvers.randomising import randomised, shuffled_rows
from tests.facts import facts

MANY = binom.ppf(0.9999, 40, 0.05)  # of 40 logs, false alarms at 5 %


def ranks_of(world, log, name="a"):
    return ranks(world.scores(name, log.users.ids))[log.user[log.request], log.item]


def rejections(checks):
    return sum(check.rejects for check in checks)


# -- items above ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", ["pbm", "trust"])
def test_items_above_rarely_seem_to_matter_where_they_do_not(model):
    world = click_world(300, 6, 3, model=model)
    found = []
    for seed in range(40):
        log = world.observe(rng=seed)
        found.append(items_above_check(log, ranks_of(world, log)))
    assert rejections(found) <= MANY
    assert abs(np.mean([check.statistic for check in found])) < 4 / np.sqrt(40)


def test_items_above_matter_in_a_cascade():
    """10,000 requests: a model's ranks find it nearly always, the logger's exposure often."""
    world = click_world(2000, 6, 3, model="cascade")
    by_model, by_log = [], []
    for seed in range(8):
        log = world.observe(rng=seed)
        by_model.append(items_above_check(log, ranks_of(world, log)))
        by_log.append(items_above_check(log))
    assert rejections(by_model) >= 7
    assert rejections(by_log) >= 3
    assert all(check.statistic < 0 for check in by_model)  # good items above end the search


# -- reaction ---------------------------------------------------------------------------------------------------


def test_ranks_rarely_seem_to_react_where_they_do_not():
    world = click_world(300, 8, 4, logging="two-rankers")
    assert rejections(reaction_check(world.observe(rng=seed)) for seed in range(40)) <= MANY


@pytest.mark.parametrize(("feedback", "sign"), [("boost", -1), ("hide", 1)])
def test_ranks_that_react_are_found(feedback, sign):
    world = click_world(500, 8, 4, logging="two-rankers", shuffle=0.3, feedback=feedback)
    for seed in range(5):
        found = reaction_check(world.observe(rng=seed))
        assert found.rejects
        assert np.sign(found.statistic) == sign


# -- one θ ------------------------------------------------------------------------------------------------------


def halves(log, ranks=None):
    rows = shuffled_rows(log)
    theta = randomised(log, rows).theta
    better = better_items(log, theta, ranks)
    return better, [randomised(log, rows[part[rows]]) for part in (better, ~better)]


def test_better_items_have_about_half_of_the_rewards_and_are_better():
    world = click_world(800, 20, 3, shuffle=1.0)
    log = world.observe(rng=0)
    better, _ = halves(log, ranks_of(world, log))
    assert 0.3 < log.reward[better].sum() / log.reward.sum() < 0.7
    assert log.reward[better].mean() > 1.5 * log.reward[~better].mean()


def test_one_theta_is_rarely_refused_where_there_is_one():
    world = click_world(300, 6, 3, shuffle=1.0)
    found = []
    for seed in range(40):
        log = world.observe(rng=seed)
        found.append(one_theta_check(*halves(log, ranks_of(world, log))[1]))
    assert rejections(found) <= MANY


def test_chi_squared_by_hand():
    # log θ_2 differs by log 2; each of 100 users has ψ = ±1, so the variance is 1/99.
    psi = np.zeros((100, 2))
    psi[:, 1] = np.tile([1, -1], 50)
    found = one_theta_check(
        ThetaCurve(theta=np.array([1, 0.5]), influence=psi), ThetaCurve(theta=np.array([1, 0.25]), influence=0 * psi)
    )
    assert found.statistic == pytest.approx(99 * np.log(2) ** 2)
    assert (found.df, found.clusters, found.rejects) == (1, 100, True)
    with pytest.raises(UndefinedError, match=facts("one theta", "30")):
        one_theta_check(
            ThetaCurve(theta=np.ones(2), influence=psi[:9]), ThetaCurve(theta=np.ones(2), influence=psi[:9] * 2)
        )
