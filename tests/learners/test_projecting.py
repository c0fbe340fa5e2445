"""MF(solver="projected"): MF's optimum, one algorithm on every kind of rows, checkpoints, and what it refuses."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from openloop.core.feedback import Feedback
from openloop.errors import ColumnError, InputError
from openloop.learners import MF
from openloop.learners.blocks import user_blocks
from tests.engines import EAGER, converter
from tests.facts import facts
from tests.learners.projected_logs import COLUMNS, as_frame, small_log


@pytest.mark.parametrize("bias_reg", [None, 0.5, 0.0])
def test_it_ends_at_the_optimum_of_alternating_least_squares(bias_reg):
    log, w = small_log()
    exact = {"bias_reg": bias_reg, "tol": 1e-12, "iterations": 3000, "dtype": "float64"}
    als, projected = (MF(3, 4.0, solver=s, **exact).fit(log, sample_weight=w) for s in ("cholesky", "projected"))
    assert projected.history_[-1] == pytest.approx(als.history_[-1], rel=1e-6)
    assert projected.intercept_ == pytest.approx(als.intercept_, abs=1e-3)


@pytest.mark.parametrize("tol", [1e-4, 1e-5])
@pytest.mark.parametrize(("factors", "reg"), [(8, 3.0), (16, 2.0)])
def test_it_is_as_good_as_mf_at_the_same_tolerance(factors, reg, tol):
    log, w = small_log(users=800, items=250, share=0.1, factors=8)
    als, projected = (MF(factors, reg, solver=s, tol=tol).fit(log, sample_weight=w) for s in ("cg", "projected"))
    assert projected.history_[-1] <= (1 + 1e-4) * als.history_[-1]


def test_users_are_solved_where_weights_are_uneven_and_the_penalty_is_small():
    rng = np.random.default_rng(0)
    u, i = np.nonzero(rng.random((100, 80)) < 0.5)
    y = 3 + np.sum(rng.normal(0, 1, (100, 5))[u] * rng.normal(0, 0.5, (80, 5))[i], axis=1) + rng.normal(0, 0.5, len(u))
    log, w = Feedback.from_arrays(u, i, y.astype(np.float32)), np.exp(rng.normal(0, 2, len(u)))
    als, projected = (MF(40, 0.1, solver=s, iterations=300).fit(log, sample_weight=w) for s in ("cg", "projected"))
    assert projected.history_[-1] <= (1 + 3e-4) * als.history_[-1]
    Q = np.column_stack([projected.item_factors_, np.ones(80)]).astype(np.float64)
    v = w / w.mean()
    for a in range(5):  # her vector is the solution of her normal equations
        own = u == a
        A = Q[i[own]]
        e = log.rating[own] - projected.intercept_ - projected.item_bias_[i[own]]
        p = np.linalg.solve((A * v[own, None]).T @ A + 0.1 * np.eye(41), (A * v[own, None]).T @ e)
        np.testing.assert_allclose(Q @ np.append(projected.user_factors_[a], projected.user_bias_[a]), Q @ p, atol=0.01)


@pytest.mark.parametrize("engine", EAGER)
def test_rows_of_every_engine_give_the_bits_of_feedback(engine, monkeypatch):
    monkeypatch.setattr(user_blocks, "BLOCK_ROWS", 40)  # many blocks: c and the weights' scale are sums over them, too
    monkeypatch.setattr(user_blocks, "ROWS_PER_ITEM", 1)
    log, w = small_log()
    memory = MF(3, 2.0, solver="projected", iterations=15).fit(log, sample_weight=w)
    frame = MF(3, 2.0, solver="projected", iterations=15).fit(converter(engine)(as_frame(log, w)), **COLUMNS)
    assert np.array_equal(frame.item_factors_, memory.item_factors_)
    assert np.array_equal(frame.item_bias_, memory.item_bias_)
    assert (frame.intercept_, frame.notes_) == (memory.intercept_, memory.notes_)


def test_in_double_precision_they_agree_to_rounding():
    log, w = small_log()  # weights in memory were divided by their mean before
    settings = {"solver": "projected", "iterations": 15, "dtype": "float64"}
    memory, frame = (
        MF(3, 2.0, **settings).fit(log, sample_weight=w),
        MF(3, 2.0, **settings).fit(as_frame(log, w), **COLUMNS),
    )
    np.testing.assert_allclose(frame.item_factors_, memory.item_factors_, rtol=1e-10, atol=1e-12)


def test_propensities_are_weights_of_1_over_p():
    log, w = small_log()
    frame = as_frame(log, w)
    by_p = MF(2, solver="projected").fit(frame, propensities="p", user="uid", item="sku", rating="stars")
    by_w = MF(2, solver="projected").fit(log, sample_weight=1 + w)
    np.testing.assert_allclose(by_p.item_factors_, by_w.item_factors_, atol=1e-5)


def test_free_offsets_are_centred_on_frames_as_in_memory():
    log, w = small_log()
    settings = {"bias_reg": 0.0, "tol": 1e-10, "dtype": "float64"}
    memory = MF(2, 3.0, solver="projected", **settings).fit(log, sample_weight=w)
    frame = MF(2, 3.0, solver="projected", **settings).fit(as_frame(log, w), **COLUMNS).to_model()
    assert frame.intercept_ == pytest.approx(memory.intercept_, abs=1e-6)
    np.testing.assert_allclose(frame.scores(np.arange(60)), memory.scores(np.arange(60)), atol=1e-5)


def test_bits_do_not_depend_on_threads(monkeypatch):
    monkeypatch.setattr(user_blocks, "BLOCK_ROWS", 40)
    monkeypatch.setattr(user_blocks, "ROWS_PER_ITEM", 1)
    log, w = small_log()
    one, many = (MF(3, solver="projected", threads=n).fit(log, sample_weight=w) for n in (1, 4))
    assert np.array_equal(one.item_factors_, many.item_factors_)
    assert np.array_equal(one.user_factors_, many.user_factors_)
    assert np.array_equal(one.history_, many.history_)


@pytest.mark.parametrize("kind", ["feedback", "frame"])
def test_an_interrupted_fit_goes_on_with_the_same_bits(tmp_path, kind):
    log, w = small_log()
    given = (log, {"sample_weight": w}) if kind == "feedback" else (as_frame(log, w), COLUMNS)
    path = tmp_path / "fit.npz"

    def fit(iterations, checkpoint):
        model = MF(3, solver="projected", iterations=iterations, checkpoint=checkpoint)
        return model.fit(given[0], **given[1])

    whole = fit(200, None)
    short = fit(4, path)
    assert len(short.history_) == 4
    again = fit(200, path)
    assert np.array_equal(again.item_factors_, whole.item_factors_)
    assert np.array_equal(again.history_, whole.history_)
    ended = fit(200, path)  # nothing is left to do
    assert np.array_equal(ended.item_factors_, whole.item_factors_)
    assert np.array_equal(ended.history_, whole.history_)


def test_a_checkpoint_of_another_fit_is_refused(tmp_path):
    log, w = small_log()
    path = tmp_path / "fit.npz"
    MF(3, solver="projected", iterations=2, checkpoint=path).fit(log)
    for other, weights in ((MF(2, solver="projected", checkpoint=path), None), (MF(3, solver="projected"), w)):
        other.checkpoint = path
        with pytest.raises(InputError, match=facts("checkpoint", "fit.npz")):
            other.fit(log, sample_weight=weights)
    turned = Feedback.from_arrays(log.user, log.item, log.rating[::-1])  # as many rows, the same mean
    with pytest.raises(InputError, match=facts("checkpoint", "fit.npz")):
        MF(3, solver="projected", checkpoint=path).fit(turned)


@pytest.mark.parametrize("loss", ["absolute", "logistic"])
def test_other_losses_are_refused(loss):
    log, _ = small_log()
    with pytest.raises(InputError, match=facts("projected", "loss", f"'{loss}'")):
        MF(2, solver="projected", loss=loss).fit(log)


@pytest.mark.parametrize("solver", ["cg", "cholesky", "lbfgs"])
def test_other_solvers_take_neither_frames_nor_checkpoints(solver, tmp_path):
    log, w = small_log()
    with pytest.raises(InputError, match=facts("projected", f"'{solver}'")):
        MF(2, solver=solver).fit(as_frame(log, w), **COLUMNS)
    with pytest.raises(InputError, match=facts("checkpoint", f"'{solver}'")):
        MF(2, solver=solver, checkpoint=tmp_path / "fit.npz").fit(log)


def test_arguments_of_the_other_kind_of_rows_are_refused():
    log, w = small_log()
    frame = as_frame(log, w)
    for name, value in (("user", "uid"), ("blocks", "here"), ("memory", "1g")):
        with pytest.raises(InputError, match=facts(name, "Feedback")):
            MF(2, solver="projected").fit(log, **{name: value})
    with pytest.raises(InputError, match=facts("sample_weight", "ndarray")):
        MF(2, solver="projected").fit(frame, w, user="uid", item="sku", rating="stars")
    with pytest.raises(ColumnError, match=facts("rating", "stars")):
        MF(2, solver="projected").fit(frame.rename({"stars": "x"}), **COLUMNS)
    with pytest.raises(InputError, match=facts("factors", 25, 26)):
        MF(26, solver="projected").fit(frame, **COLUMNS)
    with pytest.raises(InputError, match=facts("Feedback", "ndarray")):
        MF(2, solver="projected").fit(np.zeros(3))


def test_a_few_heavy_weights_are_noted():
    log, w = small_log()
    frame = as_frame(log, np.where(np.arange(len(w)) == 0, 1e6, w))
    model = MF(2, solver="projected", iterations=1).fit(frame, **COLUMNS)
    assert "1 of 640 rows" in model.notes_[0]
    assert "stopped after 1" in model.notes_[1]


def test_weights_that_numbers_cannot_tell_apart_are_refused():
    frame = pl.DataFrame({"user": [1, 2], "item": [1, 1], "rating": [1.0, 2.0], "w": [1e-60, 1.0]})
    with pytest.raises(InputError, match=facts("sample_weight", 1, 2)):
        MF(1, solver="projected").fit(frame, sample_weight="w")
