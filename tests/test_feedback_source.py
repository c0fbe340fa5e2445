"""Probabilities of parts, candidates, and what the rows of a part can say."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import openloop as ol
from openloop.core.feedback import Feedback
from openloop.data.simulate import World
from openloop.errors import UndefinedError
from openloop.feedback_source import Observation
from openloop.scoring import Exclusion
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
    seen = Observation.of(np.ones(len(test)), None, test, train, Exclusion.of(train, test))
    same(seen.probability(test.user), 1)


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


# -- refusals ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def by_time():
    log = Feedback.from_arrays(
        LOG.user, LOG.item, LOG.rating, users=30, items=12, propensity=LOG.propensity,
        time=np.random.default_rng(0).random(len(LOG)),
    )  # fmt: skip
    return ol.split(log, test=0.3, by="time")


@pytest.mark.parametrize(
    ("name", "estimator"),
    [("mae", "ips"), ("mae", "clipped@2"), ("mae", "clipped"), ("mae", "dr"), ("adg", "ips_eq3")],
)
def test_a_split_by_time_refuses_what_needs_the_scale_of_p(by_time, name, estimator):
    with pytest.raises(UndefinedError, match=r"split by time, so the probability .* is known up to a factor"):
        ol.evaluate(MODELS, by_time[1], metrics=[name], estimators=[estimator], imputation=np.full((30, 12), 3.0))


@pytest.mark.parametrize(
    ("name", "estimator"),
    [("mae", "naive"), ("mae", "snips"), ("mae", "stratified"), ("adg", "snips"), ("adg", "clipped@2")],
)
def test_a_split_by_time_serves_what_is_a_ratio(by_time, name, estimator):
    found = ol.evaluate(MODELS, by_time[1], metrics=[name], estimators=[estimator])
    assert np.isfinite(found["a", name, estimator].value)


def test_a_split_by_time_says_that_its_weights_are_right_up_to_a_factor(by_time):
    train, test = by_time
    result = ol.evaluate(MODELS, test, metrics=["mae"], estimators=["snips"])
    assert any("right up to an unknown factor" in note for note in result.notes)
    flags = result["a", "mae", "snips"].diagnostics.flags
    assert not any("add up to" in flag for flag in flags)  # Σw need not be the population
    ranked = ol.evaluate(MODELS, test, metrics=["adg"], estimators=["snips", "stratified"], exclude=train)
    assert any("which under exclude= depends on p" in note for note in ranked.notes)


def test_over_cells_an_unknown_scale_is_taken_conservatively(by_time):
    _, test = by_time
    unknown = ol.evaluate(MODELS, test, metrics=["mae"], estimators=["snips"])["a", "mae", "snips"]
    certain = test.take(slice(None), share=np.full(len(test), 1e-6))  # 1 − p·s is nearly 1
    nearly = ol.evaluate(MODELS, certain, metrics=["mae"], estimators=["snips"])["a", "mae", "snips"]
    same(unknown.cell_variance, nearly.cell_variance, rtol=1e-5)


def test_only_rankings_lose_what_is_excluded():
    train, test = ol.split(LOG, test=0.5, rng=0)
    options = {"metrics": ["mae", "dcg@3"], "estimators": ["ips", "snips"]}
    whole, without = (ol.evaluate(MODELS, test, WORLD.propensities, exclude=e, **options) for e in (None, train))
    for estimator in ("ips", "snips"):
        assert whole["a", "mae", estimator].value == without["a", "mae", estimator].value
        assert whole["a", "dcg@3", estimator].value != without["a", "dcg@3", estimator].value


def test_a_floor_is_in_the_diagnostics():
    raised = ol.Propensities(values=LOG.propensity, floor=0.5)
    found = ol.evaluate(MODELS, LOG, raised, metrics=["mae"], estimators=["snips", "clipped@1.5"])
    assert found["a", "mae", "snips"].diagnostics.clipped_share == np.mean(LOG.propensity < 0.5) > 0
    assert found["a", "mae", "snips"].diagnostics.cap is None
    assert found["a", "mae", "clipped@1.5"].diagnostics.cap == 1.5


def test_without_propensities_only_naive_is_left():
    plain = replace(LOG, propensity=None)
    result = ol.evaluate(MODELS, plain, metrics=["mae"], estimators=["naive", "ips", "snips", "stratified"])
    assert result.estimators == ("naive",)
    assert all("needs propensities" in reason for reason in result.skipped.values())


def test_a_log_without_relevant_rows_still_has_its_cell_metrics():
    result = ol.evaluate(MODELS, LOG, metrics=["mae", "adg", "map"], estimators=["naive"], threshold=9)
    assert result.metrics == ("mae",)
    assert "no scored rating reaches the threshold 9" in result.skipped["adg", "naive"]


# -- threads -------------------------------------------------------------------------------------------------


class Factors:
    """A recommender that is a matrix product."""

    def __init__(self, users, items):
        rng = np.random.default_rng(0)
        self.arrays = rng.normal(size=(users, 8)), rng.normal(size=(items, 8)), rng.normal(size=items)

    def factor_arrays(self):
        return self.arrays

    def scores(self, users):
        P, Q, b = self.arrays
        return P[users] @ Q.T + b

    def predict(self, user, item):
        P, Q, b = self.arrays
        return (P[user] * Q[item]).sum(axis=1) + b[item]


def test_the_number_of_threads_changes_no_bit(monkeypatch):
    world = small_world(users=3000, items=40)  # three blocks of users
    log = world.observe(1)
    models = {"array": world.predictions["b"], "factors": Factors(3000, 40)}
    results = []
    for threads in (1, 2, 5):
        monkeypatch.setattr("openloop.kernels.ranking.os.cpu_count", lambda threads=threads: threads)
        results.append(ol.evaluate(models, log, metrics=["mae", "dcg@5", "ndcg", "auc"], estimators=["naive", "snips"]))
    first, *others = results
    for other in others:
        for key, estimate in first.estimates.items():
            assert other[key].value == estimate.value
            np.testing.assert_array_equal(other[key].influence, estimate.influence)
            assert other[key].cell_variance == estimate.cell_variance
