"""MF(solver="projected"): MF's optimum, one algorithm on every kind of rows, and what it refuses."""

from __future__ import annotations

import numpy as np
import pytest

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
