"""Checks of positions: their size where assumptions hold, their power where they do not, and what they cannot tell."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binom

from openloop.core.feedback import Vocabulary
from openloop.core.impressions import Impressions
from openloop.data.click_worlds import click_world
from openloop.data.logging_policies import ranks
from openloop.errors import AlignmentError, ColumnError, UndefinedError
from openloop.propensity.checks import positions
from openloop.propensity.checks.positions import (
    ExaminationChecks,
    PositionCheck,
    better_items,
    items_above_check,
    one_theta_check,
    quality,
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


def own_candidates(seed):
    """Half of the users click more, and their candidates are better: all share item 0."""
    rng = np.random.default_rng(seed)
    user = np.repeat(np.arange(400), 5)
    item = np.argsort(rng.random((len(user), 6)), axis=1)[:, :3]  # (N, 3) of six candidates
    keen = user % 4 < 2
    attraction = np.where(item == 0, 0.3, 0.2) * np.where(keen, 2, 0.5)[:, None]
    request = np.repeat(np.arange(len(user)), 3)
    return Impressions.from_arrays(
        item=np.where((item > 0) & keen[:, None], item + 5, item).ravel(), position=np.tile([1, 2, 3], len(user)),
        reward=(rng.random(item.shape) < attraction).astype(float).ravel(), request=request,
        requests=Vocabulary.range(len(user)), user=user[request], shuffled=np.ones(len(request), bool),
    )  # fmt: skip


def test_requests_with_candidates_of_their_own_raise_no_false_alarm(monkeypatch):
    logs = [own_candidates(seed) for seed in range(40)]
    assert rejections(map(items_above_check, logs)) <= MANY
    monkeypatch.setattr(positions, "_common_candidates", lambda *_: True)  # what the rule is there for
    assert rejections(map(items_above_check, logs)) > MANY


def test_many_items_of_few_rows_are_compared_within_bins():
    world = click_world(300, 200, 5, shuffle=1.0)
    log = replace(world.observe(rng=0), exposure=None, propensity=None)
    assert 0 <= items_above_check(log).pvalue <= 1


def test_items_above_need_requests_that_were_shuffled_and_ranks_of_each_row():
    world = click_world(100, 6, 3)
    log = world.observe(rng=0)
    with pytest.raises(ColumnError, match=facts("shuffled=")):
        items_above_check(replace(log, shuffled=None))
    with pytest.raises(UndefinedError, match=facts("request=")):
        items_above_check(Impressions.from_arrays(item=log.item, position=log.position, reward=log.reward))
    with pytest.raises(UndefinedError, match=facts("items above", "lack rows")):
        items_above_check(replace(log, position=log.position + 1, exposure=None))
    for wrong in (np.ones(3, int), np.ones(len(log)), np.full(len(log), -1)):
        with pytest.raises(AlignmentError, match=facts("ranks", f"{len(log):,}")):
            items_above_check(log, wrong)
    with pytest.raises(UndefinedError, match=facts("items above", "30")):
        items_above_check(click_world(20, 6, 3).observe(rng=0))


def test_quality_is_fitted_without_the_user():
    # Each learns from the other alone: (1 + 20·½)/(2 + 20) for user 0, (2 + 20·1)/(2 + 20) for user 1.
    log = Impressions.from_arrays(
        item=[0, 0, 0, 0], position=[1, 1, 1, 1], reward=[1.0, 1.0, 0.0, 1.0], request=[0, 1, 2, 3], user=[0, 0, 1, 1],
        requests=Vocabulary.range(4),
    )  # fmt: skip
    np.testing.assert_allclose(quality(log, log.item, np.ones(1)), [0.5, 0.5, 1, 1])


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


def test_reaction_goes_by_time_and_takes_part_of_a_large_log(monkeypatch):
    log = click_world(500, 8, 4, logging="two-rankers", shuffle=0.3, feedback="boost").observe(rng=0)
    found = reaction_check(log)
    backwards = reaction_check(replace(log, time=-log.time))
    assert found.statistic < -5 < 5 < backwards.statistic
    with pytest.raises(UndefinedError, match=facts("reaction", "time=")):  # the input may be in any order
        reaction_check(replace(log, time=None))
    monkeypatch.setattr(positions, "CHECKED_ROWS", len(log) // 2)
    assert reaction_check(log).clusters < 0.6 * found.clusters


def test_reaction_needs_users_and_repeats():
    log = click_world(100, 6, 3).observe(rng=0)
    with pytest.raises(ColumnError, match=facts("user=")):
        reaction_check(replace(log, user=None, users=None))
    once = click_world(100, 6, 3, requests=1).observe(rng=0)
    with pytest.raises(UndefinedError, match=facts("reaction", "0 users", "30")):
        reaction_check(once)


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


def test_trust_bias_shows_in_theta_of_better_and_worse_items():
    world = click_world(4000, 6, 3, model="trust")
    for seed in range(3):
        log = world.observe(rng=seed)
        assert one_theta_check(*halves(log, ranks_of(world, log))[1]).rejects


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


# -- results ----------------------------------------------------------------------------------------------------


def test_results_say_what_rejects_and_become_json():
    known = {"df": 50.0, "clusters": 51, "meanings": ("it matters", "fine")}
    kept = PositionCheck(name="reaction", statistic=0.1, pvalue=0.9, **known)
    gone = PositionCheck(name="items above", statistic=-4.0, pvalue=0.0001, **known)
    assert gone.one_of(3).pvalue == pytest.approx(0.0003)
    assert gone.one_of(1000).words.startswith("fine")
    found = ExaminationChecks(checks={"items above": gone, "reaction": kept}, not_computed={"one theta": "too few"})
    assert (gone.rejects, kept.rejects, found.rejects) == (True, False, ("items above",))
    assert found["reaction"] is kept
    for part in ("items above: it matters", "reaction: fine", "one theta: not computed, too few"):
        assert part in str(found)
    record = json.loads(found.to_json())
    assert record["checks"]["items above"]["rejects"] is True
    assert record["not_computed"] == {"one theta": "too few"}
