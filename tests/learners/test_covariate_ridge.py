"""Features: scikit-learn's ridge on the explicit design, laws, and what it refuses."""

from __future__ import annotations

import re

import numpy as np
import pytest
from sklearn.linear_model import Ridge

from openloop.core.covariates import Covariates
from openloop.core.feedback import Feedback, Vocabulary
from openloop.errors import AlignmentError, InputError, UnknownIdError
from openloop.learners import Features
from tests.contracts import PersonalRecommenderContract
from tests.facts import facts

U, I = 40, 30


class TestFeatures(PersonalRecommenderContract):
    def make(self):
        odd = np.arange(self.size)[:, None] % 2
        return Features(odd, Covariates(values=odd, names=("odd",), ids=Vocabulary.range(self.size)), reg=1.0)


@pytest.fixture(scope="module")
def x() -> np.ndarray:
    """What is known of users: a number, and three columns of which one is 1."""
    rng = np.random.default_rng(0)
    return np.column_stack([rng.normal(5, 2, U), np.eye(3)[rng.integers(3, size=U)]])


@pytest.fixture(scope="module")
def z() -> np.ndarray:
    return np.random.default_rng(1).normal(size=(I, 2))


@pytest.fixture(scope="module")
def log(x, z) -> Feedback:
    """User 4 and item 9 have no rating."""
    rng = np.random.default_rng(2)
    Y = 3 + x @ rng.normal(0, 0.4, (4, 2)) @ z.T + x[:, :1] * 0.3 + rng.normal(0, 0.5, (U, I))
    O = rng.random((U, I)) < 0.4
    O[4], O[:, 9] = False, False
    user, item = np.nonzero(O)
    return Feedback.from_arrays(user, item, Y[O], users=U, items=I, weight=rng.gamma(2.0, size=len(user)))


def everyone(model) -> np.ndarray:
    return model.scores(np.arange(U))


def design(x: np.ndarray | None, z: np.ndarray | None) -> np.ndarray:
    """[1, x] ⊗ [1, z] of every cell without 1·1, centred over users and items, (U·I, (1 + k)(1 + l) - 1)."""
    left, right = (
        np.ones((n, 1)) if given is None else np.column_stack([np.ones(n), given - given.mean(axis=0)])
        for n, given in ((U, x), (I, z))
    )
    return np.einsum("uk,il->uikl", left, right).reshape(U * I, -1)[:, 1:]


# --- another program


@pytest.mark.parametrize("sides", ["both", "users", "items"])
@pytest.mark.parametrize("reg", [0.5, 100.0])
@pytest.mark.parametrize("weighted", [False, True])
def test_it_is_scikit_learns_ridge_on_the_explicit_design(log, x, z, sides, reg, weighted):
    # Ridge(alpha=λ).fit(D, y, sample_weight=w) minimises Σw(y - c - Dβ)² + λ‖β‖² with c free
    x, z = x if sides != "items" else None, z if sides != "users" else None
    w = log.weight / log.weight.mean() if weighted else np.ones(len(log))
    D = design(x, z)
    theirs = Ridge(alpha=reg).fit(D[log.cell], log.rating.astype(np.float64), sample_weight=w)
    model = Features(x, z, reg=reg).fit(log, log.weight if weighted else np.ones(len(log)))
    np.testing.assert_allclose(everyone(model).ravel(), theirs.predict(D), rtol=0, atol=1e-8)
    np.testing.assert_allclose(model.weights_.ravel()[1:], theirs.coef_, rtol=0, atol=1e-8)
    assert model.intercept_ == pytest.approx(theirs.intercept_, abs=1e-8)
    assert model.weights_.shape == (1 if x is None else 5, 1 if z is None else 3)


# --- by law


def test_a_huge_penalty_leaves_the_weighted_mean(log, x, z):
    mean = np.average(log.rating, weights=log.weight)
    np.testing.assert_allclose(everyone(Features(x, z, reg=1e12).fit(log)), mean, rtol=1e-6)


def test_constant_covariates_leave_the_weighted_mean_and_are_noted(log):
    model = Features(np.full((U, 2), 7.0), np.full((I, 1), -1.0)).fit(log)
    np.testing.assert_allclose(everyone(model), np.average(log.rating, weights=log.weight), rtol=1e-12)
    users, items = model.notes_
    assert re.search(facts("user", "constant", "'user_0', 'user_1'"), users)
    assert re.search(facts("item", "constant", "'item_0'"), items)


def test_moving_a_covariate_changes_nothing(log, x, z):
    np.testing.assert_allclose(everyone(Features(x + 50, z).fit(log)), everyone(Features(x, z).fit(log)), rtol=1e-9)


# --- what it refuses


def test_covariates_of_others_are_refused(log, x, z):
    with pytest.raises(AlignmentError, match=facts("user", f"{U}", x[:-1].shape)):
        Features(x[:-1], z).fit(log)
    others = Covariates(values=z, names=("a", "b"), ids=Vocabulary.of(np.arange(I) + 7))
    with pytest.raises(UnknownIdError, match=facts("item", "ol.covariates")):
        Features(x, others).fit(log)


@pytest.mark.parametrize("reg", [0.0, -1.0, np.nan, np.inf, "7", None])
def test_a_penalty_that_cannot_be_is_refused(log, x, reg):
    with pytest.raises(InputError, match=facts("Features", "reg", repr(reg))):
        Features(x, reg=reg).fit(log)
