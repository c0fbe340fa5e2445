"""WMF: its objective over all cells, a dense solution of it, and what it refuses."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

import openloop as ol
from openloop.core.feedback import Feedback
from openloop.core.propensities import Propensities
from openloop.data.simulate import checkerboard
from openloop.errors import AlignmentError, DivergenceError, EmptyError, InputError, RatingError
from openloop.kernels import least_squares
from openloop.learners import WMF, Popularity
from tests.contracts import PersonalRecommenderContract
from tests.facts import facts

EXACT = {"tol": 1e-9, "iterations": 3000}
TARGETS = pytest.mark.parametrize("target", ["one", "rating"])


class TestWMF(PersonalRecommenderContract):
    implicit = True

    def make(self):
        return WMF(2)


class TestRatedWMF(PersonalRecommenderContract):
    def log(self):
        shown = super().log()
        return shown.take(shown.rating == 5)

    def make(self):
        return WMF(2, target="rating")


def groups(users=40, items=30, seed=0) -> Feedback:
    """Two kinds of users, who like two kinds of items."""
    rng = np.random.default_rng(seed)
    taste = np.where(np.arange(users)[:, None] % 2 == np.arange(items) % 2, 0.5, 0.05)
    user, item = np.nonzero(rng.random((users, items)) < taste)
    return Feedback.from_arrays(user, item, rng.integers(4, 9, len(user)), users=users, items=items)


@pytest.fixture(scope="module")
def log() -> Feedback:
    return groups()


@pytest.fixture(scope="module")
def w(log) -> np.ndarray:
    return np.random.default_rng(1).gamma(3.0, size=len(log)) + 0.1


def cells(model: WMF, log: Feedback, w=None) -> tuple[np.ndarray, np.ndarray]:
    """C and R of every cell, (U, I)."""
    C, R = np.full((log.n_users, log.n_items), model.rest), np.zeros((log.n_users, log.n_items))
    w = np.ones(len(log)) if w is None else w / w.mean()
    C[log.user, log.item] += (model.positive - model.rest) * w
    R[log.user, log.item] = log.rating if model.target == "rating" else 1
    return C, R


def objective(model: WMF, log: Feedback, w=None) -> float:
    C, R = cells(model, log, w)
    V, W = model.user_factors_.astype(np.float64), model.item_factors_.astype(np.float64)
    return float(np.sum(C * (R - V @ W.T) ** 2) + model.reg * (np.sum(V**2) + np.sum(W**2)))


def dense(model: WMF, log: Feedback, w=None, sweeps=400) -> float:
    """The least objective, by ridge regressions over whole rows and columns of the grid."""
    C, R = cells(model, log, w)
    rng, eye = np.random.default_rng(7), model.reg * np.eye(model.factors)
    V, W = rng.normal(size=(log.n_users, model.factors)), rng.normal(size=(log.n_items, model.factors))
    for _ in range(sweeps):
        V = np.stack([np.linalg.solve(W.T @ (c[:, None] * W) + eye, W.T @ (c * r)) for c, r in zip(C, R, strict=True)])
        W = np.stack(
            [np.linalg.solve(V.T @ (c[:, None] * V) + eye, V.T @ (c * r)) for c, r in zip(C.T, R.T, strict=True)]
        )
    return float(np.sum(C * (R - V @ W.T) ** 2) + model.reg * (np.sum(V**2) + np.sum(W**2)))


def everyone(model: WMF) -> np.ndarray:
    return model.scores(np.arange(len(model.users_)))


# --- by hand


def test_two_users_who_like_an_item_each():
    # R is the identity, C is 1 on it and 0.5 elsewhere; V = W = √s·I with s = 1 - λ, and 2·λ² + 4·λ·s.
    log = Feedback.from_arrays([0, 1], [0, 1], [1, 1])
    model = WMF(2, 0.2, rest=0.5, **EXACT).fit(log)
    np.testing.assert_allclose(everyone(model), 0.8 * np.eye(2), atol=1e-3)
    assert model.history_[-1] == pytest.approx(2 * 0.04 + 4 * 0.2 * 0.8, rel=1e-5)


@pytest.mark.parametrize("rest", [0.0, 0.5])
def test_where_every_cell_was_seen_it_is_a_singular_value_decomposition(rest):
    # Σ (R - S)² + 2λ‖S‖_*: each singular value of R falls by λ, and those below it are gone; no cell is left to `rest`.
    R = np.random.default_rng(0).normal(size=(20, 15))
    user, item = np.indices(R.shape).reshape(2, -1)
    model = WMF(15, 2.0, rest=rest, target="rating", **EXACT).fit(Feedback.from_arrays(user, item, R.ravel()))
    left, values, right = np.linalg.svd(R, full_matrices=False)
    np.testing.assert_allclose(everyone(model), left * np.maximum(values - 2, 0) @ right, atol=5e-3)


# --- by law


@TARGETS
@pytest.mark.parametrize("rest", [0.0, 0.01, 0.3])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_history_is_the_objective_over_all_cells(log, w, target, rest, weighted):
    given = w if weighted else None
    for iterations in (1, 4, 100):
        model = WMF(4, 0.3, rest=rest, target=target, iterations=iterations).fit(log, given)
        assert model.history_[-1] == pytest.approx(objective(model, log, given), rel=1e-4)


@TARGETS
def test_the_objective_never_rises(log, w, target):
    model = WMF(8, 0.5, rest=0.1, target=target, **EXACT).fit(log, w)
    assert len(model.history_) > 10
    assert np.max(np.diff(model.history_)) <= 1e-6 * model.history_[0]


@TARGETS
@pytest.mark.parametrize("weighted", [False, True])
def test_it_ends_where_a_dense_solution_ends(log, w, target, weighted):
    # With more factors than the penalty leaves there is no valley but the lowest.
    given = w if weighted else None
    reg = 2.0 if target == "one" else 8.0
    model = WMF(8, reg, rest=0.2, target=target, **EXACT).fit(log, given)
    assert objective(model, log, given) == pytest.approx(dense(model, log, given), rel=1e-5)


def test_more_confidence_in_what_is_unknown_lowers_its_scores(log):
    unseen = np.ones((log.n_users, log.n_items), bool)
    unseen[log.user, log.item] = False
    low, high = (np.abs(everyone(WMF(5, 0.1, rest=rest).fit(log))[unseen]).mean() for rest in (0.01, 0.5))
    assert high < 0.7 * low


def test_ratings_are_targets_only_where_asked(log):
    doubled = replace(log, rating=2 * log.rating)
    np.testing.assert_array_equal(everyone(WMF(4).fit(doubled)), everyone(WMF(4).fit(log)))
    ones = replace(log, rating=np.ones(len(log), np.float32))
    np.testing.assert_array_equal(everyone(WMF(4, target="rating").fit(ones)), everyone(WMF(4).fit(log)))


def test_a_heavy_row_is_fitted_better(log):
    w = np.ones(len(log))
    w[10] = 100.0
    u, i = log.user[10:11], log.item[10:11]
    error = [abs(float(WMF(3, 1.0).fit(log, weight).predict(u, i)[0]) - 1) for weight in (None, w)]
    assert error[1] < 0.5 * error[0]


def test_propensities_weigh_by_their_inverse(log):
    p = np.random.default_rng(2).uniform(0.1, 1, len(log))
    weighted = WMF(4).fit(log, Propensities(values=p, fingerprint=log.fingerprint))
    np.testing.assert_array_equal(everyone(weighted), everyone(WMF(4).fit(log, 1 / p)))
    with pytest.raises(AlignmentError, match=facts("Propensities", "another Feedback")):
        WMF(4).fit(log, Propensities(values=p, fingerprint=groups(seed=5).fingerprint))


def test_the_number_of_threads_changes_no_bit(log, w, monkeypatch):
    monkeypatch.setattr(least_squares, "PART_ROWS", 50)
    one, two, usual = (WMF(5, threads=n).fit(log, w) for n in (1, 2, None))
    for other in (two, usual):
        np.testing.assert_array_equal(everyone(other), everyone(one))
        np.testing.assert_array_equal(other.history_, one.history_)


def test_another_seed_starts_elsewhere_and_a_generator_is_taken(log):
    zero, again, other = (everyone(WMF(5, iterations=2, rng=rng).fit(log)) for rng in (0, np.random.default_rng(0), 1))
    np.testing.assert_array_equal(zero, again)
    assert not np.array_equal(zero, other)


def test_there_are_no_offsets(log):
    model = WMF(5).fit(log)
    assert not model.user_bias_.any()
    assert not model.item_bias_.any()
    assert model.intercept_ == 0
    np.testing.assert_allclose(everyone(model), model.user_factors_ @ model.item_factors_.T, rtol=1e-6)


def test_a_saved_model_scores_bit_for_bit(log, w, tmp_path):
    model = WMF(4, target="rating").fit(log, w)
    model.save(tmp_path / "wmf.safetensors")
    loaded = ol.load(tmp_path / "wmf.safetensors")
    np.testing.assert_array_equal(everyone(loaded), everyone(model))
    np.testing.assert_array_equal(loaded.history_, model.history_)
    assert loaded.get_params() == model.get_params()


def test_progress_writes_nothing_where_there_is_no_terminal(log, capfd):
    WMF(3, progress=True).fit(log)
    assert capfd.readouterr() == ("", "")


# --- simulation with a known truth


def test_it_finds_the_groups_that_popularity_cannot():
    train, test = ol.split(groups(100, 80), test=0.3, rng=0)
    result = ol.evaluate(
        {"wmf": WMF(4, 0.1).fit(train), "popular": Popularity().fit(train)},
        test, metrics=["recall@10"], estimators=["naive"], exclude=train, threshold=4,
    )  # fmt: skip
    wmf, popular = (result[name, "recall@10", "naive"].value for name in ("wmf", "popular"))
    assert wmf > 1.3 * popular


# --- difficult data, and what it refuses


def test_who_has_no_like_is_predicted_by_nothing(log):
    lonely = Feedback.from_arrays(log.user, log.item, log.rating, users=log.n_users + 1, items=log.n_items + 2)
    model = WMF(4).fit(lonely)
    rows, users, items = model.notes_
    assert re.search(facts("306 of 306", "positives"), rows)
    assert re.search(facts("1 user", "no positive", 0), users)
    assert re.search(facts("2 items", "no positive", 0), items)
    assert not model.scores([log.n_users]).any()
    assert not everyone(model)[:, -2:].any()


def test_one_item_only():
    scores = everyone(WMF(1).fit(Feedback.from_arrays([0, 2], [0, 0], [1, 1], users=3)))
    np.testing.assert_allclose(scores.ravel(), [1, 0, 1], atol=0.05)


def test_a_fit_that_was_cut_short_says_so(log):
    model = WMF(4, iterations=2).fit(log)
    _, note = model.notes_
    assert re.search(facts("2 sweeps", "tol=1e-05"), note)


@pytest.mark.parametrize("spread", [20, 100])
def test_weights_too_uneven_are_an_error(log, spread):
    with pytest.raises(DivergenceError, match=facts("WMF", "objective", "uneven weights")):
        WMF(4).fit(log, np.exp(spread * np.random.default_rng(1).normal(size=len(log))))


def test_ratings_beyond_single_precision_are_an_error(log):
    with pytest.raises(DivergenceError, match=facts("WMF", "objective", "smaller ratings")):
        WMF(4, target="rating").fit(replace(log, rating=log.rating * np.float32(1e30)))


def test_where_nothing_was_liked_there_is_nothing_to_learn(log):
    nothing = replace(log, rating=np.zeros(len(log), np.float32))
    with pytest.raises(RatingError, match=facts("WMF", 0, 'target="one"')):
        WMF(4, target="rating").fit(nothing)
    assert everyone(WMF(4, threshold=0).fit(nothing)).any()


@pytest.mark.parametrize(
    ("name", "value", "rule"),
    [
        ("positive", 0.01, "rest"),
        ("positive", 0, "above 0"),
        ("positive", np.inf, "finite"),
        ("rest", -0.1, 0),
        ("rest", np.nan, 0),
        ("reg", -1, 0),
        ("factors", 0, 1),
        ("factors", 31, 30),
        ("target", "ratings", "'rating'"),
        ("target", None, "'one'"),
        ("iterations", 0, 1),
        ("tol", np.nan, 0),
        ("threads", 0, 1),
        ("rng", "0", "rng=0"),
    ],
)
def test_a_parameter_that_cannot_be_is_refused(log, name, value, rule):
    with pytest.raises(InputError, match=facts("WMF", name, repr(value), rule)):
        WMF(**({"factors": 3} | {name: value})).fit(log)


def test_a_positive_weighs_more_than_the_rest(log):
    with pytest.raises(InputError, match=facts("WMF", "positive", "rest", 0.5, 0.7)):
        WMF(3, positive=0.5, rest=0.7).fit(log)


@pytest.mark.parametrize("bad", [0.0, -1.0, np.nan])
def test_weights_that_are_not_positive_are_refused(log, bad):
    w = np.ones(len(log))
    w[5] = bad
    with pytest.raises(InputError, match=facts("WMF", "sample_weight", f"1 of {len(log):,}", bad, "index 5")):
        WMF(3).fit(log, w)


def test_a_threshold_leaves_the_other_rows_among_the_unseen():
    log = checkerboard(20).everything()
    liked = log.take(log.rating >= 4)
    model = WMF(3, threshold=4).fit(log, np.where(log.rating >= 4, 2.0, 7.0))
    np.testing.assert_array_equal(model.scores([0, 5]), WMF(3).fit(liked).scores([0, 5]))
    with pytest.raises(EmptyError, match=facts("WMF", 6, 5, "threshold=")):
        WMF(3, threshold=6).fit(log)
