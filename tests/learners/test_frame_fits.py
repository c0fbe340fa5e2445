"""A model fitted on a frame: its frames against the model in memory."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import openloop as ol
from openloop.learners import MF
from tests.learners.projected_logs import COLUMNS, as_frame, small_log


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


def test_to_model_is_the_model_in_memory(fitted, tmp_path):
    model, memory, log = fitted
    here = model.to_model()
    assert np.array_equal(here.scores(np.arange(60)), memory.scores(np.arange(60)))
    assert here.users_.ids.tolist() == ids_of(model, log, "user").tolist()
    here.save(tmp_path / "m.safetensors")
    again = ol.load(tmp_path / "m.safetensors")
    assert np.array_equal(again.predict([3, 4], [1, 2]), memory.predict([3, 4], [1, 2]))


def test_lists_are_the_best_of_the_rest(fitted):
    model, memory, log = fitted
    got = model.top(4)
    S = memory.scores(np.arange(60))
    S[log.user, log.item] = -np.inf
    best = np.argsort(-S, axis=1, kind="stable")[:, :4]
    assert got.columns == ["uid", "sku", "score", "rank"]
    assert got["sku"].to_list() == ids_of(model, log, "item")[best].ravel().tolist()
    np.testing.assert_allclose(got["score"], np.take_along_axis(S, best, 1).ravel(), rtol=1e-5)


def test_evaluate_takes_the_ranks():
    def rows(part):
        ids = {"user": part.users.ids[part.user], "item": part.items.ids[part.item]}
        return pl.DataFrame(ids | {"rating": part.rating})

    train, test = ol.split(small_log(users=80, items=30)[0], test=0.3, rng=0)
    here, there = (MF(3, 2.0, solver="projected").fit(part) for part in (train, rows(train)))
    asked = {"metrics": ["recall@5", "ndcg", "mrr"], "estimators": ["naive"], "threshold": 3}
    known = ol.evaluate({"mf": here}, test, exclude=train, **asked)
    log = ol.scan(rows(test), users=80, items=30)
    found = ol.evaluate({"mf": there.ranks(rows(test))}, log, exclude=rows(train), **asked)
    for metric in asked["metrics"]:
        assert found["mf", metric, "naive"].value == pytest.approx(known["mf", metric, "naive"].value, rel=1e-12)
        assert found["mf", metric, "naive"].stderr == pytest.approx(known["mf", metric, "naive"].stderr, rel=1e-12)
