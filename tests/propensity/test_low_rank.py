"""One-bit matrix completion: laws, a slow convex twin, low-rank worlds whose P is known, and difficult logs."""

from __future__ import annotations

import re

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit, logit

import openloop as ol
from openloop.core.feedback import Feedback, Vocabulary
from openloop.data.simulate import World
from openloop.errors import InputError, UndefinedError
from openloop.propensity.logistic import Logistic
from openloop.propensity.low_rank import RADII, LowRank
from openloop.propensity.uniform import Uniform
from tests.contracts import PropensityModelContract
from tests.facts import facts


class TestLowRank(PropensityModelContract):
    def make(self):
        return LowRank()


class TestLowRankByMaxNorm(PropensityModelContract):
    def make(self):
        return LowRank("max", radius=1.0, rank=3)


def log_of(O: np.ndarray, **columns) -> Feedback:
    user, item = np.nonzero(O)
    U, I = O.shape
    return Feedback.from_arrays(user, item, np.ones(len(user)), users=U, items=I, **columns)


def small_log() -> Feedback:
    rng = np.random.default_rng(3)
    return log_of(rng.random((14, 11)) < expit(-0.5 + rng.standard_normal((14, 1)) * rng.standard_normal(11)))


def groups(U: int, I: int, high: float, low: float) -> World:
    """Two kinds of users and of items: p is `high` for items of one's kind, which get 5 stars, else `low` and 1."""
    same = np.arange(U)[:, None] % 2 == np.arange(I) % 2
    Y, P = np.where(same, 5.0, 1.0), np.where(same, high, low)
    return World(ratings=Y.astype(np.float32), propensities=P, predictions={"four": np.full((U, I), 4.0)})


def tastes(n: int, rank: int = 2) -> World:
    """Logits −2 + 1.5·abᵀ/√rank of random signs a, b: nothing that depends on a user or an item alone."""
    rng = np.random.default_rng(1)
    a, b = rng.choice([-1.0, 1.0], (2, n, rank))
    return World(ratings=np.ones((n, n)), propensities=expit(-2 + 1.5 * a @ b.T / np.sqrt(rank)))


# ------------------------------------------------------------------------------------------ laws


@pytest.mark.parametrize("constraint", ["nuclear", "max"])
@pytest.mark.parametrize("radius", [0.1, 1.0, 4.0])
def test_the_sum_of_p_is_the_size_of_the_log_at_any_radius(constraint, radius):
    log = small_log()
    model = LowRank(constraint, radius=radius, rank=4).fit(log)
    assert np.isclose(model.matrix().sum(), len(log), rtol=1e-9)


@pytest.mark.parametrize("radius", [0.1, 1.0, 4.0])
def test_the_bound_holds(radius):
    log = small_log()
    model = LowRank("nuclear", radius=radius, rank=4).fit(log)
    departures = logit(model.matrix()) - model.mu_
    assert np.linalg.svd(departures, compute_uv=False).sum() <= radius * np.sqrt(14 * 11) * (1 + 1e-9)
    model = LowRank("max", radius=radius, rank=4).fit(log)
    assert np.abs(logit(model.matrix()) - model.mu_).max() <= radius * (1 + 1e-9)


@pytest.mark.parametrize("constraint", ["nuclear", "max"])
def test_a_looser_bound_or_more_columns_fit_no_worse(constraint):
    def fitted(radius, rank):
        return LowRank(constraint, radius=radius, rank=rank, tol=1e-9).fit(small_log()).log_likelihood_

    by_radius = [fitted(radius, 11) for radius in (0.05, 0.2, 0.8, 3.2)]
    assert np.all(np.diff(by_radius) > 0)
    assert fitted(0.8, 11) >= fitted(0.8, 1) - 1e-6


@pytest.mark.parametrize("constraint", ["nuclear", "max"])
def test_the_likelihood_rises_with_every_iteration(constraint):
    model = LowRank(constraint, radius=1.0, rank=4).fit(small_log())
    assert len(model.path_) > 10
    assert np.all(np.diff(model.path_) >= 0)
    assert model.log_likelihood_ >= model.path_[-1]  # the last step in μ


def test_a_tight_bound_leaves_one_p_for_all_cells():
    log = small_log()
    P = LowRank(radius=1e-6).fit(log).matrix()
    np.testing.assert_allclose(P, Uniform().fit(log).p_, rtol=1e-4)


def test_a_given_radius_and_rank_are_those_of_the_search():
    chosen = LowRank().fit(small_log())
    given = LowRank(radius=chosen.radius_, rank=chosen.rank_).fit(small_log())
    assert given.scores_ == {}
    np.testing.assert_array_equal(given.matrix(), chosen.matrix())


def test_the_choice_is_near_the_best_of_what_was_tried():
    model = LowRank().fit(groups(60, 40, 0.5, 0.1).observe(0))
    assert model.rank_ == 1
    best = max(model.scores_.values())
    assert model.scores_[model.rank_, model.radius_] >= best - 0.01 * (best - np.log(0.5))


