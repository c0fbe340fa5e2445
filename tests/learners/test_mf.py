"""MF: by hand, three solvers of one objective, selection with a known truth, another program, and what it refuses."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from openloop.core.feedback import Feedback
from openloop.core.propensities import Propensities
from openloop.data.simulate import World, low_rank, observation_model
from openloop.errors import AlignmentError, DivergenceError, RatingError
from openloop.learners import MF, Bias
from openloop.learners.mf import LOSSES, SMOOTHING, SOLVERS
from tests.contracts import PersonalRecommenderContract
from tests.facts import facts

ALL_SOLVERS = pytest.mark.parametrize("solver", SOLVERS)
# Users are projected out of the squared loss only.
ANY_LOSS = tuple(solver for solver in SOLVERS if solver != "projected")
SOLVERS_OF_ANY_LOSS = pytest.mark.parametrize("solver", ANY_LOSS)
PAIRS = [(solver, loss) for solver in SOLVERS for loss in LOSSES if solver in ANY_LOSS or loss == "squared"]
EVERY_PAIR = pytest.mark.parametrize(("solver", "loss"), PAIRS)
EVERY_LOSS = pytest.mark.parametrize("loss", LOSSES)
BOTH_ERRORS = pytest.mark.parametrize("loss", ["squared", "absolute"])
REG = {"squared": 4.0, "absolute": 4.0, "logistic": 0.7}  # which leaves some factors of `log`
EXACT = {"tol": 1e-13, "iterations": 5000, "dtype": "float64"}

pytestmark = pytest.mark.slow


class TestMF(PersonalRecommenderContract):
    def make(self):
        return MF(2, 0.5)


class TestAbsoluteMF(PersonalRecommenderContract):
    def make(self):
        return MF(2, 0.5, loss="absolute")


class TestPaperMF(PersonalRecommenderContract):
    def make(self):
        return MF(2, 0.5, bias_reg=0, solver="lbfgs")


class TestExactMF(PersonalRecommenderContract):
    def make(self):
        return MF(2, 0.5, solver="cholesky", dtype="float64")


class TestProjectedMF(PersonalRecommenderContract):
    def make(self):
        return MF(2, 0.5, solver="projected")


class TestLogisticMF(PersonalRecommenderContract):
    has_link = True

    def make(self):
        return MF(2, 0.1, loss="logistic")

    def log(self):
        return labelled(super().log())


class TestLogisticMFByDescent(TestLogisticMF):
    def make(self):
        return MF(2, 0.1, loss="logistic", solver="lbfgs")


def labelled(log: Feedback) -> Feedback:
    return replace(log, rating=(log.rating > 3) * np.float32(1))


def suited(log: Feedback, loss: str) -> Feedback:
    """The log, or labels of it where the loss wants these."""
    return labelled(log) if loss == "logistic" else log


def world(users=40, items=30, seed=0, share=0.5) -> Feedback:
    rng = np.random.default_rng(seed)
    Y = 3 + rng.normal(size=(users, 2)) @ rng.normal(size=(2, items)) + rng.normal(0, 0.3, (users, items))
    user, item = np.nonzero(rng.random((users, items)) < share)
    return Feedback.from_arrays(user, item, Y[user, item], users=users, items=items)


@pytest.fixture(scope="module")
def log() -> Feedback:
    return world()


@pytest.fixture(scope="module")
def w(log) -> np.ndarray:
    return np.random.default_rng(1).gamma(2.0, size=len(log))


def objective(model: MF, log: Feedback, w=None) -> float:
    """Eq. 14 from what was learned."""
    w = np.ones(len(log)) if w is None else w / w.mean()
    V, W, a, b = (
        x.astype(np.float64) for x in (model.user_factors_, model.item_factors_, model.user_bias_, model.item_bias_)
    )
    z = (V @ W.T + a[:, None] + b + model.intercept_)[log.user, log.item]
    e = np.abs(log.rating - z)
    loss = -np.log(expit(np.where(log.rating == 1, z, -z))) if model.loss == "logistic" else e**2
    if model.loss == "absolute":
        eps = SMOOTHING * np.sqrt(np.average((log.rating - np.average(log.rating, weights=w)) ** 2, weights=w))
        loss = np.where(e > eps, e, e**2 / (2 * eps) + eps / 2)
    bias_reg = model.reg if model.bias_reg is None else model.bias_reg
    return float(
        np.sum(w * loss) + model.reg * (np.sum(V**2) + np.sum(W**2)) + bias_reg * (np.sum(a**2) + np.sum(b**2))
    )


def everyone(model: MF) -> np.ndarray:
    return model.scores(np.arange(len(model.users_)))


def truth(model: MF, Y: np.ndarray) -> float:
    return float(np.mean((everyone(model) - Y) ** 2))


def state(model: MF) -> list:
    return [
        getattr(model, f"{name}_") for name in ("user_factors", "item_factors", "user_bias", "item_bias", "intercept")
    ]


def same(a: MF, b: MF) -> None:
    for x, y in zip(state(a), state(b), strict=True):
        np.testing.assert_array_equal(x, y)


# --- by hand


@ALL_SOLVERS
def test_offsets_of_a_two_by_two_grid(solver):
    # a = b = (t, -t) leaves residuals 2 - 2t, 0, 0, 2t - 2: with λ = 2, t = 2/(2 + λ) = 1/2, and 2·1 + 2·4·t² = 4
    log = Feedback.from_arrays([0, 0, 1, 1], [0, 1, 0, 1], [5, 3, 3, 1])
    model = MF(0, 2.0, solver=solver, **EXACT).fit(log)
    np.testing.assert_allclose(everyone(model), [[4, 3], [3, 2]], atol=1e-5)
    np.testing.assert_allclose(model.user_bias_, [0.5, -0.5], atol=1e-5)
    np.testing.assert_allclose(model.item_bias_, [0.5, -0.5], atol=1e-5)
    assert model.intercept_ == 3
    assert model.history_[-1] == pytest.approx(4, rel=1e-9)


@ALL_SOLVERS
def test_a_factor_of_a_two_by_two_grid(solver):
    # Y - 3 has the singular value 2, which the penalty lowers by λ = 1/2: (1/2)² + 2λ·1.5 = 1.75, and no offset helps.
    log = Feedback.from_arrays([0, 0, 1, 1], [0, 1, 0, 1], [4, 2, 2, 4])
    model = MF(1, 0.5, solver=solver, **EXACT).fit(log)
    np.testing.assert_allclose(everyone(model), [[3.75, 2.25], [2.25, 3.75]], atol=1e-5)
    assert model.history_[-1] == pytest.approx(1.75, rel=1e-9)


# --- by law


@EVERY_PAIR
@pytest.mark.parametrize("bias_reg", [None, 1.0])
def test_the_history_ends_with_the_objective_of_what_was_learned(log, w, solver, loss, bias_reg):
    log = suited(log, loss)
    model = MF(8, REG[loss] - 0.2, bias_reg=bias_reg, solver=solver, loss=loss, **EXACT).fit(log, w)
    assert model.history_[-1] == pytest.approx(objective(model, log, w), rel=1e-8)
    assert np.max(np.diff(model.history_)) <= 0
    assert model.notes_ == ()


@pytest.mark.parametrize(("loss", "rel"), [("squared", 1e-6), ("absolute", 1e-5), ("logistic", 1e-6)])
@pytest.mark.parametrize("bias_reg", [None, 0.0])
def test_all_solvers_reach_the_same(log, w, loss, rel, bias_reg):
    # With more factors than the penalty leaves there is no valley but the lowest.
    log = suited(log, loss)
    reached = [
        MF(10, REG[loss], bias_reg=bias_reg, solver=solver, loss=loss, **EXACT).fit(log, w).history_[-1]
        for solver in (SOLVERS if loss == "squared" else ANY_LOSS)
    ]
    np.testing.assert_allclose(reached, reached[0], rtol=rel)


@pytest.mark.parametrize("solver", ["cg", "cholesky"])
@EVERY_LOSS
def test_single_precision_and_the_usual_tolerance_come_near(log, w, solver, loss):
    log = suited(log, loss)
    usual, exact = MF(10, REG[loss], solver=solver, loss=loss), MF(10, REG[loss], solver=solver, loss=loss, **EXACT)
    usual, exact = usual.fit(log, w), exact.fit(log, w)
    assert objective(usual, log, w) == pytest.approx(exact.history_[-1], rel=2e-4)
    assert usual.history_[-1] == pytest.approx(objective(usual, log, w), rel=1e-3)
    assert {x.dtype for x in state(usual)[:4]} == {np.dtype("float32")}
    assert {x.dtype for x in state(exact)[:4]} == {np.dtype("float64")}


@ALL_SOLVERS
def test_without_factors_it_is_a_ridge_regression(log, w, solver):
    # (XᵀDX + λ)θ = XᵀD(y - c), θ = (a, b)
    U, I, n = log.n_users, log.n_items, np.arange(len(log))
    X = np.zeros((len(log), U + I))
    X[n, log.user] = X[n, U + log.item] = 1
    D = w / w.mean()
    left = X.T @ (D[:, None] * X) + 3 * np.eye(U + I)
    theta = np.linalg.solve(left, X.T @ (D * (log.rating - np.average(log.rating, weights=w))))
    model = MF(0, 3.0, solver=solver, **EXACT).fit(log, w)
    np.testing.assert_allclose(np.concatenate([model.user_bias_, model.item_bias_]), theta, atol=1e-5)


@EVERY_PAIR
def test_a_factor_on_all_weights_changes_nothing(log, w, solver, loss):
    # A power of two rounds nothing, so the bits are the same. Another factor changes the last bits of the weights, and
    # where the objective is flat a descent may then stop elsewhere.
    log = suited(log, loss)
    same(*(MF(4, REG[loss], solver=solver, loss=loss).fit(log, k * w) for k in (1, 8)))


@pytest.mark.parametrize("scale", [1e-4, 1.0, 1e4])
def test_every_solver_finds_the_same_at_any_scale_of_ratings(log, scale):
    # One valley again. The start has one scale always, so that elsewhere a descent is long, and of many small steps.
    part = replace(log, rating=log.rating * np.float32(scale))
    found = [
        MF(10, 4.0 * scale, bias_reg=2.0, solver=solver, **EXACT).fit(part).history_[-1] for solver in ("cg", "lbfgs")
    ]
    assert found[1] == pytest.approx(found[0], rel=1e-6)


def test_users_and_items_are_alike(log):
    turned = Feedback.from_arrays(log.item, log.user, log.rating, users=log.n_items, items=log.n_users)
    model, other = (MF(8, 4.0, **EXACT).fit(feedback) for feedback in (log, turned))
    np.testing.assert_allclose(everyone(other).T, everyone(model), atol=1e-4)


def test_moving_all_ratings_moves_all_predictions(log):
    moved = replace(log, rating=log.rating + np.float32(100))
    np.testing.assert_allclose(everyone(MF(5, **EXACT).fit(moved)), everyone(MF(5, **EXACT).fit(log)) + 100, rtol=1e-5)


def test_propensities_weigh_by_their_inverse(log):
    p = np.random.default_rng(2).uniform(0.1, 1, len(log))
    weighted = MF(4).fit(log, Propensities(values=p, fingerprint=log.fingerprint))
    same(weighted, MF(4).fit(log, 1 / p))
    with pytest.raises(AlignmentError, match=facts("Propensities", "another Feedback")):
        MF(4).fit(log, Propensities(values=p, fingerprint=world(seed=5).fingerprint))


# --- simulation with a known truth


def test_a_low_rank_world_is_recovered():
    rng = np.random.default_rng(0)
    Y = 3 + rng.normal(size=(80, 2)) @ rng.normal(size=(2, 60)) + 0.5 * rng.normal(size=(80, 1)) + rng.normal(size=60)
    user, item = np.nonzero(rng.random(Y.shape) < 0.4)
    log = Feedback.from_arrays(user, item, Y[user, item] + rng.normal(0, 0.1, len(user)), users=80, items=60)
    assert truth(MF(2, 0.05).fit(log), Y) < 0.01 * Y.var()
    assert truth(Bias(1.0).fit(log), Y) > 0.3 * Y.var()


@pytest.mark.parametrize("seed", range(3))
def test_weights_of_one_over_p_undo_the_selection(seed):
    Y = low_rank(150, 120, 3, [0.2] * 5, noise=0.3, rng=seed)
    log = World(ratings=Y, propensities=observation_model(Y, 0.25, 0.2)).observe(seed + 10)
    naive, ips = MF(8, 3.0).fit(log), MF(8, 3.0).fit(log, 1 / log.propensity)
    assert truth(ips, Y) < 0.75 * truth(naive, Y)
    # Who sees what they like makes the mean of a log too high; 1/p does not.
    assert naive.intercept_ > Y.mean() + 0.5
    assert ips.intercept_ == pytest.approx(Y.mean(), abs=0.2)


@SOLVERS_OF_ANY_LOSS
def test_an_absolute_loss_resists_outliers(solver):
    rng = np.random.default_rng(0)
    Y = 3 + rng.normal(size=(80, 2)) @ rng.normal(size=(2, 60))
    user, item = np.nonzero(rng.random(Y.shape) < 0.5)
    wrong = rng.random(len(user)) < 0.05
    log = Feedback.from_arrays(user, item, np.where(wrong, 40, Y[user, item]), users=80, items=60)
    squared, absolute = (
        MF(2, reg, loss=loss, solver=solver, iterations=500).fit(log)
        for loss, reg in (("squared", 3.0), ("absolute", 1.0))
    )
    assert truth(absolute, Y) < 0.1 * truth(squared, Y)
    assert truth(absolute, Y) < 0.1 * Y.var()


# --- another program


def cmfrec_log() -> tuple[Feedback, np.ndarray]:
    rng = np.random.default_rng(0)
    user, item = np.nonzero(rng.random((60, 50)) < 0.5)
    y = (3 + rng.standard_normal((60, 3)) @ rng.standard_normal((3, 50)))[user, item]
    return Feedback.from_arrays(user, item, y, users=60, items=50), np.exp(rng.standard_normal(len(user)))


@ALL_SOLVERS
@pytest.mark.parametrize(("weighted", "theirs"), [(False, 1610.7693986696268), (True, 1553.4460305038647)])
def test_cmfrec_reaches_the_same_objective(solver, weighted, theirs):
    # cmfrec 3.5.1: CMF(k=4, lambda_=5., use_cg=False, niter=200, nthreads=1, use_float=False, random_state=1)
    #   .fit(coo_matrix((y, (u, i))), W=w / w.mean()), rows sorted by item: in another order it mixes up the weights.
    log, w = cmfrec_log()
    model = MF(4, 5.0, solver=solver, **EXACT).fit(log, w if weighted else None)
    assert model.history_[-1] == pytest.approx(theirs, rel=1e-7)


def one_hot(log: Feedback) -> np.ndarray:
    """Which user and which item each row has."""
    n, X = np.arange(len(log)), np.zeros((len(log), log.n_users + log.n_items))
    X[n, log.user] = X[n, log.n_users + log.item] = 1
    return X


@SOLVERS_OF_ANY_LOSS
def test_without_factors_it_is_scikit_learns_logistic_regression(log, w, solver):
    # LogisticRegression minimises C·Σwδ + ½‖θ‖²: C = 1/2λ. It takes no given c, which is 0 for labels of equal weight.
    log = labelled(log)
    w = w / np.bincount(log.rating.astype(int), w)[log.rating.astype(int)]
    theirs = LogisticRegression(C=1 / 6, fit_intercept=False, solver="newton-cholesky", tol=1e-12, max_iter=1000)
    theirs.fit(one_hot(log), log.rating, sample_weight=w / w.mean())
    model = MF(0, 3.0, loss="logistic", solver=solver, **EXACT).fit(log, w)
    assert model.intercept_ == pytest.approx(0, abs=1e-12)
    np.testing.assert_allclose(np.concatenate([model.user_bias_, model.item_bias_]), theirs.coef_[0], atol=2e-5)
    np.testing.assert_allclose(model.predict(log.user, log.item), theirs.predict_proba(one_hot(log))[:, 1], atol=1e-5)


# --- difficult data


@EVERY_LOSS
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_cholesky_refuses_a_problem_without_a_single_solution(log, loss, dtype):
    log = suited(log, loss)
    with pytest.raises(DivergenceError, match=facts("MF", "sweep 1", "larger reg")):
        MF(25, 0.0, solver="cholesky", loss=loss, dtype=dtype).fit(log)


@pytest.mark.parametrize("solver", ["cg", "cholesky"])
@BOTH_ERRORS
def test_ratings_beyond_single_precision_are_an_error(log, solver, loss):
    huge = replace(log, rating=log.rating * np.float32(1e30))
    with pytest.raises(DivergenceError, match=facts("MF", "sweep 1", "smaller ratings")):
        MF(5, solver=solver, loss=loss).fit(huge)


# --- labels


@pytest.mark.parametrize("value", [2.0, 0.5, -1.0])
def test_ratings_that_are_no_labels_are_refused(log, value):
    y = labelled(log).rating.copy()
    y[[7, 9]] = value
    with pytest.raises(
        RatingError, match=facts("MF", "logistic", "0 and 1", f"2 of {len(log):,}", f"{value:g}", "index 7")
    ):
        MF(2, loss="logistic").fit(replace(log, rating=y))
