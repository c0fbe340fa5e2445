"""q̂ is fitted without the users it is used for, and summed over the model's lists."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import openloop as ol
from openloop.errors import InputError
from openloop.impressions.imputing import SHRINKAGE
from openloop.impressions.question import ShownQuestion
from openloop.impressions.source import ShownSource
from tests.click_cases import cut, log_of, world
from tests.examples import same
from tests.facts import facts

THETA = world().theta


def direct(log, kind="iips", rewards=None):
    asked = ShownQuestion(estimators=f"{kind}_dr" if rewards is None else ol.dr(rewards, kind=kind))
    return ShownSource(world().ranks(log), log, THETA, asked).moments("a", kind, robust=True).direct  # (U,)


def listed(log):
    """The model's list of each user, (U, 6)."""
    return world().ranks(log)["a"].sort("user", "rank")["item"].to_numpy().reshape(-1, 6)


def test_a_users_own_rewards_do_not_count():
    log = log_of()
    even = np.arange(log.n_clusters) % 2 == 0
    other = replace(log, reward=np.where(even[log.user[log.request]], 1.0 - log.reward, log.reward))
    same(direct(log)[even], direct(other)[even])
    assert not np.allclose(direct(log)[~even], direct(other)[~even])


def test_rates_are_shrunk_to_their_mean():
    log = log_of()
    odd = log.user[log.request] % 2 == 1
    reward, theta = np.bincount(log.item, odd * log.reward), np.bincount(log.item, odd * THETA[log.position - 1])
    mean = reward.sum() / theta.sum()
    q = (reward + SHRINKAGE * mean) / (theta + SHRINKAGE)
    wanted = q[listed(log)[:, :3]] @ THETA * np.bincount(log.user)
    same(direct(log)[::2], wanted[::2])


def test_lists_are_cut_where_requests_are():
    log, q = cut(log_of()), np.arange(6.0)
    depth = np.arange(3) < log.lengths[:, None]
    wanted = (q[listed(log)[log.user, :3]] * depth) @ THETA  # (N,)
    same(direct(log, rewards=q), np.bincount(log.user, wanted))


def test_the_list_above_weights_each_term():
    log, q = log_of(), np.arange(6.0)
    lists = listed(log)[log.user, :3]  # (N, K)
    hit = np.cumprod(lists == log.item.reshape(-1, 3), axis=1) / log.prefix.reshape(-1, 3)
    terms = q[lists] * THETA
    wanted = terms[:, 0] + hit[:, 0] * terms[:, 1] + hit[:, 1] * terms[:, 2]
    same(direct(log, "rips", rewards=q), np.bincount(log.user, wanted))


def test_what_is_passed_must_fit():
    with pytest.raises(InputError, match=facts(6, "(2,)")):
        direct(log_of(), rewards=[1.0, 2.0])
