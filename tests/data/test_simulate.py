"""Worlds keep their promises: exact marginals, the paper's numbers, fair coins, Figure 1's paradox."""

from __future__ import annotations

from dataclasses import FrozenInstanceError
from itertools import product

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError

from openloop.data.simulate import (
    MARGINALS,
    World,
    assign_marginals,
    checkerboard,
    five_predictions,
    low_rank,
    movie_lovers,
    observation_model,
    schnabel_world,
    withhold_diagonal,
)
from openloop.errors import (
    AlignmentError,
    EmptyError,
    InputError,
    PredictionError,
    PropensityError,
    RatingError,
)
from tests.contracts import PersonalRecommenderContract
from tests.facts import facts


def mae(world: World, name: str) -> np.ndarray:
    return np.abs(world.predictions[name] - world.ratings)


def naive(world: World, loss: np.ndarray) -> float:
    """What Eq. 5 tends to: Σpδ/Σp."""
    return float((world.propensities * loss).sum() / world.propensities.sum())


@pytest.fixture(scope="module")
def ml100k() -> World:
    return schnabel_world(rng=0)


# -- World ---------------------------------------------------------------------------------------------------


def test_observe_carries_ratings_and_true_propensities_on_the_whole_grid():
    world = movie_lovers(users=9, items=7)
    log = world.observe(1)
    assert (log.n_users, log.n_items) == (9, 7)
    np.testing.assert_array_equal(log.rating, world.ratings[log.user, log.item])
    np.testing.assert_array_equal(log.propensity, world.propensities[log.user, log.item])


def test_observe_flips_fair_coins():
    world, rng, trials = movie_lovers(users=20, items=16), np.random.default_rng(5), 400
    counts = np.zeros(world.ratings.shape)
    for _ in range(trials):
        log = world.observe(rng)
        counts[log.user, log.item] += 1
    P = world.propensities
    z = (counts - trials * P) / np.sqrt(trials * P * (1 - P))
    assert np.abs(z).max() < 5  # each of 320 cells
    for p in np.unique(P):  # and each kind of cell
        assert abs(z[p == P].sum()) < 4 * np.sqrt((p == P).sum())


def test_observe_is_reproducible_and_a_generator_moves_on():
    world, rng = movie_lovers(), np.random.default_rng(3)
    assert world.observe(3).fingerprint == world.observe(3).fingerprint
    first, second = world.observe(rng), world.observe(rng)
    assert first.fingerprint == world.observe(3).fingerprint != second.fingerprint


def test_everything_is_everything_with_propensity_one():
    world = movie_lovers(users=5, items=4)
    log = world.everything()
    assert len(log) == 20
    assert set(log.propensity) == {1.0}
    np.testing.assert_array_equal(log.rating.reshape(5, 4), world.ratings)


def test_certain_cells_are_always_observed():
    world = World(ratings=np.ones((3, 4)), propensities=np.ones((3, 4)))
    assert world.observe(0).fingerprint == world.everything().fingerprint


def test_a_world_that_shows_nothing_is_an_empty_log():
    with pytest.raises(EmptyError):
        World(ratings=np.ones((1, 1)), propensities=np.full((1, 1), 1e-12)).observe(0)


def test_a_world_is_frozen():
    world = movie_lovers()
    with pytest.raises(FrozenInstanceError):
        world.ratings = world.ratings
    for array in (world.ratings, world.propensities, *world.predictions.values()):
        assert not array.flags.writeable
    assert world.ratings.dtype == np.float32


def test_repr_says_what_it_is():
    assert repr(movie_lovers()) == "World(100 users × 80 items, 26.9% observed, Y1, Y2, Y3)"


@pytest.mark.parametrize(
    ("changes", "error", "told"),
    [
        ({"ratings": np.ones(3)}, AlignmentError, ("ratings", (3,), (2, 3))),
        ({"propensities": np.ones((3, 2))}, AlignmentError, ("propensities", (2, 3), (3, 2))),
        ({"ratings": np.array([[1, np.nan, 1]] * 2)}, RatingError, ("2 ratings", "finite")),
        ({"propensities": np.zeros((2, 3))}, PropensityError, ("World.propensities", "6 of 6")),
        ({"predictions": {"a": np.ones((3, 2))}}, PredictionError, ("'a'", (2, 3), (3, 2))),
        ({"predictions": {"a": np.full((2, 3), np.inf)}}, PredictionError, ("'a'", "finite")),
    ],
)
def test_a_world_that_does_not_fit_together_is_refused(changes, error, told):
    with pytest.raises(error, match=facts("World", *told)):
        World(**({"ratings": np.ones((2, 3)), "propensities": np.ones((2, 3))} | changes))