def test_another_seed_starts_elsewhere_and_ends_alike():
    def fitted(rng):
        return LowRank(radius=0.5, rank=11, tol=1e-9, rng=rng).fit(small_log()).matrix()

    assert np.any(fitted(0) != fitted(1))
    np.testing.assert_allclose(fitted(0), fitted(1), atol=1e-3)


# ------------------------------------------------------------------------------------------ by another program


def ball(X: np.ndarray, bound: float) -> np.ndarray:
    """The nearest matrix with ‖X‖_* ≤ bound: its singular values, projected to the simplex (Duchi et al. 2008)."""
    left, values, right = np.linalg.svd(X, full_matrices=False)
    if values.sum() <= bound:
        return X
    above = (np.cumsum(values) - bound) / np.arange(1, len(values) + 1)
    return left * np.maximum(values - above[np.flatnonzero(values > above)[-1]], 0) @ right


def convex_twin(O: np.ndarray, radius: float) -> float:
    """The largest likelihood over all A = μ + B with ‖B‖_* ≤ τ√(U·I): projected gradient, with momentum, in B."""
    size = np.sqrt(O.size)
    B, last, m, last_m, t = np.zeros(O.shape), np.zeros(O.shape), 0.0, 0.0, 1.0
    for _ in range(3000):
        t, momentum = (1 + np.sqrt(1 + 4 * t * t)) / 2, (t - 1) / ((1 + np.sqrt(1 + 4 * t * t)) / 2)
        C, n = B + momentum * (B - last), m + momentum * (m - last_m)
        G = expit(n / size + C) - O
        # The curvature by B and m = μ√(U·I) together is at most 2/4.
        last, last_m, B, m = B, m, ball(C - 2 * G, radius * size), n - 2 * G.sum() / size
    A = m / size + B
    return float(np.sum(O * A - np.logaddexp(0, A)))


@pytest.mark.parametrize("radius", [0.2, 0.6, 2.0])
def test_the_factors_reach_the_optimum_of_the_convex_problem(radius):
    log = small_log()
    O = np.zeros((14, 11))
    O[log.user, log.item] = 1
    ours = LowRank(radius=radius, rank=12, tol=1e-9, max_iter=20_000).fit(log).log_likelihood_
    assert np.isclose(ours, convex_twin(O, radius), rtol=1e-6)


def test_shares_enter_the_convex_problem_as_counts():
    log = small_log()
    share = np.where(np.arange(len(log)) % 3 == 0, 0.8, 1.0)
    O = np.zeros((14, 11))
    O[log.user, log.item] = 1 / share
    ours = LowRank(radius=0.6, rank=12, tol=1e-9).fit(log.take(np.arange(len(log)), share=share)).log_likelihood_
    assert np.isclose(ours, convex_twin(O, 0.6), rtol=1e-6)


def test_the_max_norm_agrees_with_a_general_solver():
    # scipy.optimize.minimize(method="SLSQP") on μ and factors of 5 columns, each row's square norm a constraint.
    O = (np.random.default_rng(4).random((6, 5)) < 0.4).astype(float)
    radius, K = 0.8, 5

    def loss(x):
        A = x[-1] + x[: 6 * K].reshape(6, K) @ x[6 * K : -1].reshape(5, K).T
        return np.sum(np.logaddexp(0, A) - O * A)

    def room(x):
        return radius - np.sum(x[:-1].reshape(11, K) ** 2, axis=1)

    start = np.append(np.random.default_rng(0).standard_normal(11 * K) * 0.3, -0.5)
    found = minimize(loss, start, method="SLSQP", constraints={"type": "ineq", "fun": room}, options={"maxiter": 500})
    ours = LowRank("max", radius=radius, rank=K, tol=1e-9).fit(log_of(O)).log_likelihood_
    assert np.isclose(ours, -found.fun, rtol=1e-5)


# ------------------------------------------------------------------------------------------ by simulation


@pytest.mark.parametrize("constraint", ["nuclear", "max"])
def test_estimates_converge_where_logits_are_of_low_rank(constraint):
    errors = []
    for n in (40, 80, 160):
        world = tastes(n)
        P = LowRank(constraint).fit(world.observe(2)).matrix()
        errors.append(np.mean((P - world.propensities) ** 2))
    assert errors[1] < 0.7 * errors[0]
    assert errors[2] < 0.7 * errors[1]
    log = world.observe(2)
    for other in (Uniform(), Logistic()):
        assert errors[2] < 0.15 * np.mean((other.fit(log).matrix() - world.propensities) ** 2)


@pytest.mark.parametrize("constraint", ["nuclear", "max"])
def test_two_groups_are_told_apart(constraint):
    world = groups(160, 120, 0.5, 0.1)
    P = LowRank(constraint).fit(world.observe(0)).matrix()
    same = world.ratings == 5
    assert abs(P[same].mean() - 0.5) < 0.03
    assert abs(P[~same].mean() - 0.1) < 0.03
    assert P[same].min() > P[~same].max()


