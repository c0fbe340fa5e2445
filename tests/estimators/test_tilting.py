"""Where differences turn: by hand, by law, and by simulation with the truth exactly at the limit."""

from __future__ import annotations

import math

import numpy as np
import pytest

from openloop.estimators.sensitivity import critical_gamma
from openloop.estimators.tilting import UNSEEN, Jackknife, differences, gamma_limit, turning
from tests.examples import same


def parts(user, d, p, users):
    """D, A and B of each user, of a log as a whole."""
    columns = d, (1 / p - 1) * np.maximum(d, 0), (1 / p - 1) * np.maximum(-d, 0)
    return np.stack([np.bincount(user, c, users) for c in columns], axis=1)


def drawn(rng, users, mean, rows=10):
    """A log of users whose mean differences scatter about `mean`, seen with very different p."""
    user = np.repeat(np.arange(users), rng.poisson(rows, users))
    d = rng.normal(mean, 0.3, users)[user] + rng.normal(0, 1, len(user))
    return parts(user, d, np.exp(rng.uniform(np.log(0.02), 0, len(user))), users)


# -- Γ*₉₅ ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("users", "mean"), [(40, 0.3), (150, 0.3), (150, 1.0)])
def test_with_the_truth_at_gamma_the_limit_exceeds_it_in_one_log_of_forty(users, mean):
    rng, logs = np.random.default_rng(users), 1500
    truth = critical_gamma(*drawn(np.random.default_rng(1), 300_000, mean).sum(axis=0))
    missed = np.mean([gamma_limit(drawn(rng, users, mean)) > truth for _ in range(logs)])
    assert 0.015 - 0.004 < missed < 0.04  # .025 wanted; two standard errors of the share are .008


def test_the_limit_is_the_jackknifes_of_log_gamma():
    own = drawn(np.random.default_rng(3), 100, 0.5)
    total = own.sum(axis=0)
    star = critical_gamma(*total)
    without = np.array([critical_gamma(*(total - x)) for x in own])
    found = Jackknife.of(math.log(star), np.log(without), np.abs(own).sum(axis=1))
    same(gamma_limit(own), star * math.exp(-found.margin(0.95)))
    assert 1 < gamma_limit(own, 0.99) < gamma_limit(own) < gamma_limit(own, 0.5) < star


def test_rows_of_one_sign_leave_room_for_what_was_not_seen():
    # No negative row in 50 users: up to 3.69 of them could have some, B = 3.69·A/50, and Γ* = √(50/3.69).
    own = np.tile([0.0, 2.0, 0.0], (50, 1))
    assert critical_gamma(*own.sum(axis=0)) == math.inf
    same(gamma_limit(own), math.sqrt(50 / UNSEEN))
    own[7] = [0.0, 0.0, 1e-3]  # one user has all that speaks against
    assert 1 < gamma_limit(own) < math.sqrt(50 / UNSEEN)


# -- curves --------------------------------------------------------------------------------------------------


def test_a_difference_of_means_has_the_interval_of_a_mean():
    # w = 1 and one row per cluster: the difference is a mean, whose jackknife is the usual standard error.
    rng = np.random.default_rng(0)
    a, b = rng.normal(0.2, 1, (2, 60))
    found = differences(np.stack([np.ones(60), a, b], axis=1)[:, :, None])
    same(found.value, [np.mean(a - b)])
    same(found.stderr, [np.std(a - b, ddof=1) / math.sqrt(60)])
    spread = ((a - b) - np.mean(a - b)) ** 2
    same(found.df, [min(59, 3 * spread.sum() ** 2 / (spread**2).sum() - 1)])


@pytest.mark.parametrize(
    ("values", "sign", "wanted"),
    [
        ([1, 0.5, -0.5], 1, 2.0), ([-1, -0.5, 0.5], -1, 2.0), ([2, 1, 0.5], 1, math.inf), ([2, 1, 0], 1, 2.5),
        ([-1, 1, 1], 1, 1.0), ([3, 1.25, -0.75], 1, 2.0),
    ],
)  # fmt: skip
def test_the_first_turn_is_found(values, sign, wanted):
    # straight lines, and at last (x − 2)(x − 4), where a chord would say 2.125
    assert turning([1.0, 1.5, 2.5], values, sign) == pytest.approx(wanted)
