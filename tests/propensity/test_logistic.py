"""Logistic propensities: margins are counts, the optimum is the optimum, and the truth is found."""

from __future__ import annotations

import re

import numpy as np
import pytest

import openloop as ol
from openloop.core.covariates import Covariates
from openloop.core.feedback import Feedback
from openloop.data.simulate import World
from openloop.errors import AlignmentError, InputError, UndefinedError
from openloop.propensity.logistic import Logistic
from openloop.propensity.solvers.penalty import REGS
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


def test_half_of_a_log_speaks_of_the_whole():
    world, X, Z = logistic_world()
    log = world.observe(1)
    half, _ = ol.split(log, test=0.5, rng=0)
    model = Logistic(reg=1.0).fit(half, X, Z)
    # Half a row, which stands for a whole one, is expected of each user and item without one.
    without = 200 - len(np.unique(half.user)) + 150 - len(np.unique(half.item))
    assert model.matrix().sum() == pytest.approx((len(half) + without / 2) / half.share[0], rel=1e-6)


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


def test_covariates_of_one_side_alone_are_said_to_do_nothing():
    world, X, _ = logistic_world()
    log = world.observe(1)
    model = Logistic().fit(log, user_features=X)
    np.testing.assert_array_equal(model.matrix(), Logistic().fit(log).matrix())
    assert any("one side" in note for note in model.notes_)


def test_the_penalty_is_the_best_of_the_candidates_on_held_out_cells():
    world, X, Z = logistic_world()
    model = Logistic(rng=0).fit(world.observe(1), X, Z)
    assert model.reg_ == max(model.scores_, key=model.scores_.get)
    assert tuple(model.scores_) == REGS[: len(model.scores_)]
    # Strong effects: a penalty that hardly shrinks them is enough, and the largest one is clearly worse.
    assert model.reg_ <= 100
    assert model.scores_[REGS[0]] < model.scores_[model.reg_] - 100


def test_of_covariates_that_say_nothing_hardly_anything_is_kept():
    rng = np.random.default_rng(0)
    log = logistic_world()[0].observe(1)
    noise = Logistic().fit(log, rng.standard_normal((200, 8)), rng.standard_normal((150, 8)))
    assert noise.reg_ >= 100
    assert np.abs(noise.matrix() - Logistic().fit(log).matrix()).max() < 0.1


def test_estimates_converge_as_the_grid_grows():
    errors = []
    for U, I in ((60, 50), (200, 150), (600, 500)):
        world, X, Z = logistic_world(U, I)
        P = Logistic(reg=1.0).fit(world.observe(1), X, Z).matrix()
        errors.append(np.sqrt(np.mean((P - world.propensities) ** 2)))
    # Offsets are estimated from I and U cells, so errors fall with the root of the side: about √10 in all.
    assert errors[2] < errors[1] < errors[0]
    assert errors[2] < 0.4 * errors[0]


def test_ips_with_estimated_propensities_beats_naive_by_an_order_of_magnitude():
    world, X, Z = logistic_world(400, 300)
    truth = float(np.mean((world.predictions["four"] - world.ratings) ** 2))
    errors = {"naive": [], "ips": []}
    for seed in range(5):
        log = world.observe(seed)
        model = Logistic(reg=1.0).fit(log, X, Z)
        found = ol.evaluate(world.predictions, log, model, metrics=["mse"], estimators=["naive", "ips"])
        for name, seen in errors.items():
            seen.append(found["four", "mse", name].value - truth)
    naive, ips = (float(np.sqrt(np.mean(np.square(errors[name])))) for name in ("naive", "ips"))
    assert ips < naive / 10


def test_empty_and_full_users_and_items_are_reported_and_get_finite_propensities():
    world, X, Z = logistic_world(60, 50)
    O = np.random.default_rng(0).random((60, 50)) < world.propensities
    O[:, 3], O[:, 4] = False, True
    user, item = np.nonzero(O)
    log = Feedback.from_arrays(user, item, np.ones(len(user)), users=60, items=50)
    model = Logistic(reg=1.0).fit(log, X, Z)
    P = model.matrix()
    assert np.all((P > 0) & (P <= 1))
    assert P[:, 3].sum() == pytest.approx(0.5)
    assert P[:, 4].sum() == pytest.approx(59.5)
    empty, full, total = model.notes_
    assert re.search(facts("1 item", "no row"), empty)
    assert re.search(facts("1 item", "every row"), full)
    assert re.search(facts("Σp", "1.0000"), total)


def test_half_a_row_of_a_part_stands_for_more_and_what_it_adds_is_said():
    _, quarter = ol.split(logistic_world()[0].observe(0), test=0.25, rng=0)
    part = quarter.take(quarter.item != 3)
    model = Logistic().fit(part)
    assert model.matrix()[np.unique(part.user), 3].sum() == pytest.approx(0.5 / part.share[0])
    ratio = model.matrix().sum() / (len(part) / part.share[0])
    assert any(re.search(facts("Σp", f"{ratio:.4f}"), note) for note in model.notes_)


def test_separated_users_and_items_are_reported():
    # Users 0 … 9 see all of items 0 … 9, the others nothing of the other items.
    rng = np.random.default_rng(0)
    O = rng.random((40, 30)) < 0.5
    O[:10, :10], O[10:, 10:] = True, False
    user, item = np.nonzero(O)
    log = Feedback.from_arrays(user, item, np.ones(len(user)), users=40, items=30)
    model = Logistic().fit(log)
    P = model.matrix()
    assert np.all((P > 0) & (P <= 1))
    assert any("2e-9" in note for note in model.notes_)
    z = model.gamma_[:, None] + model.beta_
    assert model.log_likelihood_ == pytest.approx(np.sum(O * z - np.logaddexp(0, z)), abs=1e-6)


def test_covariates_that_separate_the_rows_still_get_a_penalty():
    X, Z = np.repeat([[-1.0], [1.0]], 20, axis=0), np.repeat([[-1.0], [1.0]], 15, axis=0)
    user, item = np.nonzero(X @ Z.T > 0)
    model = Logistic().fit(Feedback.from_arrays(user, item, np.ones(len(user)), users=40, items=30), X, Z)
    P = model.matrix()
    assert np.all((P > 0) & (P <= 1))
    assert P[0, 0] > 0.9
    assert P[0, -1] < 0.1


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


def test_bad_covariates_are_refused():
    world, X, Z = logistic_world(30, 20)
    log = world.observe(0)
    with pytest.raises(AlignmentError, match=facts("user covariates", "30 users", (29, 2))):
        Logistic().fit(log, X[:-1], Z)
    broken = X.copy()
    broken[4, 1] = np.nan
    with pytest.raises(InputError, match=facts("'user_1'", "1 of 30", "id 4")):
        Logistic().fit(log, broken, Z)


def test_covariates_are_kept_for_a_refit():
    world, X, Z = logistic_world(60, 50)
    log = world.observe(0)
    given = Covariates(values=X, names=("age", "height"), ids=log.users)
    model = Logistic(reg=1.0).fit(log, given, Z)
    assert model.user_covariates_ is given
    half, _ = ol.split(log, test=0.5, rng=0)
    assert model.refit(half).user_covariates_ is given


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
