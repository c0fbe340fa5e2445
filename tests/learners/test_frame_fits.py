"""A model fitted on a frame: its frames against the model in memory, and what it refuses."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import openloop as ol
from openloop.errors import DuplicateError, InputError, UndefinedError, UnknownIdError
from openloop.kernels.ranking import ranks_numpy
from openloop.learners import MF, frame_fits
from tests.facts import facts
from tests.learners.projected_logs import COLUMNS, as_frame, small_log

WEIGHTED = {"sample_weight": "w"}


@pytest.fixture(scope="module", params=[False, True], ids=["integers", "text"])
def fitted(request):
    """A fit on a frame, the same in memory, and the log."""
    log, w = small_log()
    on_frame = MF(3, 2.0, solver="projected").fit(as_frame(log, w, text=request.param), **COLUMNS)
    return on_frame, MF(3, 2.0, solver="projected").fit(log, sample_weight=w), log


def ids_of(model, log, side):
    codes = np.arange(log.n_users if side == "user" else log.n_items)
    if model.items_.ids.dtype == object:
        return np.array([f"{side[0]}{c:04}" for c in codes], object)
    return codes


def test_items_are_here_and_users_are_a_frame(fitted):
    model, memory, log = fitted
    assert np.array_equal(model.item_factors_, memory.item_factors_)
    assert np.array_equal(model.history_, memory.history_)
    users = model.users()
    assert users.columns == ["uid", "factors", "bias"]
    assert users["uid"].to_list() == ids_of(model, log, "user").tolist()
    assert np.array_equal(np.stack(users["factors"].to_list()), memory.user_factors_)
    assert np.array_equal(users["bias"].to_numpy(), memory.user_bias_)


def test_to_model_is_the_model_in_memory(fitted, tmp_path):
    model, memory, log = fitted
    here = model.to_model()
    assert np.array_equal(here.scores(np.arange(60)), memory.scores(np.arange(60)))
    assert here.users_.ids.tolist() == ids_of(model, log, "user").tolist()
    here.save(tmp_path / "m.safetensors")
    again = ol.load(tmp_path / "m.safetensors")
    assert np.array_equal(again.predict([3, 4], [1, 2]), memory.predict([3, 4], [1, 2]))


def test_ranks_are_those_of_the_scores_with_unseen_items_and_users_at_zero(fitted):
    model, memory, log = fitted
    rng = np.random.default_rng(3)
    cells = rng.permutation(62 * 27)[:200]
    u, i = cells // 27, cells % 27  # two users and two items that the fit has not seen
    text = model.items_.ids.dtype == object
    names = [[f"u{c:04}" for c in u], [f"i{c:04}" for c in i]] if text else [u, i]
    got = model.ranks(pl.DataFrame({"uid": names[0], "sku": names[1]})).sort("uid", "sku")
    S = np.zeros((62, 27), np.float32)
    S[:60, :25] = memory.user_factors_ @ memory.item_factors_.T + memory.item_bias_
    S[60:, :25] = memory.item_bias_
    order = np.lexsort((i, u))
    ptr = np.searchsorted(u[order], np.arange(63))
    excluded = np.concatenate([log.user_ptr, [len(log)] * 2])
    above, tied = ranks_numpy(S, ptr, i[order], excluded, log.item)
    assert got.columns == ["uid", "sku", "above", "tied"]
    assert got["above"].to_list() == above.tolist()
    assert got["tied"].to_list() == tied.tolist()


def test_lists_are_the_best_of_the_rest(fitted):
    model, memory, log = fitted
    got = model.top(4)
    S = memory.scores(np.arange(60))
    S[log.user, log.item] = -np.inf
    best = np.argsort(-S, axis=1, kind="stable")[:, :4]
    assert got.columns == ["uid", "sku", "score", "rank"]
    assert got["sku"].to_list() == ids_of(model, log, "item")[best].ravel().tolist()
    np.testing.assert_allclose(got["score"], np.take_along_axis(S, best, 1).ravel(), rtol=1e-5)


def test_users_of_another_frame_are_folded_in(fitted):
    model, memory, log = fitted
    text = model.items_.ids.dtype == object
    _, w = small_log()
    rows = as_frame(log, w, text=text).filter(pl.col("uid") < ("u0005" if text else 5))
    known = model.users(rows).sort("uid")
    np.testing.assert_allclose(np.stack(known["factors"].to_list()), memory.user_factors_[:5], atol=2e-6)
    fresh = rows.with_columns(pl.col("uid") + ("x" if text else 1000))
    assert model.users(fresh)["bias"].to_list() == known["bias"].to_list()


def test_what_asks_for_users_in_memory_says_where_they_are(fitted, tmp_path):
    model, _, _ = fitted
    for call in (lambda: model.predict([0], [0]), lambda: model.scores([0]), lambda: model.save(tmp_path / "m")):
        with pytest.raises(UndefinedError, match=facts("MF", "to_model")):
            call()
    with pytest.raises(AttributeError, match=facts("nothing_")):
        _ = model.nothing_


def test_frames_are_refused_as_the_fit_refuses_them(fitted):
    model, _, _ = fitted
    pairs = model.top(1).select("uid", "sku")
    with pytest.raises(DuplicateError, match=facts("held_out", 60, 120)):
        model.ranks(pl.concat([pairs, pairs]))
    kind = pl.Int64 if pairs["sku"].dtype == pl.String else pl.String
    with pytest.raises(InputError, match=facts("integers", "text")):
        model.ranks(pairs.with_columns(pl.lit(1).cast(kind).alias("sku")))
    rows = pairs.with_columns(stars=pl.lit(3.0), w=pl.lit(1.0))
    with pytest.raises(UnknownIdError, match=facts("MF", 60)):
        model.users(rows.with_columns(pl.col("sku") + ("x" if pairs["sku"].dtype == pl.String else 500)))
    with pytest.raises(InputError, match=facts("k", 0)):
        model.top(0)


def test_users_that_do_not_fit_into_memory_are_refused_with_numbers(fitted, monkeypatch):
    model, _, _ = fitted
    monkeypatch.setattr(frame_fits, "total_memory", lambda: 2**10)
    with pytest.raises(InputError, match=facts("MF.to_model", 60, 4)):
        model.to_model()


def test_a_model_of_feedback_has_no_frames():
    log, _ = small_log()
    model = MF(2, solver="projected").fit(log)
    for call in (model.users, model.to_model, lambda: model.top(3), lambda: model.ranks(None), model.release):
        with pytest.raises(UndefinedError, match=facts("Feedback")):
            call()


def test_rows_can_be_released_and_fitted_again(tmp_path):
    log, w = small_log()
    model = MF(2, solver="projected").fit(as_frame(log, w), **COLUMNS, blocks=tmp_path / "b")
    model.release()
    assert not (tmp_path / "b").exists()
    for call in (model.users, lambda: model.predict([0], [0])):
        with pytest.raises(UndefinedError, match=facts("release()")):
            call()
    model.fit(log)
    assert model.predict([0], [0]).shape == (1,)
    model.fit(as_frame(log, w), **COLUMNS)
    with pytest.raises(UndefinedError, match=facts("to_model")):
        model.predict([0], [0])


def test_evaluate_takes_the_ranks():
    def rows(part):
        ids = {"user": part.users.ids[part.user], "item": part.items.ids[part.item]}
        return pl.DataFrame(ids | {"rating": part.rating})

    train, test = ol.split(small_log(users=80, items=30)[0], test=0.3, rng=0)
    here, there = (MF(3, 2.0, solver="projected").fit(part) for part in (train, rows(train)))
    asked = {"metrics": ["recall@5", "ndcg", "mrr"], "estimators": ["naive"], "threshold": 3}
    known = ol.evaluate({"mf": here}, test, exclude=train, **asked)
    found = ol.evaluate(
        {"mf": there.ranks(rows(test))}, rows(test), exclude=rows(train), complete=True, population=(80, 30), **asked
    )
    for metric in asked["metrics"]:
        assert found["mf", metric, "naive"].value == pytest.approx(known["mf", metric, "naive"].value, rel=1e-12)
        assert found["mf", metric, "naive"].stderr == pytest.approx(known["mf", metric, "naive"].stderr, rel=1e-12)