# -- Figure 1 ------------------------------------------------------------------------------------------------


def test_movie_lovers_by_hand():
    world = movie_lovers(users=2, items=4, p=0.4)  # two horror movies, one romance, one drama
    assert world.ratings.tolist() == [[5, 5, 1, 3], [1, 1, 5, 3]]
    np.testing.assert_allclose(world.propensities, [[0.4, 0.4, 0.04, 0.2], [0.04, 0.04, 0.4, 0.2]])
    assert world.predictions["Y1"].tolist() == [[5, 5, 1, 5], [1, 1, 5, 5]]
    assert world.predictions["Y2"].tolist() == [[5, 5, 5, 3], [5, 5, 5, 3]]
    assert world.predictions["Y3"].tolist() == [[1, 1, 0, 0], [1, 1, 0, 0]]


def test_naive_prefers_the_worse_model_at_any_size():
    # The sign of naive's difference is that of Σ_O(δ1 − δ2), whose expectation is Σp(δ1 − δ2).
    for users, items in product((2, 3, 10), range(3, 40)):
        world = movie_lovers(users, items)
        first, second = mae(world, "Y1"), mae(world, "Y2")
        assert first.mean() < second.mean(), (users, items)
        assert (world.propensities * (first - second)).sum() > 0, (users, items)


def test_the_better_model_is_better_by_mse_and_accuracy_too():
    world = movie_lovers()
    first, second = mae(world, "Y1"), mae(world, "Y2")
    # A quarter of the cells are dramas, off by 2; three eighths are hated, off by 4.
    assert (first.mean(), second.mean()) == (0.5, 1.5)
    assert (first**2).mean() < (second**2).mean()
    assert (first == 0).mean() > (second == 0).mean()


def test_naive_errs_reliably():
    world, rng = movie_lovers(), np.random.default_rng(0)
    loss = mae(world, "Y1") - mae(world, "Y2")
    for _ in range(200):
        log = world.observe(rng)
        assert loss[log.user, log.item].mean() > 0


def test_cumulative_gain_of_the_recommendations_is_inflated():
    world = movie_lovers()
    Y3 = world.predictions["Y3"]
    k = int(Y3[0].sum())
    gain = (80 / k) * Y3 * world.ratings  # Eq. 7
    assert set(Y3.sum(axis=1)) == {k}
    assert np.isclose(gain.mean(), 3.0)
    assert naive(world, gain) > 4


@pytest.mark.parametrize("wrong", [{"users": 1}, {"items": 2}, {"p": 0.0}, {"p": 1.5}])
def test_movie_lovers_refuses_a_world_without_its_groups(wrong):
    with pytest.raises(InputError, match=facts("movie_lovers", *(f"{name}={value}" for name, value in wrong.items()))):
        movie_lovers(**wrong)


# -- the checkerboard ----------------------------------------------------------------------------------------


def test_checkerboard_by_hand():
    world = checkerboard(4, high=1, low=0, p=0.5)
    assert world.ratings.tolist() == [[1, 0, 1, 0], [0, 1, 0, 1]] * 2
    assert np.all(world.propensities == 0.5)


def test_user_u_misses_item_u():
    shown, withheld = withhold_diagonal(checkerboard(5).everything())
    assert withheld.user.tolist() == withheld.item.tolist() == [0, 1, 2, 3, 4]
    assert set(withheld.rating) == {5.0}
    assert len(shown) == 20
    assert not np.any(shown.user == shown.item)
    assert shown.share is None


@pytest.mark.parametrize("wrong", [{"n": 3}, {"n": 6, "high": 1.0}])
def test_checkerboard_refuses_a_board_without_an_answer(wrong):
    with pytest.raises(InputError, match=facts("checkerboard", *(f"{name}={value}" for name, value in wrong.items()))):
        checkerboard(**wrong)


class Neighbours(BaseEstimator):
    """Users who agree recommend to each other: S = (RRᵀ)R."""

    def __init__(self, centre: float = 3.0):
        self.centre = centre

    def fit(self, feedback, sample_weight=None):
        weight = np.ones(len(feedback)) if sample_weight is None else sample_weight
        if len(weight) != len(feedback):
            msg = "sample_weight: one a row."
            raise AlignmentError(msg)
        R = np.zeros((feedback.n_users, feedback.n_items))
        R[feedback.user, feedback.item] = weight * (feedback.rating - self.centre)
        self.scores_ = R @ R.T @ R
        return self

    def predict(self, user, item):
        return self.scores(user)[np.arange(len(user)), item]

    def scores(self, users):
        if not hasattr(self, "scores_"):
            msg = "call fit first"
            raise NotFittedError(msg)
        return self.scores_[users]


