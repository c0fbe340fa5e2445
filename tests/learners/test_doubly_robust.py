"""DR and RelMF: by law, right if p or r̃ is right, the dense grid as oracle, files, and what they refuse."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import openloop as ol
from openloop.core.feedback import Feedback
from openloop.core.propensities import Propensities
from openloop.data.simulate import World, low_rank
from openloop.errors import AlignmentError, InputError, UndefinedError
from openloop.learners import DR, MF, Bias, Recalibrated, RelMF, Stack
from openloop.learners.base import FactorLearner
from openloop.learners.crossing import for_rows
from openloop.learners.doubly_robust import VARIANTS, WEIGHTS, imputation_weights, row_terms, tilt
from openloop.learners.imputing import cross_imputed
from tests.contracts import PersonalRecommenderContract
from tests.facts import facts

U, I = 40, 30
EXACT = {"tol": 1e-12, "iterations": 3000}
BOTH_VARIANTS = pytest.mark.parametrize("variant", VARIANTS)


class TestDR(PersonalRecommenderContract):
    weighted = False

    def make(self):
        return DR(2, 0.5, imputation=MF(2, 0.5))

    def log(self):
        return replace(super().log(), share=np.ones(1))  # what is not on the diagonal is all there is


class TestAsCoded(TestDR):
    def make(self):
        return DR(2, 0.5, imputation=MF(2, 0.5), variant="as_coded")


class TestRelMF(PersonalRecommenderContract):
    weighted = False
    implicit = True

    def make(self):
        return RelMF(2, 0.05)

    def log(self):
        return replace(super().log(), share=np.ones(1))


class Fixed(FactorLearner):
    """Predicts scale·Y + shift, whatever the log; Y is of rank 1."""

    def __init__(self, left, right, shift=0.0):
        self.left, self.right, self.shift = left, right, shift

    def fit(self, feedback, sample_weight=None, propensities=None):
        self.user_factors_, self.item_factors_ = np.asarray(self.left), np.asarray(self.right)
        self.user_bias_, self.item_bias_ = np.zeros(feedback.n_users), np.zeros(feedback.n_items)
        self.intercept_ = self.shift
        return self._remember(feedback)


def world(seed=0) -> tuple[Feedback, np.ndarray]:
    """A log of about a third of the cells, people rating what they like, and p of all cells."""
    rng = np.random.default_rng(seed)
    Y = np.clip(np.rint(3 + rng.normal(size=(U, 2)) @ rng.normal(size=(2, I))), 1, 5)
    P = 0.08 * 1.7 ** (Y - 1) * rng.uniform(0.6, 1, (U, I))
    user, item = np.nonzero(rng.random((U, I)) < P)
    return Feedback.from_arrays(user, item, Y[user, item], users=U, items=I), P


@pytest.fixture(scope="module")
def log() -> Feedback:
    return world()[0]


@pytest.fixture(scope="module")
def P() -> np.ndarray:
    return world()[1]


def everyone(model) -> np.ndarray:
    return model.scores(np.arange(len(model.users_)))


def grid(log: Feedback, values) -> np.ndarray:
    out = np.zeros((log.n_users, log.n_items))
    out[log.user, log.item] = values
    return out


def imputed(model: DR, log: Feedback, P) -> np.ndarray:
    """r̃ of all cells, as the model saw it."""
    v = imputation_weights(model, P[log.user, log.item])
    return cross_imputed(model, model.imputation, log, v, np.random.default_rng(model.rng))[0].dense()


def loss(f, log: Feedback, P, R, variant="textbook") -> float:
    """Σ_D ê + Σ_O (e − ê)/p, or Σ_D ê + Σ_O e/p − Σ_O ê as coded, cell by cell."""
    O, Y = grid(log, 1.0), grid(log, log.rating)
    e, guess = (f - Y) ** 2, (f - R) ** 2
    return float(np.sum(guess + O * (e / P - (guess if variant == "as_coded" else guess / P))))


def targeted_loss(f, log: Feedback, P, R, variant="textbook") -> float:
    """The same with ê + ε(1/p − 1) for ê, ε fitted at this f."""
    O, Y, c = grid(log, 1.0), grid(log, log.rating), 1 / P - 1
    e, guess = (f - Y) ** 2, (f - R) ** 2
    guess = guess + np.sum(O * (e - guess) * c) / np.sum(O * c**2) * c
    return float(np.sum(guess + O * (e / P - (guess if variant == "as_coded" else guess / P))))


def penalties(model) -> float:
    own, offsets = model.reg, model.reg if model.bias_reg is None else model.bias_reg
    return own * (np.sum(model.user_factors_**2) + np.sum(model.item_factors_**2)) + offsets * (
        np.sum(model.user_bias_**2) + np.sum(model.item_bias_**2)
    )


def two_guesses(R) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(9)
    return R + rng.normal(0, 0.5, R.shape), 0.5 * R + rng.normal(0, 0.5, R.shape)


# --- the objective


def terms(log, P, R, variant="textbook", targeted=False):
    p, r = P[log.user, log.item], R[log.user, log.item]
    extra = tilt(p, 1 / p, np.sum(1 / P - 1) if targeted else None, variant)
    return row_terms(log.rating.astype(float), r, 1 / p, extra, variant)


def low_rank_plus_rows(f, log, R, t) -> float:
    own = f[log.user, log.item]
    return float(np.sum((f - R) ** 2) + np.sum(t.v * own**2 - 2 * t.s * own) + t.constant)


def test_the_loss_is_least_squares_on_the_pseudo_outcome(log, P):
    R = Bias().fit(log).scores(np.arange(U))
    M = R + grid(log, (log.rating - R[log.user, log.item]) / P[log.user, log.item])
    f, g = two_guesses(R)
    assert loss(f, log, P, R) - loss(g, log, P, R) == pytest.approx(np.sum((f - M) ** 2) - np.sum((g - M) ** 2))
    assert low_rank_plus_rows(f, log, R, terms(log, P, R)) == pytest.approx(np.sum((f - M) ** 2))


def test_as_coded_weighs_what_was_seen_by_1_over_p_and_imputes_the_rest(log, P):
    R = Bias().fit(log).scores(np.arange(U))
    f = two_guesses(R)[0]
    O = grid(log, 1.0) > 0
    by_hand = np.sum(((f - grid(log, log.rating)) ** 2 / P)[O]) + np.sum(((f - R) ** 2)[~O])
    assert loss(f, log, P, R, "as_coded") == pytest.approx(by_hand)
    assert low_rank_plus_rows(f, log, R, terms(log, P, R, "as_coded")) == pytest.approx(by_hand)


@BOTH_VARIANTS
def test_targeting_is_a_linear_calibration_of_the_weights(log, P, variant):
    R = Bias().fit(log).scores(np.arange(U))
    t = terms(log, P, R, variant, targeted=True)
    f, g = two_guesses(R)
    direct = targeted_loss(f, log, P, R, variant) - targeted_loss(g, log, P, R, variant)
    assert low_rank_plus_rows(f, log, R, t) - low_rank_plus_rows(g, log, R, t) == pytest.approx(direct)
    assert direct != pytest.approx(loss(f, log, P, R, variant) - loss(g, log, P, R, variant), rel=1e-3)


def test_targeted_weights_count_all_cells(log, P):
    # What linear calibration is for: Σ_O w′c = Σ_D c, with c = 1/p − 1.
    p = P[log.user, log.item]
    w = 1 / p + tilt(p, 1 / p, np.sum(1 / P - 1), "textbook")
    assert np.sum(w * (1 / p - 1)) == pytest.approx(np.sum(1 / P - 1))


@BOTH_VARIANTS
@pytest.mark.parametrize("targeted", [False, True], ids=["plain", "targeted"])
@pytest.mark.parametrize("bias_reg", [None, 0.5])
def test_the_history_ends_with_the_objective_of_what_was_learned(log, P, variant, targeted, bias_reg):
    model = DR(4, 3.0, bias_reg=bias_reg, imputation=MF(3, 2.0), variant=variant, targeted=targeted, **EXACT)
    model.fit(log, propensities=P)
    f, R = everyone(model), imputed(model, log, P)
    t = terms(log, P, R, variant, targeted=targeted)
    rho = len(log) / (U * I)
    assert model.history_[-1] == pytest.approx(rho * low_rank_plus_rows(f, log, R, t) + penalties(model), rel=1e-7)
    assert np.max(np.diff(model.history_)) <= 0


@BOTH_VARIANTS
def test_the_slope_is_0_at_what_was_learned(log, P, variant):
    model = DR(4, 3.0, imputation=MF(3, 2.0), variant=variant, **EXACT).fit(log, propensities=P)
    R, O = imputed(model, log, P), grid(log, 1.0)
    w, rest = O / P, 1 - O
    f, Y = everyone(model), grid(log, log.rating)
    half = (f - R) + w * (R - Y) if variant == "textbook" else w * (f - Y) + rest * (f - R)
    half *= len(log) / (U * I)
    np.testing.assert_allclose(half @ model.item_factors_ + 3 * model.user_factors_, 0, atol=2e-3)
    np.testing.assert_allclose(half.sum(axis=0) + 3 * model.item_bias_, 0, atol=2e-3)


def test_where_the_imputation_is_the_model_it_is_weighted_mf(log, P):
    # r̃ = f: with weights of mean 1 the slope of ρΣ_D (f − m)² is that of Σ_O w (f − r)², so MF-IPS does not move.
    mf = MF(4, 3.0, dtype="float64", solver="cholesky", **EXACT).fit(log, propensities=P)
    ratio = U * I / np.sum(1 / P[log.user, log.item])
    fixed = Fixed(
        np.column_stack([mf.user_factors_, mf.user_bias_, np.ones(U)]),
        np.column_stack([mf.item_factors_, np.ones(I), mf.item_bias_]), mf.intercept_,
    )  # fmt: skip
    t = terms(log, P / ratio, everyone(fixed.fit(log)))
    f, slope = everyone(mf), grid(log, -t.s) * len(log) / (U * I)
    np.testing.assert_allclose(slope @ mf.item_factors_ + 3 * mf.user_factors_, 0, atol=1e-4)
    np.testing.assert_allclose(slope.sum(axis=1) + 3 * mf.user_bias_, 0, atol=1e-4)
    assert np.abs(f).max() > 3


def test_of_a_complete_log_it_is_mf():
    rng = np.random.default_rng(3)
    Y = low_rank(15, 12, 2, rng=rng)
    full = World(ratings=Y.astype(np.float32), propensities=np.ones(Y.shape)).everything()
    model = DR(3, 2.0, **EXACT).fit(full)
    same = MF(3, 2.0, dtype="float64", solver="cholesky", **EXACT).fit(full)
    np.testing.assert_allclose(everyone(model), everyone(same), atol=1e-5)
    assert model.history_[-1] == pytest.approx(same.history_[-1], rel=1e-9)


# --- doubly robust in fact


def truth(seed=5) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    left, right = rng.uniform(1, 2.2, (U, 1)), rng.uniform(1, 2.2, (I, 1))
    Y = left @ right.T
    return left, right, Y, np.clip(0.05 * Y**1.5, 0.02, 0.9)


RIGHT_P = pytest.mark.parametrize("right_p", [True, False], ids=["p right", "p wrong"])
RIGHT_R = pytest.mark.parametrize("right_r", [True, False], ids=["r right", "r wrong"])


@RIGHT_P
@RIGHT_R
def test_it_is_right_where_p_or_the_imputation_is(right_p, right_r):
    left, right, Y, P = truth()
    given = P if right_p else np.full_like(P, P.mean())
    imputation = Fixed(left, right) if right_r else Fixed(0.6 * left, right, 2.0)
    model = DR(0, 1e9, imputation=imputation, iterations=1, tol=1.0)
    rng, levels, slopes = np.random.default_rng(7), [], []
    h = (right - right.mean())[:, 0]  # one direction of the gradient Σ_D (f − m)h
    R = everyone(imputation.fit(Feedback.from_arrays([0], [0], [1], users=U, items=I)))
    for _ in range(60):
        user, item = np.nonzero(rng.random(P.shape) < P)
        rating = (Y + rng.normal(0, 0.5, Y.shape))[user, item]  # the right r̃ is the mean, not the rating itself
        drawn = Feedback.from_arrays(user, item, rating, users=U, items=I)
        levels.append(model.fit(drawn, propensities=given).intercept_)  # the mean of m
        m = R + grid(drawn, terms(drawn, given, R).s)
        slopes.append(np.mean(m * h))
    for found, wanted in ((levels, Y.mean()), (slopes, np.mean(Y * h))):
        z = (np.mean(found) - wanted) / (np.std(found) / np.sqrt(len(found)))
        assert abs(z) < 4 if right_p or right_r else abs(z) > 10


def test_cross_fitting_keeps_it_right_with_an_imputation_fitted_on_the_log():
    _, _, Y, P = truth()
    rng, levels = np.random.default_rng(8), []
    model = DR(0, 1e9, imputation=Bias(1.0), iterations=1, tol=1.0)
    for _ in range(40):
        user, item = np.nonzero(rng.random(P.shape) < P)
        drawn = Feedback.from_arrays(user, item, Y[user, item], users=U, items=I)
        levels.append(model.fit(drawn, propensities=P).intercept_)
    assert abs(np.mean(levels) - Y.mean()) < 4 * np.std(levels) / np.sqrt(len(levels))


# --- weights of the imputation


def test_weights_of_the_imputation_by_hand():
    p = np.array([0.5, 0.25])
    for name, wanted in {"dr-jl": [2, 4], "mrdr": [2, 12], "dr-bias": [2, 36]}.items():
        v = imputation_weights(DR(weights=name), p)
        np.testing.assert_allclose(v, np.array(wanted) / np.mean(wanted))
    np.testing.assert_allclose(imputation_weights(DR(weights="dr-mse", mix=0.25), p), [
        0.25 * 2 / 19 + 0.75 * 2 / 7, 0.25 * 36 / 19 + 0.75 * 12 / 7,
    ])  # fmt: skip


def test_a_row_that_was_certain_to_be_seen_weighs_nearly_nothing():
    v = imputation_weights(DR(weights="mrdr"), np.array([1.0, 0.5]))
    assert 0 < v[0] < 1e-6
    with pytest.raises(UndefinedError, match=facts("DR", "weights", "dr-jl")):
        imputation_weights(DR(weights="mrdr"), np.ones(3))


@pytest.mark.parametrize("name", WEIGHTS)
def test_every_kind_of_weights_gives_another_model(log, P, name):
    fits = {n: everyone(DR(2, weights=n, imputation=Bias(1.0)).fit(log, propensities=P)) for n in {name, "dr-jl"}}
    assert np.array_equal(fits[name], fits["dr-jl"]) == (name == "dr-jl")


# --- p


def test_p_of_the_log_of_the_rows_and_of_all_cells_is_the_same(log, P):
    p = P[log.user, log.item]
    fits = [
        DR(2).fit(log, propensities=P),
        DR(2).fit(log, propensities=p),
        DR(2).fit(log, propensities=Propensities(values=p)),
        DR(2).fit(log, sample_weight=Propensities(values=p)),
        DR(2).fit(replace(log, propensity=p)),
        DR(2).fit(log, propensities=ol.propensity.Known(P).fit(log)),
    ]
    for other in fits[1:]:
        np.testing.assert_array_equal(everyone(other), everyone(fits[0]))


def test_a_part_of_share_s_observes_a_cell_with_p_s(log, P):
    part = replace(log, share=np.full(1, 0.5))
    for targeted in (False, True):
        model = DR(2, targeted=targeted)
        halved = everyone(model.fit(log, propensities=P / 2))
        np.testing.assert_allclose(everyone(model.fit(part, propensities=P)), halved, rtol=1e-9)


@pytest.mark.parametrize("targeted", [False, True], ids=["plain", "targeted"])
def test_clip_is_a_floor_of_p(log, P, targeted):
    cut = DR(2, clip=5, targeted=targeted).fit(log, propensities=P)
    floored = DR(2, targeted=targeted).fit(log, propensities=np.maximum(P, 0.2))
    np.testing.assert_array_equal(everyone(cut), everyone(floored))


def test_the_log_s_own_weight_multiplies(log, P):
    own = np.random.default_rng(0).uniform(0.5, 2, len(log))
    found = DR(0, 1e9, imputation=Fixed(np.zeros((U, 1)), np.zeros((I, 1)))).fit(
        replace(log, weight=own), propensities=P
    )
    assert found.intercept_ == pytest.approx(np.sum(own / own.mean() * log.rating / P[log.user, log.item]) / (U * I))


def test_the_p_of_a_fold_is_left_alone_but_its_penalties_are_not():
    copy = for_rows(DR(reg=8.0, bias_reg=4.0, imputation=MF(reg=2.0)), 0.5)
    assert (copy.reg, copy.bias_reg, copy.imputation.reg) == (4.0, 2.0, 1.0)


# --- the manner


def test_bits_do_not_depend_on_threads(log, P, monkeypatch):
    monkeypatch.setattr("openloop.kernels.least_squares.PART_ROWS", 50)
    a, b = (DR(3, variant="as_coded", threads=n).fit(log, propensities=P) for n in (1, 3))
    np.testing.assert_array_equal(everyone(a), everyone(b))


@pytest.mark.parametrize(
    "make", [lambda: DR(3, imputation=MF(2, rng=4), clip=9.0), lambda: RelMF(3)], ids=["DR", "RelMF"]
)
def test_a_file_gives_the_model_back_bit_for_bit(make, log, P, tmp_path):
    model = make().fit(log, propensities=P)
    model.save(tmp_path / "m.safetensors")
    back = ol.load(tmp_path / "m.safetensors")
    np.testing.assert_array_equal(everyone(back), everyone(model))
    assert type(back) is type(model)
    assert repr(back) == repr(model)
    assert back.notes_ == model.notes_
    np.testing.assert_array_equal(everyone(back.fit(log, propensities=P)), everyone(model))


def test_predictions_beyond_the_ratings_are_counted(log, P):
    wild = DR(10, 0.01).fit(log, propensities=P)
    f = wild.predict(log.user, log.item)
    out = int(np.sum((f < 1) | (f > 5)))
    assert out > 10
    assert [note for note in wild.notes_ if f"{out:,} of {len(log):,}" in note and "1 … 5" in note]
    tame = DR(0, 1e9, imputation=Bias(1e9)).fit(log, propensities=P)
    assert not [note for note in tame.notes_ if "outside" in note]


def test_a_fit_cut_short_says_so(log, P):
    assert any("2 sweeps" in note for note in DR(3, 0.1, iterations=2, tol=0).fit(log, propensities=P).notes_)


# --- what DR refuses


def test_without_p_there_is_no_fit(log):
    for model in (DR(), RelMF()):
        with pytest.raises(UndefinedError, match=facts(type(model).__name__, "propensities=", "ol.propensity")):
            model.fit(log)


def test_weights_alone_are_refused(log, P):
    w = 1 / P[log.user, log.item]
    with pytest.raises(InputError, match=facts("DR", "sample_weight", "propensities=")):
        DR().fit(log, sample_weight=w)
    with pytest.raises(InputError, match=facts("DR", "sample_weight", "propensities=")):
        DR().fit(log, sample_weight=w, propensities=P)


def test_p_of_another_feedback_is_refused(log, P):
    other = world(1)[0]
    p = ol.propensity.Uniform().fit(other).predict(other)
    with pytest.raises(AlignmentError, match="Feedback"):
        DR(2).fit(log, propensities=p)


def test_a_part_without_a_share_is_refused(log, P):
    with pytest.raises(UndefinedError, match=facts("DR", "share", "time")):
        DR(2).fit(replace(log, share=None), propensities=P)


def test_targeting_needs_p_of_all_cells(log, P):
    p = P[log.user, log.item]
    for given in (p, Propensities(values=p)):
        with pytest.raises(UndefinedError, match=facts("DR", "targeted=True", type(given).__name__, "matrix()")):
            DR(2, targeted=True).fit(log, propensities=given)
    uneven = replace(log, share=np.where(log.user < 3, 0.5, 0.25))
    with pytest.raises(UndefinedError, match=facts("DR", "targeted=True", "share", "0.25", "0.5")):
        DR(2, targeted=True).fit(uneven, propensities=P)


@pytest.mark.parametrize(("given", "told"), [
    ({"weights": "mdrd"}, ("weights", "'mdrd'", "mrdr")),
    ({"variant": "as-coded"}, ("variant", "'as-coded'", "as_coded")),
    ({"mix": 2}, ("mix", 2)),
    ({"clip": 0.5}, ("clip", 0.5)),
    ({"folds": 1}, ("folds", 1)),
    ({"factors": 31}, ("factors", 31, 30)),
    ({"reg": -1}, ("reg", -1)),
    ({"imputation": MF}, ("imputation", "MF")),
    ({"imputation": ol.learners.Popularity()}, ("imputation", "Popularity", "MF()")),
    ({"imputation": RelMF()}, ("imputation", "RelMF", "MF()")),
])  # fmt: skip
def test_it_refuses(log, P, given, told):
    with pytest.raises(InputError, match=facts("DR", *told)):
        DR(**{"factors": 2, **given}).fit(log, propensities=P)


def test_an_imputation_that_bends_its_predictions_is_refused(log, P):
    with pytest.raises(InputError, match=facts("DR", "imputation", "Recalibrated")):
        DR(2, imputation=Recalibrated(Bias(), form="isotonic")).fit(log, propensities=P)
    labels = replace(log, rating=(log.rating > 3).astype(np.float32))
    with pytest.raises(InputError, match=facts("DR", "imputation", "MF", "logistic")):
        DR(2, imputation=MF(2, loss="logistic")).fit(labels, propensities=P)


def test_a_combination_of_factor_models_imputes(log, P):
    model = DR(2, imputation=Stack([Bias(), MF(2)])).fit(log, propensities=P)
    assert np.isfinite(everyone(model)).all()


# --- RelMF


def test_relmf_is_least_squares_on_clicks_over_p(log, P):
    model = RelMF(3, 0.5, floor=0.2, threshold=4, **EXACT).fit(log, propensities=P)
    keep = log.rating >= 4
    clicks = log.take(keep)
    M = grid(clicks, 1 / np.maximum(P[clicks.user, clicks.item], 0.2))
    rho = len(clicks) / (U * I)
    assert model.intercept_ == pytest.approx(M.mean())
    assert model.history_[-1] == pytest.approx(rho * np.sum((everyone(model) - M) ** 2) + penalties(model), rel=1e-7)
    np.testing.assert_allclose(
        rho * (everyone(model) - M) @ model.item_factors_ + 0.5 * model.user_factors_, 0, atol=1e-3
    )
    assert f"{len(clicks):,} of {len(log):,} rows are positives" in model.notes_


def test_relmf_finds_how_many_cells_would_be_liked():
    rng = np.random.default_rng(2)
    liking, shown = rng.uniform(0.1, 0.9, (U, I)), rng.uniform(0.15, 0.9, (U, I))
    levels = []
    for _ in range(60):
        user, item = np.nonzero((rng.random((U, I)) < shown) & (rng.random((U, I)) < liking))
        clicks = Feedback.from_arrays(user, item, np.ones(len(user)), users=U, items=I, positives=True)
        levels.append(RelMF(0, iterations=1, tol=1.0).fit(clicks, propensities=shown).intercept_)
    assert abs(np.mean(levels) - liking.mean()) < 4 * np.std(levels) / np.sqrt(len(levels))


def test_relmf_refuses_p_that_were_fitted_on_clicks(log):
    clicks = replace(log, positives=True)
    popular = ol.propensity.Popularity().fit(clicks)
    with pytest.raises(UndefinedError, match=facts("RelMF", "shown", "liked")):
        RelMF(2).fit(clicks, propensities=popular)


@pytest.mark.parametrize(("given", "told"), [
    ({"floor": 1.5}, ("floor", 1.5)),
    ({"threshold": 9}, ("threshold", 9, 5)),
    ({"factors": 31}, ("factors", 31, 30)),
])  # fmt: skip
def test_relmf_refuses(log, P, given, told):
    with pytest.raises(InputError, match=facts("RelMF", *told)):
        RelMF(**{"factors": 2, **given}).fit(log, propensities=P)


# --- selected


@pytest.mark.parametrize("targeted", [False, True], ids=["plain", "targeted"])
def test_a_fold_is_fitted_with_its_own_p_and_penalty(log, P, targeted):
    learner = DR(2, imputation=Bias(2.0), targeted=targeted, threads=1)
    found = ol.select(learner, log, P, grid={"reg": [20.0]}, metric="mse", estimator="snips", folds=2, rng=3)
    for k, (train, held_out) in enumerate(ol.folds(log, 2, 3), 1):
        share = len(train) / len(log)
        assert train.share[0] == pytest.approx(share)
        by_hand = DR(2, 20 * share, imputation=Bias(2 * share), targeted=targeted).fit(train, propensities=P)
        w = 1 / P[held_out.user, held_out.item]
        error = (by_hand.predict(held_out.user, held_out.item) - held_out.rating) ** 2
        assert found.table[f"fold_{k}"][0] == pytest.approx(np.average(error, weights=w), rel=1e-6)
