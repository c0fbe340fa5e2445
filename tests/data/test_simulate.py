"""Worlds keep their promises: exact marginals, the paper's numbers, fair coins, Figure 1's paradox."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from openloop.data.simulate import (
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


# -- section 6.2 ---------------------------------------------------------------------------------------------


def test_assign_marginals_by_hand():
    values = [[0.1, -5.0, 9.0, 3.0], [2.0, 1.0, 8.0, 0.0]]
    # by value: -5 0 | 0.1 1 2 3 | 8 9
    assert assign_marginals(values, (0.25, 0.5, 0.25)).tolist() == [[2, 1, 3, 2], [2, 2, 3, 1]]


def test_low_rank_has_the_marginals_and_the_rank():
    Y = low_rank(200, 150, 3, noise=0.0, rng=0)
    assert Y.dtype == np.float32
    assert np.isclose((Y == 1).mean(), 0.526)
    spectrum = np.linalg.svd(Y - Y.mean(), compute_uv=False)
    assert spectrum[2] > 2 * spectrum[6]
    np.testing.assert_array_equal(Y, low_rank(200, 150, 3, noise=0.0, rng=0))
    assert np.any(low_rank(200, 150, 3, noise=0.0, rng=1) != Y)


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


def test_inverse_propensities_recover_the_truth(ml100k):
    rng, trials = np.random.default_rng(0), 20
    loss = mae(ml100k, "ROTATE")
    estimates = []
    for _ in range(trials):
        log = ml100k.observe(rng)
        estimates.append((loss[log.user, log.item] / log.propensity).sum() / loss.size)  # Eq. 10
    spread = np.sqrt(((1 / ml100k.propensities - 1) * loss**2).sum()) / loss.size / np.sqrt(trials)
    assert abs(np.mean(estimates) - loss.mean()) < 4 * spread


@pytest.mark.parametrize(
    ("call", "error", "told"),
    [
        (lambda: movie_lovers(items=2), InputError, ("movie_lovers", "items=2")),
        (lambda: movie_lovers(p=1.5), InputError, ("movie_lovers", "p=1.5")),
        (lambda: checkerboard(3), InputError, ("checkerboard", "n=3")),
        (lambda: assign_marginals([1.0, 2.0], (0.5, 0.6)), InputError, ("assign_marginals", "sum to 1")),
        (lambda: assign_marginals([1.0, np.nan], (0.5, 0.5)), InputError, ("1 of 2 values", "finite")),
        (lambda: low_rank(4, 4, 0, rng=0), InputError, ("low_rank", "rank=0")),
        (lambda: observation_model([[1, 5]], alpha=1.1), InputError, ("alpha", 1.1, "(0, 1]")),
        (lambda: observation_model([[1, 5]], alpha=0.3156, observed=0.6), InputError, ("observed=0.516",)),
        (lambda: five_predictions([[1, 5, 5, 4, 4]], rng=0), InputError, ("ratings of 1", 1, 2)),
        (lambda: five_predictions([[1, 2, 2.5]], rng=0), RatingError, ("five_predictions", "1 … 5")),
        (lambda: World(ratings=np.ones((1, 1)), propensities=np.full((1, 1), 1e-12)).observe(0), EmptyError, ()),
    ],
)
def test_worlds_that_cannot_be_are_refused(call, error, told):
    with pytest.raises(error, match=facts(*told)):
        call()