class TestExplicitNeighbours(PersonalRecommenderContract):
    def make(self):
        return Neighbours()


class TestImplicitNeighbours(PersonalRecommenderContract):
    implicit = True

    def make(self):
        return Neighbours(centre=0.0)


# -- section 6.2 ---------------------------------------------------------------------------------------------


def test_assign_marginals_by_hand():
    values = [[0.1, -5.0, 9.0, 3.0], [2.0, 1.0, 8.0, 0.0]]
    # by value: -5 0 | 0.1 1 2 3 | 8 9
    assert assign_marginals(values, (0.25, 0.5, 0.25)).tolist() == [[2, 1, 3, 2], [2, 2, 3, 1]]


def test_marginals_are_exact_and_follow_the_values():
    values = np.random.default_rng(0).standard_normal((40, 25))  # 1,000 cells
    Y = assign_marginals(values)
    assert [int((r == Y).sum()) for r in range(1, 6)] == [526, 242, 144, 62, 26]
    assert np.all(np.diff(Y.ravel()[np.argsort(values, axis=None)]) >= 0)


def test_ties_do_not_break_the_marginals():
    assert np.bincount(assign_marginals(np.zeros(1000)).astype(int)).tolist() == [0, 526, 242, 144, 62, 26]


@pytest.mark.parametrize("n", [1, 7, 99])
def test_marginals_are_nearest_where_they_cannot_be_exact(n):
    Y = assign_marginals(np.arange(n))
    below = [int(np.sum(r >= Y)) for r in range(1, 6)]
    assert np.abs(below - np.cumsum(MARGINALS) * n).max() <= 0.5 + 1e-9


@pytest.mark.parametrize("wrong", [(0.5, 0.6), (1.5, -0.5), (np.nan, 1.0), ()])
def test_marginals_that_are_none_are_refused(wrong):
    with pytest.raises(InputError, match=facts("assign_marginals", "marginals", "sum to 1")):
        assign_marginals([1.0, 2.0], wrong)


def test_values_without_order_are_refused():
    with pytest.raises(InputError, match=facts("assign_marginals", "1 of 2 values", "finite")):
        assign_marginals([1.0, np.nan], (0.5, 0.5))


def test_low_rank_has_the_marginals_and_the_rank():
    Y = low_rank(200, 150, 3, noise=0.0, rng=0)
    assert Y.dtype == np.float32
    assert np.isclose((Y == 1).mean(), 0.526)
    spectrum = np.linalg.svd(Y - Y.mean(), compute_uv=False)
    assert spectrum[2] > 2 * spectrum[6]
    np.testing.assert_array_equal(Y, low_rank(200, 150, 3, noise=0.0, rng=0))
    assert np.any(low_rank(200, 150, 3, noise=0.0, rng=1) != Y)


@pytest.mark.parametrize("wrong", [{"users": 0}, {"rank": 0}, {"noise": -1.0}])
def test_low_rank_refuses_sizes_that_are_none(wrong):
    with pytest.raises(InputError, match=facts("low_rank", *(f"{name}={value}" for name, value in wrong.items()))):
        low_rank(**({"users": 4, "items": 4, "rank": 1, "rng": 0} | wrong))


def test_observation_model_by_hand():
    # α^(4−r) = 1/8, 1/4, 1/2, 1, 1 sums to 2.875 over five cells; k = 0.23·5/2.875 = 0.4
    P = observation_model([[1, 2, 3, 4, 5]], alpha=0.5, observed=0.23)
    np.testing.assert_allclose(P, [[0.05, 0.1, 0.2, 0.4, 0.4]])


@pytest.mark.parametrize("alpha", [0.1, 0.25, 0.5, 1.0])
def test_the_expected_share_observed_is_as_asked(alpha):
    P = observation_model(low_rank(60, 50, 3, rng=0), alpha=alpha, observed=0.05)
    assert np.isclose(P.mean(), 0.05, rtol=1e-12)
    assert np.isclose(P.min() / P.max(), alpha**3)


def test_observed_marginals_are_those_of_the_paper(ml100k):
    Y, P = ml100k.ratings, ml100k.propensities
    observed = [P[r == Y].sum() / P.sum() for r in range(1, 6)]
    np.testing.assert_allclose(observed, [0.06, 0.10, 0.25, 0.42, 0.17], atol=0.01)


