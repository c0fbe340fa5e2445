"""q̂ is fitted without the users it is used for, and summed over the model's lists."""

from __future__ import annotations

import numpy as np
import pytest

from openloop.errors import InputError
from openloop.impressions.imputing import SHRINKAGE, ImputedRewards
from openloop.impressions.question import ShownQuestion
from openloop.impressions.rankers import ranking
from tests.click_cases import cut, log_of, world
from tests.examples import same
from tests.facts import facts

THETA = world().theta


def test_a_users_own_rewards_do_not_count():
    from dataclasses import replace

    log = log_of()
    even = log.user[log.request] % 2 == 0
    other = replace(log, reward=np.where(even, 1.0 - log.reward, log.reward))
    a, b = (ImputedRewards.fitted(x, THETA) for x in (log, other))
    same(a.q[0], b.q[0])
    assert not np.allclose(a.q[1], b.q[1])


def test_rates_are_shrunk_to_their_mean():
    log = log_of()
    rows = (log.user[log.request] % 2 == 1) & (log.item == 4)
    every = log.user[log.request] % 2 == 1
    theta = THETA[log.position - 1]
    mean = log.reward[every].sum() / theta[every].sum()
    wanted = (log.reward[rows].sum() + SHRINKAGE * mean) / (theta[rows].sum() + SHRINKAGE)
    same(ImputedRewards.fitted(log, THETA).q[0, [4, 6]], [wanted, mean])


@pytest.mark.parametrize("candidates", ["all", "shown"])
def test_sums_over_the_models_lists(candidates):
    log = cut(log_of())
    depth = log.position[log.request_ptr[1:] - 1]
    found = ranking("a", world().ranks(log)["a"], log, ShownQuestion(candidates=candidates))
    imputed = ImputedRewards.given(np.arange(6.0), log)
    direct, slopes = imputed.of_lists(log, found, THETA, depth)
    same(direct.sum(), slopes.sum())
    n = int(np.flatnonzero(depth == 2)[0])
    own = np.flatnonzero(log.request == n)
    shown = log.item[own][np.argsort(found.rank[own])]
    items = shown if found.lists is None else found.lists.lists[log.user[n], :2]
    same(direct[n], items @ THETA[:2])


def test_the_list_above_weights_each_term():
    log = log_of()
    found = ranking("a", world().ranks(log)["a"], log, ShownQuestion())
    above = np.random.default_rng(0).random(len(log))
    direct, _ = ImputedRewards.given(np.arange(6.0), log).of_lists(log, found, THETA, np.full(log.n_requests, 3), above)
    terms = found.lists.lists[log.user] * THETA  # (N, K): q̂ of item i is i
    same(direct, terms[:, 0] + above[0::3] * terms[:, 1] + above[1::3] * terms[:, 2])


def test_what_is_given_must_fit():
    with pytest.raises(InputError, match=facts(6, "(2,)")):
        ImputedRewards.given([1.0, 2.0], log_of())
