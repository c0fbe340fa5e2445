"""`Examination` finds θ of a world with honest intervals, keeps its laws, and refuses what a log does not identify."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binom
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import openloop as ol
from openloop.core.feedback import Vocabulary
from openloop.core.impressions import Impressions
from openloop.data.click_worlds import click_world
from openloop.errors import AlignmentError, ColumnError, InputError, RatingError, UndefinedError
from openloop.propensity.examination import METHODS, Examination
from tests.facts import facts

WAYS = [("randomised", "shuffled"), ("randomised", "weighted"), ("assignment", "harvest"), ("item", "harvest")]


def two_arms(users=300, **settings):
    """Two rankers by a coin and shuffled lists: every way but "item" finds θ here."""
    return click_world(users, 6, 3, logging="two-rankers", shuffle=0.5, **settings)


def taken(log, keep, **changes):
    """Some rows of a log in another order, with all their columns."""
    request = np.unique(log.request[keep], return_inverse=True)[1]
    by_row = {name: getattr(log, name)[keep] for name in ("item", "position", "reward", "propensity", "arms")}
    by_request = {name: getattr(log, name)[log.request[keep]] for name in ("user", "shuffled")}
    names = {"requests": Vocabulary.range(int(request.max()) + 1), "users": log.users, "items": log.items}
    return Impressions.from_arrays(**(by_row | by_request | names | {"request": request} | changes))


# -- truth ------------------------------------------------------------------------------------------------------

TRUTHS = {
    "user-item": (click_world(2000, 10, 5, logging="two-rankers"), "harvest"),
    "assignment": (click_world(2000, 10, 5, logging="two-rankers"), "harvest"),
    "randomised": (click_world(800, 6, 3), "shuffled"),
    "weighted": (click_world(800, 6, 3), "weighted"),
    "reacting": (click_world(1200, 8, 4, logging="two-rankers", feedback="hide"), "harvest"),
}
BY = {"weighted": "randomised", "reacting": "assignment"}


@pytest.mark.parametrize("case", TRUTHS)
def test_theta_is_found_without_bias_and_covered(case):
    """10,000 requests of two rankers: bias within its noise, an error below 20 %, 95 % intervals."""
    world, method = TRUTHS[case]
    errors, inside = [], []
    for seed in range(24):
        try:
            found = Examination(by=BY.get(case, case), method=method).fit(world.observe(rng=seed))
        except UndefinedError as refused:  # user-item is refused by chance in 5 % of logs
            assert "react" in str(refused)  # noqa: PT017 (the others must go on)
            continue
        limits = found.interval(0.95)
        errors.append(np.log(found.theta_ / world.theta)[1:])
        inside.append(((limits[:, 0] <= world.theta) & (world.theta <= limits[:, 1]))[1:])
    n, errors = len(errors), np.array(errors)
    assert n >= binom.ppf(1e-4, 24, 0.95)
    assert np.all(np.abs(errors.mean(axis=0)) < 4 * errors.std(axis=0) / np.sqrt(n) + 0.01)
    assert np.sqrt(np.square(errors).mean(axis=0)).max() < 0.2
    assert np.sum(inside, axis=0).min() >= binom.ppf(1e-4, n, 0.95)


@pytest.mark.parametrize(("by", "method"), WAYS[:3])
def test_a_world_where_all_positions_are_alike_has_theta_one(by, method):
    world = two_arms(users=600, eta=0.0)
    found = Examination(by=by, method=method).fit(world.observe(rng=1))
    z = np.log(found.theta_[1:]) / found.stderr_[1:]
    assert np.abs(z).max() < 4
    assert found.stderr_[1:].max() < 0.2


# -- laws -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("by", "method"), WAYS)
def test_what_is_learned(by, method):
    log = two_arms().observe(rng=0)
    found = Examination(by=by, method=method).fit(log)
    K, U = log.depth, log.n_clusters
    assert found.theta_.shape == (K,)
    assert found.theta_[0] == 1
    assert found.influence_.shape == (U, K)
    np.testing.assert_array_equal(found.influence_[:, 0], 0)
    np.testing.assert_allclose(found.influence_.mean(axis=0), 0, atol=1e-10)
    np.testing.assert_allclose(np.diag(found.covariance_), found.stderr_**2)
    np.testing.assert_allclose(found.stderr_**2, np.square(found.influence_).sum(axis=0) / U / (U - 1))
    assert (found.fingerprint_, found.method_) == (log.fingerprint, method)
    limits = found.interval(0.9)
    np.testing.assert_array_equal(limits[0], [1, 1])
    np.testing.assert_allclose(np.sqrt(limits.prod(axis=1)), found.theta_)
    assert np.all(found.interval(0.99)[1:, 1] > limits[1:, 1])


@pytest.mark.parametrize(("by", "method"), WAYS)
def test_scaled_rewards_and_permuted_rows_change_nothing(by, method):
    log = two_arms().observe(rng=0)
    first = Examination(by=by, method=method).fit(log)
    order = np.random.default_rng(0).permutation(len(log))
    for other in (replace(log, reward=7 * log.reward), taken(log, order)):
        same = Examination(by=by, method=method).fit(other)
        np.testing.assert_allclose(same.theta_, first.theta_, rtol=1e-8)
        np.testing.assert_allclose(same.influence_, first.influence_, atol=1e-8)


@pytest.mark.parametrize(("by", "method"), WAYS)
def test_every_user_twice_is_the_same_theta_with_half_the_variance(by, method):
    log = two_arms().observe(rng=0)
    U = log.n_clusters
    twice = taken(
        log, np.tile(np.arange(len(log)), 2), request=np.concatenate([log.request, log.request + log.n_requests]),
        requests=Vocabulary.range(2 * log.n_requests), users=Vocabulary.range(2 * U),
        user=np.concatenate([log.user[log.request], log.user[log.request] + U]),
    )  # fmt: skip
    first, second = (Examination(by=by, method=method).fit(each) for each in (log, twice))
    np.testing.assert_allclose(second.theta_, first.theta_, rtol=1e-8)
    np.testing.assert_allclose(second.stderr_**2, first.stderr_**2 / 2 * (2 * U - 2) / (2 * U - 1), rtol=1e-8)


@pytest.mark.parametrize(("by", "method"), WAYS)
def test_halves_agree_with_the_whole(by, method):
    """Fits on halves of the users: their mean is near the whole, and their spread is what the intervals say."""
    log = two_arms(users=1500).observe(rng=3)
    whole = Examination(by=by, method=method).fit(log)
    user = log.user[log.request]
    halves = [Examination(by=by, method=method).fit(taken(log, np.flatnonzero(user % 2 == h))) for h in (0, 1)]
    logs = np.log([half.theta_ for half in halves])
    np.testing.assert_allclose(logs.mean(axis=0), np.log(whole.theta_), atol=0.05)
    z = (logs[0] - logs[1])[1:] / np.hypot(*(half.stderr_[1:] for half in halves))
    assert np.abs(z).max() < 4


def test_it_is_an_estimator_of_scikit_learn():
    model = Examination(by="assignment")
    log = two_arms().observe(rng=0)
    assert model.get_params() == {"by": "assignment", "method": None, "theta": None}
    twin = clone(model.fit(log))
    assert not hasattr(twin, "theta_")
    np.testing.assert_array_equal(twin.fit(log).theta_, model.theta_)
    kept = pickle.loads(pickle.dumps(model))  # noqa: S301, it was pickled here
    np.testing.assert_array_equal(kept.interval(), model.interval())
    assert ol.propensity.Examination is Examination


def test_a_second_fit_forgets_the_first():
    log = click_world(300, 6, 3, shuffle=1.0, requests=8, base=0.0).observe(rng=0)
    model = Examination(method="affine").fit(log)
    np.testing.assert_array_equal(model.theta_, model.trust_)
    assert model.offset_[0] == 0
    model.set_params(method="shuffled").fit(log)
    assert not hasattr(model, "trust_")
    assert not hasattr(model, "offset_")


def test_clusters_are_requests_where_no_users_are_logged():
    log = click_world(300, 6, 3).observe(rng=0)
    nameless = replace(log, user=None, users=None)
    found = Examination(by="randomised").fit(nameless)
    assert found.influence_.shape == (log.n_requests, 3)
    np.testing.assert_allclose(found.theta_, Examination(by="randomised").fit(log).theta_)


def test_randomised_takes_shuffled_requests_before_weights():
    log = click_world(300, 6, 3).observe(rng=0)
    assert Examination().fit(log).method_ == "shuffled"
    assert Examination().fit(replace(log, shuffled=None)).method_ == "weighted"


def test_known_theta_has_no_error():
    log = click_world(50, 6, 3).observe(rng=0)
    found = Examination(by="known", theta=[2.0, 1.0, 0.5, 0.1]).fit(log)
    np.testing.assert_array_equal(found.theta_, [1, 0.5, 0.25])
    np.testing.assert_array_equal(found.interval(), np.repeat(found.theta_[:, None], 2, axis=1))
    assert found.influence_.shape == (log.n_clusters, 3)
    assert "one theta" in found.check(log).not_computed


# -- methods of studies -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["all_pairs", "em"])
def test_methods_of_studies_have_numbers_and_no_intervals(method):
    log = two_arms(users=500).observe(rng=0)
    found = Examination(by="item", method=method).fit(log)
    assert found.influence_ is None
    assert found.covariance_ is None
    assert method in found.notes_[0]
    with pytest.raises(UndefinedError, match=facts(method, "harvest")):
        found.interval()
    assert "one theta" in found.check(log).not_computed
    with pytest.raises(RatingError, match=facts(method, "2.0")):
        Examination(by="item", method=method).fit(replace(log, reward=2 * log.reward))


def test_em_returns_numbers_where_nothing_is_identified_and_harvest_refuses():
    log = click_world(500, 6, 3, logging="deterministic").observe(rng=0)
    found = Examination(by="user-item", method="em").fit(log)
    assert np.all((found.theta_ > 0) & np.isfinite(found.theta_))
    with pytest.raises(UndefinedError, match=facts("nothing is identified", "randomised")):
        Examination(by="user-item").fit(log)


# -- checks and refusals ----------------------------------------------------------------------------------------


def test_checks_that_can_be_made_are_made():
    log = two_arms(users=600).observe(rng=0)
    found = Examination(by="assignment").fit(log).check(log)
    assert list(found.checks) == ["items above", "reaction", "one theta"]
    assert found.not_computed == {}
    bare = replace(log, shuffled=None, user=None, users=None)
    less = Examination(by="assignment").fit(bare).check(bare)
    assert list(less.checks) == ["one theta"]
    assert list(less.not_computed) == ["items above", "reaction"]


def test_user_item_is_refused_where_ranks_react_and_noted_where_nobody_can_tell():
    reacting = click_world(500, 8, 4, logging="two-rankers", shuffle=0.3, feedback="boost").observe(rng=0)
    with pytest.raises(UndefinedError, match=facts("user-item", "react", "assignment")):
        Examination(by="user-item").fit(reacting)
    Examination(by="assignment").fit(reacting)
    few = click_world(25, 4, 2, shuffle=1.0, requests=8, base=0.5).observe(rng=0)
    assert "could not be checked" in Examination(by="user-item").fit(few).notes_[0]


REFUSED = {
    "no shuffled requests, no π0": (Examination(), {}, ColumnError, ("shuffled=", "propensity=")),
    "shuffled is asked for": (Examination(method="shuffled"), {}, ColumnError, ("shuffled=",)),
    "none was shuffled": (Examination(method="shuffled"), {"shuffled": [False] * 4}, UndefinedError, ("no shuffled",)),
    "shown for sure": (Examination(), {"propensity": [1.0] * 4}, UndefinedError, ("4 of 4", "π0 = 1")),
    "no arms": (Examination(by="assignment"), {}, ColumnError, ("arms=",)),
    "no users": (Examination(by="user-item"), {}, ColumnError, ("user=",)),
    "silent": (Examination(by="item"), {"reward": [1.0, 0.0, 1.0, 0.0]}, UndefinedError, ("position 2 of 2",)),
    "one position": (
        Examination(by="item"), {"position": [1] * 4, "request": [0, 1, 2, 3], "requests": Vocabulary.range(4)},
        UndefinedError, ("one position",),
    ),
    "short theta": (Examination(by="known", theta=[1.0]), {}, AlignmentError, ("1 positions", "2")),
    "unknown by": (Examination(by="randomized"), {}, InputError, ("randomized", "randomised")),
    "other method": (Examination(by="item", method="affine"), {}, InputError, ("affine", "all_pairs")),
    "no theta": (Examination(by="known"), {}, InputError, ("theta=", "known")),
    "theta elsewhere": (Examination(by="item", theta=[1.0]), {}, InputError, ("theta=", "known")),
    "theta of 0": (Examination(by="known", theta=[1.0, 0.0]), {}, InputError, ("theta", "above 0")),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_refusals_name_rule_and_remedy(case):
    model, changes, error, told = REFUSED[case]
    changes = {"requests": Vocabulary.range(2)} | changes
    columns = {"item": [0, 1, 1, 0], "position": [1, 2, 1, 2], "reward": [1.0, 0.0, 0.0, 1.0], "request": [0, 0, 1, 1]}
    with pytest.raises(error, match=facts("Examination", *told)):
        model.fit(Impressions.from_arrays(**(columns | changes)))


def test_it_takes_impressions_alone_and_must_be_fitted():
    with pytest.raises(InputError, match=facts("Impressions", "position=")):
        Examination().fit(ol.simulate.movie_lovers().observe(rng=0))
    for call in (lambda m: m.interval(), lambda m: m.check(None)):
        with pytest.raises(NotFittedError, match=facts("Examination", "fit(log)")):
            call(Examination())
    with pytest.raises(InputError, match=facts("level")):
        Examination(by="item").fit(two_arms().observe(rng=0)).interval(1.5)


def test_every_by_has_a_default_method():
    assert all(methods for methods in METHODS.values())
