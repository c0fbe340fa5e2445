"""Probabilities of parts and of candidates, and what exclusion leaves of the population."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

import openloop as ol
from openloop.core.feedback import Feedback
from openloop.data.simulate import World
from tests.examples import same, small_world

WORLD = small_world()
LOG = WORLD.observe(1)
MODELS = {"a": WORLD.predictions["a"]}
TRAIN, TEST = ol.split(LOG, test=0.3, rng=0)
S, T = float(TEST.share[0]), float(TRAIN.share[0])


def weights(log, name="dcg@3", **options):
    """The weights that a log's rows get: Σ_rows of snips' denominator by user."""
    found = ol.evaluate(MODELS, log, metrics=[name], estimators=["snips"], **options)["a", name, "snips"]
    return found.columns[:, 1]


def by_user(log, w):
    return np.bincount(log.user, w, minlength=log.n_users)


# -- probabilities -------------------------------------------------------------------------------------------


def test_a_whole_log_observes_with_p():
    same(weights(LOG), by_user(LOG, 1 / LOG.propensity))


def test_a_part_observes_with_p_times_its_share():
    same(weights(TEST), by_user(TEST, 1 / (TEST.propensity * S)))
    same(weights(TEST, "mae"), by_user(TEST, 1 / (TEST.propensity * S)))


def test_what_is_excluded_could_not_have_been_scored():
    pi = TEST.propensity * S / (1 - TEST.propensity * T)
    same(weights(TEST, exclude=TRAIN), by_user(TEST, 1 / pi))


def test_an_excluded_log_of_another_origin_changes_no_probability():
    other = replace(TRAIN, origin="another log")
    same(weights(TEST, exclude=other), by_user(TEST, 1 / (TEST.propensity * S)))


def test_shares_that_differ_by_user_are_those_of_the_user():
    train, test = ol.split(LOG, by="leave-k-out", k=1, rng=0)
    n = np.bincount(LOG.user, minlength=30)[test.user]
    pi = test.propensity / n / (1 - test.propensity * (1 - 1 / n))
    same(weights(test, exclude=train), by_user(test, 1 / pi))


def test_leaving_k_out_refuses_what_needs_the_scale_of_p():
    _, test = ol.split(LOG, by="leave-k-out", k=1, rng=0)
    found = ol.evaluate(MODELS, test, metrics=["mae"], estimators=["ips", "snips"])
    assert "users with few rows cannot be scored" in found.skipped["mae", "ips"]
    assert np.isfinite(found["a", "mae", "snips"].value)


def test_parts_of_parts_multiply_their_shares():
    _, half = ol.split(TEST, test=0.5, rng=1)
    same(half.share, S * len(half) / len(TEST))
    same(weights(half), by_user(half, 1 / (half.propensity * half.share)))


def test_a_certain_cell_of_a_complete_split_is_certain_among_candidates():
    train, test = ol.split(LOG, test=0.2, rng=0)
    certain = replace(test, propensity=np.ones(len(test)))
    same(weights(certain, exclude=train), np.bincount(test.user, minlength=30))


def test_of_an_excluded_whole_only_the_rest_leaves_the_ranking():
    train, test = ol.split(LOG, test=0.2, rng=0)
    options = {"metrics": ["dcg@3"], "estimators": ["ips", "snips"]}
    whole, rest = (ol.evaluate(MODELS, test, exclude=e, **options) for e in (LOG, train))
    own = ol.evaluate(MODELS, train, exclude=train, **options)
    none = ol.evaluate(MODELS, train, **options)
    for estimator in ("ips", "snips"):
        same(whole["a", "dcg@3", estimator].value, rest["a", "dcg@3", estimator].value)
        same(own["a", "dcg@3", estimator].value, none["a", "dcg@3", estimator].value)


def test_where_whole_users_were_split_nothing_leaves_the_rankings():
    train, test = ol.split(LOG, test=0.3, by="user", rng=0)
    options = {"metrics": ["dcg@3", "adg"], "estimators": ["naive", "snips"]}
    with_train, alone = (ol.evaluate(MODELS, test, exclude=e, **options) for e in (train, None))
    for key in alone.estimates:
        assert with_train[key].value == alone[key].value


def test_rows_scored_and_excluded_by_another_log_have_no_weighted_ranking():
    other = WORLD.observe(99)
    found = ol.evaluate(MODELS, LOG, metrics=["mae", "dcg@3"], estimators=["naive", "snips"], exclude=other)
    assert "are in exclude= too" in found.skipped["dcg@3", "snips"]
    assert {("a", "mae", "snips"), ("a", "dcg@3", "naive")} <= set(found.estimates)
    apart = LOG.take(~np.isin(LOG.cell, other.cell))
    assert ("a", "dcg@3", "snips") in ol.evaluate(
        MODELS, apart, metrics=["dcg@3"], estimators=["snips"], exclude=other
    ).estimates


def test_a_threshold_is_compared_in_the_precision_of_the_ratings():
    log = Feedback.from_arrays([0, 1], [0, 0], [0.7, 0.7], users=2, items=2)
    found = ol.evaluate({"m": np.ones((2, 2))}, log, metrics=["adg"], estimators=["naive"], threshold=0.7)
    assert found["m", "adg", "naive"].diagnostics.users == 2


def test_the_population_is_what_exclusion_leaves():
    found = ol.evaluate(MODELS, TEST, metrics=["dcg@3"], estimators=["ips"], exclude=TRAIN)["a", "dcg@3", "ips"]
    candidates = 12 - np.bincount(TRAIN.user, minlength=30)
    same(found.columns[:, 1], candidates)
    assert found.diagnostics.population == candidates.sum()


def test_gains_carry_the_number_of_candidates():
    keep = np.ones((30, 12), bool)
    keep[TRAIN.user, TRAIN.item] = False
    scores = np.where(keep, MODELS["a"], -np.inf)
    rank = 1 + (scores[TEST.user] > scores[TEST.user, TEST.item][:, None]).sum(axis=1)
    delta = keep.sum(axis=1)[TEST.user] / 3 * TEST.rating * (rank <= 3)
    found = ol.evaluate(MODELS, TEST, metrics=["prec@3"], estimators=["naive"], exclude=TRAIN)
    same(found["a", "prec@3", "naive"].value, delta.mean())


# -- exclusion is unbiased with π, and not with p·s ----------------------------------------------------------


def test_with_exclude_ips_is_unbiased_covers_and_would_not_be_with_p_times_s():
    rng = np.random.default_rng(0)
    Y = rng.integers(1, 6, (60, 40)).astype(np.float32)
    world = World(ratings=Y, propensities=0.1 + 0.15 * Y, predictions={"m": Y + rng.normal(0, 2, Y.shape)})
    scores, draws = world.predictions["m"], 400
    error, wrong, inside = np.empty(draws), np.empty(draws), np.empty(draws, bool)
    for draw in range(draws):
        log = world.observe(rng)
        train, test = ol.split(log, test=0.2, rng=rng)
        keep = np.ones(Y.shape, bool)
        keep[train.user, train.item] = False
        ranked = np.argsort(np.argsort(np.where(keep, -scores, np.inf), axis=1), axis=1)  # 0-based, candidates first
        delta = keep.sum(axis=1)[:, None] * Y / np.log2(2 + ranked) * (ranked < 10)  # dcg@10, (U, I)
        truth = delta[keep].mean()
        options = {"metrics": ["dcg@10"], "estimators": ["ips"], "exclude": train}
        found = ol.evaluate({"m": scores}, test, **options)["m", "dcg@10", "ips"]
        error[draw], inside[draw] = found.value - truth, truth in found.interval(over="cells")
        # The same with t = 0: a train part that says it comes from elsewhere.
        options["exclude"] = replace(train, origin=None)
        wrong[draw] = ol.evaluate({"m": scores}, test, **options)["m", "dcg@10", "ips"].value - truth
    spread = error.std() / np.sqrt(draws)
    assert abs(error.mean()) < 3.5 * spread
    assert wrong.mean() > 20 * spread
    # 400 draws know 95 % to ±1.1 %.
    assert 0.915 < inside.mean() < 0.985


def test_the_whole_log_or_its_other_part_excluded_after_leave_k_out_is_the_same_observation():
    rng = np.random.default_rng(0)
    user, item = np.nonzero(rng.random((60, 25)) < np.where(np.arange(60) < 20, 0.8, 0.2)[:, None])
    log = Feedback.from_arrays(
        user, item, rng.integers(1, 6, len(user)), users=60, items=25, propensity=np.full(len(user), 0.4)
    )
    train, test = ol.split(log, by="leave-k-out", k=1, rng=1)
    model = {"m": rng.normal(size=(60, 25))}
    asked = {"metrics": ["recall@4", "dcg@5"], "estimators": ["snips"]}
    rest, whole = (ol.evaluate(model, test, exclude=exclude, **asked) for exclude in (train, log))
    for key in rest.estimates:
        np.testing.assert_allclose(whole[key].value, rest[key].value, rtol=1e-12)
