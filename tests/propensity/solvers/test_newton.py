"""Gradient and optimum of the logits, against differences and scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest

from openloop.errors import UndefinedError
from openloop.propensity.solvers import newton
from openloop.propensity.solvers.newton import Grid, Logits, gradient, maximise, sums
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


def test_the_gradient_is_that_of_the_likelihood():
    grid, at, O = problem()
    x, h = flat(at), 1e-6
    steps = np.eye(len(x)) * h
    by_differences = [
        (likelihood(grid, unflat(x + e, at), O, 2.0) - likelihood(grid, unflat(x - e, at), O, 2.0)) / (2 * h)
        for e in steps
    ]
    np.testing.assert_allclose(flat(gradient(grid, at, 2.0)), by_differences, atol=1e-6)


def test_the_optimum_has_no_gradient_and_does_not_depend_on_the_start():
    grid, at, _ = problem()
    found, other = maximise(grid, 0.5), maximise(grid, 0.5, start=at)
    np.testing.assert_allclose(flat(gradient(grid, found.at, 0.5)), 0, atol=1e-6)
    np.testing.assert_allclose(sums(grid, found.at)[0], sums(grid, other.at)[0], rtol=1e-7)
    np.testing.assert_allclose(found.at.W, other.at.W, atol=1e-6)


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
