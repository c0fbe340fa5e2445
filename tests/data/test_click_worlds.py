"""Logs of a click world are what its truths say; its rankers know every user."""

from __future__ import annotations

import numpy as np
import pytest

import openloop as ol
from openloop.data.click_worlds import ClickWorld, click_world
from openloop.data.logging_policies import ranks
from openloop.errors import InputError
from tests.facts import facts

MODELS = ("pbm", "cascade", "trust")


def per_request(log, values):
    """Sums per request, and the mean over requests with its standard error over users."""
    x = np.bincount(log.request, values, minlength=log.n_requests)
    n = np.bincount(log.user, minlength=log.n_clusters)
    mean = x.mean()
    error = np.bincount(log.user, x - mean, minlength=log.n_clusters)
    assert n.min() >= 1
    return mean, np.sqrt(np.square(error).sum()) / log.n_requests


def test_the_setting_of_the_goals():
    world = ol.simulate.click_world()
    log = world.observe(rng=1)
    assert (log.n_clusters, log.n_items, log.depth) == (2000, 6, 3)
    assert log.n_requests == pytest.approx(10_000, rel=0.1)
    assert log.shuffled.mean() == pytest.approx(0.5, abs=0.03)
    assert set(log.pool.tolist()) == {6}
    assert np.bincount(log.user).max() > 20  # heavy users
    assert world.truth("a") / world.truth("b") - 1 == pytest.approx(0.13, abs=0.01)
    np.testing.assert_array_equal(world.theta, [1, 1 / 2, 1 / 3])


@pytest.mark.parametrize("model", MODELS)
def test_a_log_of_the_logger_alone_has_the_clicks_of_its_truth(model):
    world = click_world(4000, model=model, logging="deterministic")
    log = world.observe(rng=2)
    mean, error = per_request(log, log.reward)
    assert error < 0.015
    assert mean == pytest.approx(world.truth("logger"), abs=4 * error)


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


def test_rankers_are_functions_of_ids_and_frames_of_ranks():
    world = click_world(40)
    log = world.observe(rng=4)
    frame = world.ranks(log)["a"]
    scores = world.rankers["a"](frame["user"].to_numpy(), frame["item"].to_numpy())
    np.testing.assert_array_equal(np.argsort(-scores.reshape(40, 6), 1)[:, 0], frame.filter(rank=1)["item"].to_numpy())
    backwards = world.rankers["a"](frame["user"].to_numpy()[::-1], frame["item"].to_numpy()[::-1])
    np.testing.assert_array_equal(backwards[::-1], scores)


def test_one_seed_one_log_and_another_seed_other_users():
    world = click_world(30)
    one, same, other = (world.observe(rng=seed) for seed in (5, 5, 6))
    assert one.fingerprint == same.fingerprint != other.fingerprint
    assert not set(one.users.ids.tolist()) & set(other.users.ids.tolist())


def test_trust_is_affine_in_the_rate_at_position_1():
    world = click_world(model="trust")
    a, b = world.affine
    q = np.eye(3)  # one item attracts for sure, the others never
    alone = np.array([world.value(row) for row in q]) - world.value(np.zeros(3))
    np.testing.assert_allclose(alone / alone[0], a)
    assert (a[0], b[0]) == (1, 0)
    assert click_world().affine[0].tolist() == click_world().theta.tolist()


@pytest.mark.parametrize(("feedback", "sign"), [("none", 0), ("boost", -1), ("hide", 1)])
def test_lists_react_to_clicks_as_asked(feedback, sign):
    log = click_world(500, feedback=feedback, logging="deterministic").observe(rng=7)
    place = np.full((log.n_requests, 6), 4)  # below the list
    place[log.request, log.item] = log.position
    order = np.argsort(log.user, kind="stable")  # each user's requests, in the order of time
    now, later = order[:-1], order[1:]
    after = np.full(log.n_requests, -1)
    after[now] = np.where(log.user[now] == log.user[later], later, -1)
    clicked = (log.reward > 0) & (after[log.request] >= 0)
    moved = place[after[log.request], log.item] - log.position
    assert np.sign(moved[clicked].mean()) == sign


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"model": "dcm"}, ("model", "dcm", "pbm")),
        ({"logging": "random"}, ("logging", "random", "shuffled")),
        ({"feedback": "yes"}, ("feedback", "yes", "boost")),
        ({"depth": 7}, ("depth=7", "items=6")),
        ({"users": 0}, ("users", 0)),
        ({"shuffle": 1.5}, ("shuffle", 1.5)),
        ({"requests": 0.5}, ("requests=0.5",)),
    ],
)
def test_a_world_that_cannot_be_is_refused(settings, told):
    with pytest.raises(InputError, match=facts(*told)):
        click_world(**settings)


def test_an_unknown_ranker_is_refused():
    with pytest.raises(InputError, match=facts("c", "a", "b")):
        ClickWorld().truth("c")
    with pytest.raises(InputError, match=facts("c", "a", "b")):
        ClickWorld().scores("c", [1])
