"""Features: by hand, scikit-learn's ridge on the explicit design, laws, files, and what it refuses."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.linear_model import Ridge

import openloop as ol
from openloop.core.covariates import Covariates
from openloop.core.feedback import Feedback, Vocabulary
from openloop.errors import AlignmentError, DivergenceError, InputError, UnknownIdError
from openloop.learners import Bias, Features, Stack
from openloop.learners.covariate_ridge import MOST, normal_matrix
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


# --- by hand


def test_one_covariate_of_two_users():
    # x = ±1/2 once centred, c = 3, and (Σx² + λ)β = Σx(y - c): (1/2 + 1/2)β = 1: users differ by 1, and not by 2.
    log = Feedback.from_arrays([0, 1], [0, 0], [2, 4])
    model = Features([[0], [1]], reg=0.5).fit(log)
    np.testing.assert_allclose(model.scores([0, 1]), [[2.5], [3.5]], rtol=1e-12)
    np.testing.assert_allclose(model.weights_, [[3], [1]], rtol=1e-12)


def test_a_product_of_two_covariates():
    # Σ(xz)² = 4/16, and (1/4 + λ)β = Σxz(y - 3) = 1 has β = 2 with λ = 1/4; xz = ±1/4.
    log = Feedback.from_arrays([0, 0, 1, 1], [0, 1, 0, 1], [4, 2, 2, 4])
    model = Features([[0], [1]], [[0], [1]], reg=0.25).fit(log)
    np.testing.assert_allclose(model.scores([0, 1]), [[3.5, 2.5], [2.5, 3.5]], rtol=1e-12)
    np.testing.assert_allclose(model.weights_, [[3, 0], [0, 2]], atol=1e-12)


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


@pytest.mark.parametrize("turned", [False, True])
def test_the_normal_matrix_is_that_of_the_design(log, x, z, turned):
    S, left, right = csr_array((log.weight, (log.user, log.item)), (U, I)), x, z
    D = np.einsum("nk,nl->nkl", x[log.user], z[log.item])  # (n, k, l)
    if turned:
        S, left, right, D = S.T, z, x, D.transpose(0, 2, 1)
    D = D.reshape(len(log), -1)
    np.testing.assert_allclose(normal_matrix(S, left, right), D.T @ (log.weight[:, None] * D), rtol=1e-10)


def test_weighted_residuals_sum_to_0(log, x, z):
    model = Features(x, z).fit(log)
    assert np.average(log.rating - model.predict(log.user, log.item), weights=log.weight) == pytest.approx(0, abs=1e-9)


def test_a_huge_penalty_leaves_the_weighted_mean(log, x, z):
    mean = np.average(log.rating, weights=log.weight)
    np.testing.assert_allclose(everyone(Features(x, z, reg=1e12).fit(log)), mean, rtol=1e-6)


def test_constant_covariates_leave_the_weighted_mean_and_are_noted(log):
    model = Features(np.full((U, 2), 7.0), np.full((I, 1), -1.0)).fit(log)
    np.testing.assert_allclose(everyone(model), np.average(log.rating, weights=log.weight), rtol=1e-12)
    users, items = model.notes_
    assert re.search(facts("user", "constant", "'user_0', 'user_1'"), users)
    assert re.search(facts("item", "constant", "'item_0'"), items)


def test_a_constant_column_changes_nothing(log, x, z):
    more = np.column_stack([x, np.full(U, 3.0)])
    np.testing.assert_allclose(everyone(Features(more, z).fit(log)), everyone(Features(x, z).fit(log)), rtol=1e-10)


def test_moving_a_covariate_changes_nothing(log, x, z):
    np.testing.assert_allclose(everyone(Features(x + 50, z).fit(log)), everyone(Features(x, z).fit(log)), rtol=1e-9)


def test_users_and_items_are_alike(log, x, z):
    turned = Feedback.from_arrays(log.item, log.user, log.rating, users=I, items=U)
    model, other = Features(x, z, reg=3.0).fit(replace(log, weight=None)), Features(z, x, reg=3.0).fit(turned)
    np.testing.assert_allclose(other.scores(np.arange(I)).T, everyone(model), rtol=1e-9)
    assert model.user_factors_.shape[1] == other.user_factors_.shape[1] == 2  # of the side with fewer columns


def test_columns_that_say_the_same_share_the_weight_and_are_noted(log, z):
    x = np.random.default_rng(5).normal(size=(U, 1))
    once, twice = Features(x, z, reg=4.0).fit(log), Features(np.column_stack([x, x]) / np.sqrt(2), z, reg=4.0).fit(log)
    np.testing.assert_allclose(everyone(twice), everyone(once), rtol=1e-10)
    assert re.search(facts("2 user", "rank 1"), twice.notes_[0])


def test_a_part_of_the_log_is_learned_with_the_same_covariates(log, x, z):
    part = log.take(np.arange(len(log)) % 2 == 0)
    again = Feedback.from_arrays(part.user, part.item, part.rating, users=U, items=I, weight=part.weight)
    np.testing.assert_array_equal(everyone(Features(x, z).fit(part)), everyone(Features(x, z).fit(again)))


def test_propensities_weigh_by_their_inverse(log, x, z):
    p, plain = np.random.default_rng(2).uniform(0.1, 1, len(log)), replace(log, weight=None)
    np.testing.assert_array_equal(
        everyone(Features(x, z).fit(plain, propensities=p)), everyone(Features(x, z).fit(plain, 1 / p))
    )


def test_who_has_no_rating_is_predicted_by_who_they_are(log, x, z):
    same = x.copy()
    same[4] = x[7]
    scores = everyone(Features(same, z).fit(log))
    np.testing.assert_allclose(scores[4], scores[7], rtol=1e-12)


def test_select_scales_the_penalty_with_the_rows_of_a_fold(log, x, z):
    log = replace(log, propensity=np.full(len(log), 0.4))
    model, table = ol.select(Features(x, z), log, grid={"reg": [3.0, 1e6]}, metric="mse", estimator="ips", rng=0)
    assert model.reg == 3.0
    assert len(table) == 2
    assert Features.penalties_beside_row_sum == ("reg",)


def test_a_stack_takes_it_and_is_better_for_it(log, x, z):
    held = np.arange(len(log)) % 4 == 0
    models = (Bias(), Stack([Bias(), Features(x, z, reg=3.0)], folds=3, rng=0))
    u, i, y = log.user[held], log.item[held], log.rating[held]
    alone, stack = (np.mean((model.fit(log.take(~held)).predict(u, i) - y) ** 2) for model in models)
    assert stack < 0.6 * alone


def test_a_clone_holds_the_same_covariates(log, x, z):
    given = Covariates.of(x, log.users, "user")
    twin = clone(Features(given, z, reg=2.0))
    assert twin.reg == 2.0
    np.testing.assert_array_equal(twin.user_features.values, x)
    np.testing.assert_array_equal(twin.item_features, z)
    np.testing.assert_array_equal(everyone(twin.fit(log)), everyone(Features(given, z, reg=2.0).fit(log)))


def test_covariates_of_tables_are_taken(log):
    table = pl.DataFrame({"item": np.arange(I), "kind": ["tea", "beer", "milk"] * 10})
    items = ol.covariates(table, log.items)
    scores = everyone(Features(item_features=items, reg=1.0).fit(log))
    assert len(np.unique(scores[0].round(9))) == 3
    np.testing.assert_allclose(scores, scores[:1].repeat(U, axis=0), rtol=1e-12)


# --- files


@pytest.mark.parametrize("kind", ["arrays", "lists", "covariates", "one side"])
def test_a_saved_model_scores_bit_for_bit_and_can_be_fitted_again(log, x, z, tmp_path, kind):
    given = {
        "arrays": (x, z),
        "lists": (x.tolist(), z.tolist()),
        "covariates": (replace(Covariates.of(x, log.users, "user"), notes=("one was left out",)), z),
        "one side": (None, Covariates.of(z, log.items, "item")),
    }[kind]
    model = Features(*given, reg=3.0).fit(log)
    model.save(tmp_path / "features.safetensors")
    loaded = ol.load(tmp_path / "features.safetensors")
    np.testing.assert_array_equal(everyone(loaded), everyone(model))
    np.testing.assert_array_equal(everyone(clone(loaded).fit(log)), everyone(model))
    assert loaded.notes_ == model.notes_
    assert [type(value) for value in loaded.get_params().values()] == [type(v) for v in model.get_params().values()]


# --- what it refuses


def test_without_covariates_there_is_nothing_to_learn_from(log):
    with pytest.raises(InputError, match=facts("Features", "user_features=", "item_features=", "ol.covariates")):
        Features().fit(log)


def test_covariates_of_others_are_refused(log, x, z):
    with pytest.raises(AlignmentError, match=facts("user", f"{U}", x[:-1].shape)):
        Features(x[:-1], z).fit(log)
    others = Covariates(values=z, names=("a", "b"), ids=Vocabulary.of(np.arange(I) + 7))
    with pytest.raises(UnknownIdError, match=facts("item", "ol.covariates")):
        Features(x, others).fit(log)


def test_a_table_is_refused_with_what_makes_covariates_of_it(log):
    with pytest.raises(InputError, match=facts("user", "DataFrame", "ol.covariates")):
        Features(pl.DataFrame({"user": [0], "age": [3]})).fit(log)


def test_more_products_than_memory_holds_are_refused(log):
    with pytest.raises(InputError, match=facts("Features", "100 user", "99 item", f"{MOST:,}")):
        Features(np.zeros((U, 100)), np.zeros((I, 99))).fit(log)


def test_a_penalty_too_small_to_count_is_refused(log, x):
    with pytest.raises(DivergenceError, match=facts("Features", "reg=1e-300", "larger reg")):
        Features(np.column_stack([x, x]), reg=1e-300).fit(log)


@pytest.mark.parametrize("reg", [0.0, -1.0, np.nan, np.inf, "7", None])
def test_a_penalty_that_cannot_be_is_refused(log, x, reg):
    with pytest.raises(InputError, match=facts("Features", "reg", repr(reg))):
        Features(x, reg=reg).fit(log)
