"""Logistic propensities: margins are counts, the optimum is the optimum, and the truth is found."""

from __future__ import annotations

import re

import numpy as np
import pytest

from openloop.core.feedback import Feedback
from openloop.data.simulate import World
from openloop.errors import InputError, UndefinedError
from openloop.propensity.logistic import Logistic
from tests.contracts import PropensityModelContract
from tests.facts import facts


def sigma(z):
    return 1 / (1 + np.exp(-z))


def logistic_world(U=200, I=150, k=2, l=3, seed=0, level=-2.0):
    """P follows the model; what people see depends on what they like, through the covariates alone."""
    rng = np.random.default_rng(seed)
    X, Z = rng.standard_normal((U, k)), rng.standard_normal((I, l))
    taste = X @ rng.normal(0, 0.6, (k, l)) @ Z.T  # (U, I)
    P = sigma(level + rng.normal(0, 0.5, (U, 1)) + rng.normal(0, 0.7, I) + taste)
    Y = np.clip(np.rint(3 + taste + rng.normal(0, 0.5, (U, I))), 1, 5)
    return World(ratings=Y, propensities=P, predictions={"four": np.full((U, I), 4.0)}), X, Z


class TestOffsets(PropensityModelContract):
    def make(self):
        return Logistic()


class TestCovariates(PropensityModelContract):
    def make(self):
        return Logistic(rng=3)

    def fit(self, model, feedback):
        rng = np.random.default_rng(0)
        return model.fit(feedback, user_features=rng.random((30, 2)), item_features=rng.random((20, 2)))


@pytest.mark.parametrize("reg", [1e-3, 1.0, 1e3])
def test_every_user_and_item_has_its_count_at_any_penalty(reg):
    world, X, Z = logistic_world()
    log = world.observe(1)
    P = Logistic(reg=reg).fit(log, X, Z).matrix()
    np.testing.assert_allclose(P.sum(axis=1), np.bincount(log.user, minlength=200), rtol=1e-7)
    np.testing.assert_allclose(P.sum(axis=0), np.bincount(log.item, minlength=150), rtol=1e-7)


def test_by_hand_two_kinds_of_users_and_no_items_to_tell():
    # 4 items, each seen by 3 of 6 users; users see 1 or 3 of 4: offsets alone give everyone his share.
    O = np.array([[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [1, 1, 0, 1], [1, 0, 1, 1], [0, 1, 1, 1]])
    user, item = np.nonzero(O)
    P = Logistic().fit(Feedback.from_arrays(user, item, np.ones(12))).matrix()
    np.testing.assert_allclose(P[:3], 0.25, rtol=1e-6)
    np.testing.assert_allclose(P[3:], 0.75, rtol=1e-6)


def test_constant_covariates_and_shifts_change_nothing():
    world, X, Z = logistic_world()
    log = world.observe(1)
    plain = Logistic(reg=2.0).fit(log, X, Z)
    shifted = Logistic(reg=2.0).fit(log, np.column_stack([X + 7, np.ones(200)]), Z - 3)
    np.testing.assert_allclose(shifted.matrix(), plain.matrix(), rtol=1e-5)
    np.testing.assert_allclose(shifted.weights_[-1], 0)
    assert any(re.search(facts("user columns", "constant", "'user_2'"), note) for note in shifted.notes_)


def test_collinear_columns_are_reported_and_share_their_weight():
    world, X, Z = logistic_world()
    log = world.observe(1)
    model = Logistic(reg=2.0).fit(log, np.column_stack([X, X[:, 0]]), Z)
    np.testing.assert_allclose(model.weights_[0], model.weights_[2], atol=1e-6)
    assert any(re.search(facts("3 user columns", "rank 2"), note) for note in model.notes_)


def test_estimates_converge_as_the_grid_grows():
    errors = []
    for U, I in ((60, 50), (200, 150), (600, 500)):
        world, X, Z = logistic_world(U, I)
        P = Logistic(reg=1.0).fit(world.observe(1), X, Z).matrix()
        errors.append(np.sqrt(np.mean((P - world.propensities) ** 2)))
    # Offsets are estimated from I and U cells, so errors fall with the root of the side: about √10 in all.
    assert errors[2] < errors[1] < errors[0]
    assert errors[2] < 0.4 * errors[0]


def test_the_log_likelihood_is_that_of_scikit_learn():
    from sklearn.linear_model import LogisticRegression

    world, X, Z = logistic_world(60, 50)
    log = world.observe(0)
    O = np.zeros((60, 50))
    O[log.user, log.item] = 1
    assert O.any(axis=0).all()
    assert O.any(axis=1).all()
    u, i = (x.ravel() for x in np.indices(O.shape))
    pairs = (X[u][:, :, None] * Z[i][:, None, :]).reshape(len(u), -1)
    # Large columns make the penalty on offsets, which cannot be left out there, as good as none.
    design = np.concatenate([pairs, 1e3 * np.eye(60)[u], 1e3 * np.eye(50)[i]], axis=1)
    theirs = LogisticRegression(C=1 / 2.0, fit_intercept=False, solver="newton-cholesky", tol=1e-10, max_iter=500)
    theirs.fit(design, O.ravel())
    z, w = theirs.decision_function(design), theirs.coef_[0, :6]
    likelihood = np.sum(O.ravel() * z - np.logaddexp(0, z)) - np.sum(w**2)
    assert Logistic(reg=2.0).fit(log, X, Z).log_likelihood_ == pytest.approx(likelihood, rel=1e-6)


def test_propensities_of_coat_are_close_to_the_published_ones(coat):
    log, X, Z, published = coat
    model = Logistic().fit(log, X, Z)
    P = model.matrix()
    O = np.zeros(P.shape, bool)
    O[log.user, log.item] = True

    def likelihood(p):
        return np.log(p[O]).sum() + np.log1p(-p[~O]).sum()

    assert np.corrcoef(P.ravel(), published.ravel())[0, 1] > 0.93
    assert likelihood(P) > likelihood(published) > likelihood(Logistic().fit(log).matrix())


@pytest.fixture(scope="module")
def coat(data_dir):
    folder = data_dir("coat")
    Y = np.loadtxt(folder / "train.ascii")
    X, Z = (np.loadtxt(folder / "user_item_features" / f"{side}_features.ascii") for side in ("user", "item"))
    user, item = np.nonzero(Y)
    log = Feedback.from_arrays(user, item, Y[user, item], users=290, items=300)
    return log, X, Z, np.loadtxt(folder / "propensities.ascii")


@pytest.mark.parametrize(
    ("option", "value"),
    [("reg", 0.0), ("reg", -1.0), ("reg", np.inf), ("reg", "1"), ("folds", 1), ("folds", 2.5), ("rng", "x")],
)
def test_bad_options_are_refused(option, value):
    world, X, Z = logistic_world(30, 20)
    with pytest.raises(InputError, match=facts("Logistic", option, repr(value))):
        Logistic(**{option: value}).fit(world.observe(0), X, Z)


def test_a_grid_too_large_for_a_matrix_still_has_margins_and_predictions(monkeypatch):
    from openloop.propensity import base

    world, X, Z = logistic_world(60, 50)
    log = world.observe(0)
    model = Logistic(reg=1.0).fit(log, X, Z)
    P = model.matrix()
    monkeypatch.setattr(base, "MAX_GRID", 100)
    with pytest.raises(UndefinedError, match=facts("Logistic", "60 × 50", "margins()")):
        model.matrix()
    np.testing.assert_allclose(model.margins()[0], P.sum(axis=1))
    np.testing.assert_allclose(model.predict(log).values, P[log.user, log.item])