def test_ips_with_the_estimates_comes_ten_times_closer_than_naive():
    world = groups(300, 200, 0.5, 0.1)
    truth = 5.0  # of 4 for everything: (1² + 3²)/2
    log = world.observe(0)
    result = ol.evaluate(world.predictions, log, LowRank().fit(log), metrics=["mse"], estimators=["naive", "ips"])
    naive, ips = (result["four", "mse", name].value - truth for name in ("naive", "ips"))
    assert abs(naive) > 2
    assert abs(ips) < abs(naive) / 10


def test_a_part_of_the_log_tells_the_propensities_of_the_whole():
    world = groups(160, 120, 0.5, 0.1)
    log = world.observe(0)
    keep = np.random.default_rng(1).random(len(log)) < 0.5
    part = log.take(keep, share=np.full(int(keep.sum()), 0.5))
    model = LowRank().fit(part)
    assert np.isclose(model.matrix().sum(), 2 * len(part), rtol=1e-9)
    same = world.ratings == 5
    assert abs(model.matrix()[same].mean() - 0.5) < 0.05
    assert abs(model.matrix()[~same].mean() - 0.1) < 0.05


def test_where_there_is_no_structure_the_bound_becomes_tight():
    world = World(ratings=np.ones((80, 60)), propensities=np.full((80, 60), 0.2))
    model = LowRank().fit(world.observe(0))
    assert model.radius_ == RADII[0]
    assert any(re.search(facts("radius", f"{RADII[0]:.3g}", "smallest"), note) for note in model.notes_)
    assert model.matrix().std() < 0.02


# ------------------------------------------------------------------------------------------ difficult logs


def test_a_log_that_fills_its_grid_has_p_of_one():
    model = LowRank().fit(log_of(np.ones((5, 4))))
    np.testing.assert_array_equal(model.matrix(), 1.0)
    (note,) = model.notes_
    assert re.search(facts("grid", "p", 1), note)
    half = log_of(np.arange(20).reshape(5, 4) % 2, share=np.full(10, 0.5))  # so does this, by its shares
    np.testing.assert_array_equal(LowRank().fit(half).matrix(), 1.0)


@pytest.mark.parametrize("constraint", ["nuclear", "max"])
def test_one_row_and_all_rows_but_one_have_finite_p(constraint):
    O = np.zeros((6, 5))
    O[2, 3] = 1
    for grid in (O, 1 - O):
        P = LowRank(constraint).fit(log_of(grid)).matrix()
        assert np.all((P > 0) & (P <= 1))
        assert np.isclose(P.sum(), grid.sum(), rtol=1e-6)


def test_users_and_items_without_a_row_are_noted_and_get_a_p():
    O = np.random.default_rng(0).random((30, 20)) < 0.4
    O[[3, 8]], O[:, 5] = False, False
    model = LowRank().fit(log_of(O))
    assert any(re.search(facts("2 of 30 users", "no row"), note) for note in model.notes_)
    assert any(re.search(facts("1 of 20 items", "no row"), note) for note in model.notes_)
    P = model.matrix()
    assert P.min() > 1e-4
    assert P[3].mean() < P.mean()


def test_a_fit_cut_short_says_so_and_still_sums_to_the_log():
    model = LowRank(radius=2.0, rank=3, max_iter=4).fit(small_log())
    assert any(re.search(facts("4 iterations", "max_iter="), note) for note in model.notes_)
    assert np.isclose(model.matrix().sum(), len(small_log()), rtol=1e-9)


def test_a_grid_of_hours_is_refused():
    wide = Vocabulary.range(20_000)
    log = Feedback.from_arrays([0], [0], [1.0], users=wide, items=wide)
    with pytest.raises(UndefinedError, match=facts("LowRank", "20,000 × 20,000", "Popularity", "Logistic", "Boosted")):
        LowRank().fit(log)


@pytest.mark.parametrize(
    ("option", "value"), [("radius", 0.0), ("radius", np.inf), ("rank", 0), ("folds", 1), ("max_iter", 0), ("tol", 0.0)]
)
def test_a_parameter_out_of_range_is_refused(option, value):
    with pytest.raises(InputError, match=facts("LowRank", option, value)):
        LowRank(**{option: value}).fit(small_log())


def test_an_unknown_constraint_gets_its_neighbour():
    with pytest.raises(InputError, match=facts("LowRank", "constraint", "'nuklear'", "'nuclear'")):
        LowRank("nuklear").fit(small_log())


@pytest.mark.parametrize("constraint", ["nuclear", "max"])
def test_a_part_of_a_log_in_blocks_ends_with_finite_p(constraint):
    # Rows of a part count 1/s > 1 each, so that the likelihood grows without end towards p = 1 in a block.
    u, i = np.indices((20, 20))
    log = log_of((u < 10) == (i < 10))
    part, _ = ol.split(log, test=0.2, rng=0)
    model = LowRank(constraint, radius=45.0, rank=1).fit(part)
    P = model.matrix()
    assert np.all((P > 0) & (P <= 1))
    assert P.sum() == pytest.approx(len(log), rel=1e-6)
    assert P[(u < 10) == (i < 10)].min() > P[(u < 10) != (i < 10)].max()