def test_a_share_that_needs_propensities_above_one_is_refused():
    with pytest.raises(InputError, match=facts("alpha=0.3156", "observed=0.6", "observed=0.516")):
        observation_model([[1, 5]], alpha=0.3156, observed=0.6)
    assert np.all(observation_model([[1, 5]], alpha=1.0, observed=1.0) == 1)


@pytest.mark.parametrize("wrong", [{"alpha": 0.0}, {"alpha": 1.1}, {"observed": 0.0}, {"observed": 2.0}])
def test_observation_model_refuses_what_is_no_share(wrong):
    with pytest.raises(InputError, match=facts(*wrong, "(0, 1]", *wrong.values())):
        observation_model([[1, 5]], **wrong)


# -- section 3.4 ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "star"), [("REC_ONES", 1), ("REC_FOURS", 4)])
def test_as_many_ratings_are_flipped_to_five_as_there_are_fives(ml100k, name, star):
    Y, Y_hat = ml100k.ratings, ml100k.predictions[name]
    changed = Y_hat != Y
    assert changed.sum() == (Y == 5).sum()
    assert set(Y[changed]) == {star}
    assert set(Y_hat[changed]) == {5.0}


def test_rotate_and_coarsened_by_hand():
    predictions = five_predictions([[1, 1, 2, 3, 4, 5]], rng=0)
    assert list(predictions) == ["REC_ONES", "REC_FOURS", "ROTATE", "SKEWED", "COARSENED"]
    assert predictions["ROTATE"].tolist() == [[5, 5, 1, 2, 3, 4]]
    assert predictions["COARSENED"].tolist() == [[3, 3, 3, 3, 4, 4]]


def test_skewed_is_a_clipped_normal(ml100k):
    Y, Y_hat = ml100k.ratings, ml100k.predictions["SKEWED"]
    assert Y_hat.min() == 0
    assert Y_hat.max() == 6
    for r in (3, 4, 5):  # σ = (6 − r)/2; P(Ŷ = 6) = P(N > 6) = Φ(−2), P(Ŷ ≤ r) = ½
        values = Y_hat[r == Y]
        assert abs((values == 6).mean() - 0.02275) < 4 * np.sqrt(0.02275 / len(values))
        assert abs((values <= r).mean() - 0.5) < 4 * np.sqrt(0.25 / len(values))


# Table 1, the columns True and Naive of MAE.
@pytest.mark.parametrize(
    ("name", "true", "biased"),
    [
        ("REC_ONES", 0.102, 0.011),
        ("REC_FOURS", 0.026, 0.173),
        ("ROTATE", 2.579, 1.168),
        ("SKEWED", 1.306, 0.912),
        ("COARSENED", 1.320, 0.387),
    ],
)
def test_true_and_naive_mae_are_those_of_table_1(ml100k, name, true, biased):
    loss = mae(ml100k, name)
    assert np.isclose(loss.mean(), true, rtol=0.025)
    assert np.isclose(naive(ml100k, loss), biased, rtol=0.025)


@pytest.mark.parametrize(("ratings", "star"), [([[1, 5, 5, 4, 4]], 1), ([[1, 1, 5, 5, 4]], 4)])
def test_too_few_ones_or_fours_to_flip(ratings, star):
    with pytest.raises(InputError, match=facts("five_predictions", f"ratings of {star}", 1, 2, "fewer fives")):
        five_predictions(ratings, rng=0)


@pytest.mark.parametrize("value", [0.0, 2.5, 6.0, np.nan])
def test_ratings_other_than_one_to_five_are_refused(value):
    with pytest.raises(RatingError, match=facts("five_predictions", "1 … 5")):
        five_predictions([[1, 2, value]], rng=0)


def test_schnabel_world_keeps_ratings_and_predictions_as_alpha_varies():
    one, other = (schnabel_world(50, 40, 3, alpha, 0.05, rng=2) for alpha in (0.25, 1.0))
    np.testing.assert_array_equal(one.ratings, other.ratings)
    for name, values in one.predictions.items():
        np.testing.assert_array_equal(values, other.predictions[name])
    assert np.ptp(other.propensities) == 0
    assert np.any(one.ratings != schnabel_world(50, 40, 3, rng=3).ratings)


def test_inverse_propensities_recover_the_truth(ml100k):
    rng, trials = np.random.default_rng(0), 20
    loss = mae(ml100k, "ROTATE")
    estimates = []
    for _ in range(trials):
        log = ml100k.observe(rng)
        estimates.append((loss[log.user, log.item] / log.propensity).sum() / loss.size)  # Eq. 10
    spread = np.sqrt(((1 / ml100k.propensities - 1) * loss**2).sum()) / loss.size / np.sqrt(trials)
    assert abs(np.mean(estimates) - loss.mean()) < 4 * spread
