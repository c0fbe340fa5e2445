"""Gradient, Hessian and optimum of the logits, against differences, explicit designs and scikit-learn."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from openloop.errors import UndefinedError
from openloop.propensity.solvers import newton
from openloop.propensity.solvers.newton import Grid, Logits, curvature, gradient, maximise, sigmoid, sums
from tests.facts import facts


def problem(U=12, I=9, k=3, l=2, seed=0):
    rng = np.random.default_rng(seed)
    X, Z = rng.standard_normal((U, k)), rng.standard_normal((I, l))
    O = (rng.random((U, I)) < 0.4).astype(float)
    O[np.arange(U), np.arange(U) % I] = 1  # nobody without a row
    O[np.arange(U), (np.arange(U) + 1) % I] = 0  # and nobody with all
    ones = np.ones(U), np.ones(I)
    grid = Grid(m=ones[0], n=ones[1], a=O.sum(1), b=O.sum(0), X=X, Z=Z, S=X.T @ O @ Z)
    at = Logits(gamma=rng.normal(-1, 1, U), beta=rng.normal(0, 1, I), W=rng.normal(0, 1, (k, l)))
    return grid, at, O


def flat(at):
    return np.concatenate([at.gamma, at.beta, at.W.ravel()])


def unflat(values, like):
    U, I = len(like.gamma), len(like.beta)
    return Logits(gamma=values[:U], beta=values[U : U + I], W=values[U + I :].reshape(like.W.shape))


def likelihood(grid, at, O, reg):
    z = at.gamma[:, None] + at.beta + grid.X @ at.W @ grid.Z.T
    return np.sum(O * z - np.logaddexp(0, z)) - reg / 2 * np.sum(at.W**2)


def test_sigmoid_of_large_logits_is_0_or_1_without_a_warning():
    np.testing.assert_array_equal(sigmoid(np.array([-1e4, 0.0, 1e4])), [0.0, 0.5, 1.0])


def test_the_gradient_is_that_of_the_likelihood():
    grid, at, O = problem()
    x, h = flat(at), 1e-6
    steps = np.eye(len(x)) * h
    by_differences = [
        (likelihood(grid, unflat(x + e, at), O, 2.0) - likelihood(grid, unflat(x - e, at), O, 2.0)) / (2 * h)
        for e in steps
    ]
    np.testing.assert_allclose(flat(gradient(grid, at, 2.0)), by_differences, atol=1e-6)


def test_the_solver_inverts_the_hessian():
    grid, at, _ = problem()
    x, h, reg = flat(at), 1e-6, 2.0
    H = np.array(
        [
            (flat(gradient(grid, unflat(x - e, at), reg)) - flat(gradient(grid, unflat(x + e, at), reg))) / (2 * h)
            for e in np.eye(len(x)) * h
        ]
    )
    g = gradient(grid, at, reg)
    step = curvature(grid, at).solver(reg)(g)
    # The Hessian is kept, and its rows are summed, in single precision.
    rounding = len(grid.m) * np.finfo(np.float32).eps / 2 * np.abs(H) @ np.abs(flat(step))
    np.testing.assert_array_less(np.abs(H @ flat(step) - flat(g)), rounding)


@pytest.mark.parametrize("block", [9, 20, 2**18])
def test_blocks_and_threads_do_not_matter(monkeypatch, block):
    grid, at, _ = problem()
    whole = flat(gradient(grid, at, 1.0))
    monkeypatch.setattr(newton, "BLOCK", block)
    monkeypatch.setattr(newton, "ROWS", 5)
    np.testing.assert_allclose(flat(gradient(grid, at, 1.0)), whole, rtol=1e-12, atol=1e-12)
    found = maximise(grid, 1.0)
    monkeypatch.undo()
    np.testing.assert_allclose(flat(found.at), flat(maximise(grid, 1.0).at), rtol=1e-6, atol=1e-7)


def test_the_optimum_has_no_gradient_and_does_not_depend_on_the_start():
    grid, at, _ = problem()
    found, other = maximise(grid, 0.5), maximise(grid, 0.5, start=at)
    np.testing.assert_allclose(flat(gradient(grid, found.at, 0.5)), 0, atol=1e-6)
    np.testing.assert_allclose(sums(grid, found.at)[0], sums(grid, other.at)[0], rtol=1e-7)
    np.testing.assert_allclose(found.at.W, other.at.W, atol=1e-6)


def test_a_hessian_from_elsewhere_ends_at_the_same_optimum():
    grid, at, _ = problem()
    found = maximise(grid, 0.5, known=curvature(grid, at))
    np.testing.assert_allclose(found.at.W, maximise(grid, 0.5).at.W, atol=1e-6)


def test_users_in_rows_or_in_columns_are_the_same_problem():
    grid, _, _ = problem(U=7, I=15)
    found, turned = maximise(grid, 0.5).at, maximise(grid.swapped, 0.5).at
    np.testing.assert_allclose(turned.W.T, found.W, atol=1e-7)
    np.testing.assert_allclose(sums(grid.swapped, turned)[0], sums(grid, found)[1], rtol=1e-8)


def test_a_class_of_three_is_three_users():
    grid, _, O = problem()
    each = np.concatenate([np.arange(12), [4, 4]])
    O3, X3 = O[each], grid.X[each]
    three = Grid(m=np.ones(14), n=grid.n, a=O3.sum(1), b=O3.sum(0), X=X3, Z=grid.Z, S=X3.T @ O3 @ grid.Z)
    one = replace(three, m=np.where(np.arange(12) == 4, 3.0, 1.0), a=grid.a, X=grid.X)
    a, b = maximise(one, 1.0).at, maximise(three, 1.0).at
    np.testing.assert_allclose(b.gamma[[12, 13]], b.gamma[4])
    np.testing.assert_allclose(a.W, b.W, atol=1e-7)
    np.testing.assert_allclose(sums(one, a)[1], sums(three, b)[1], rtol=1e-7)


def test_the_optimum_is_scikit_learns_on_the_explicit_design():
    from sklearn.linear_model import LogisticRegression

    grid, _, O = problem(U=30, I=20, k=3, l=4, seed=3)
    reg, scale = 0.7, 1e3
    u, i = (x.ravel() for x in np.indices(O.shape))
    pairs = (grid.X[u][:, :, None] * grid.Z[i][:, None, :]).reshape(len(u), -1)
    # Large columns make the penalty on offsets, which cannot be switched off there, as good as none.
    design = np.concatenate([pairs, scale * np.eye(30)[u], scale * np.eye(20)[i]], axis=1)
    theirs = LogisticRegression(C=1 / reg, fit_intercept=False, solver="newton-cholesky", tol=1e-12, max_iter=500)
    theirs.fit(design, O.ravel())
    ours = maximise(grid, reg).at
    np.testing.assert_allclose(ours.W.ravel(), theirs.coef_[0, :12], atol=1e-5)
    W = theirs.coef_[0, :12].reshape(3, 4)
    P = theirs.predict_proba(design)[:, 1].reshape(O.shape)
    z = np.log(P / (1 - P))
    their_likelihood = np.sum(O * z - np.logaddexp(0, z)) - reg / 2 * np.sum(W**2)
    assert likelihood(grid, ours, O, reg) == pytest.approx(their_likelihood, rel=1e-8)


def test_steps_that_do_not_arrive_are_an_error(monkeypatch):
    grid, _, _ = problem()
    monkeypatch.setattr(newton, "MAX_STEPS", 1)
    with pytest.raises(UndefinedError, match=facts("Logistic", "1 steps", "reg=")):
        maximise(grid, 1.0)


def test_a_step_along_which_the_slope_stays_is_halved_until_it_ends(monkeypatch):
    monkeypatch.setattr(newton, "gradient", lambda *_: Flat())
    tried = []
    newton._along(None, 0.0, Recorder(tried), None, -1.0)
    np.testing.assert_allclose(tried[:3], [1.0, 0.5, 0.25])


class Flat:
    """A gradient whose slope is -1 everywhere."""

    def dot(self, _):
        return -1.0


class Recorder:
    """Logits that note how far along a step they are asked for."""

    def __init__(self, tried):
        self.tried = tried

    def plus(self, t, _):
        self.tried.append(t)
        return self
