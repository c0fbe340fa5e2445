"""Cells of an item and a level: their weights are those of their rows."""

from __future__ import annotations

import numpy as np
import pytest

from openloop.propensity import Logistic
from openloop.propensity.frames.level_cells import LevelCells
from openloop.propensity.frames.log_frame import LogFrame
from openloop.propensity.frames.opening import FrameOptions
from tests.engines import EAGER, converter
from tests.propensity_logs import RATED, I, feedback, log


@pytest.mark.parametrize("engine", EAGER)
def test_weights_of_rows_add_up_by_item_and_level(engine):
    rows = log()
    here = feedback(rows)
    frame = LogFrame.of("Model", converter(engine)(rows), FrameOptions(**RATED))
    levels = np.array([1.0, 3.0, 5.0])  # 1 and 2, 3 and 4, 5
    found = LevelCells.of(frame, Logistic().fit(here).frame_parts(), levels)
    p = Logistic().fit(here).predict(here)
    table = np.zeros((I, 3))
    np.add.at(table, (here.item, np.searchsorted(levels, here.rating, side="right") - 1), p.weights)
    ours = np.zeros((I, 3))
    ours[found.items.ids[found.item], np.searchsorted(levels, found.rating)] = found.w
    np.testing.assert_allclose(ours, table, rtol=1e-9)
    assert found.n_items == len(np.unique(here.item)) + 1
    np.testing.assert_allclose(found.ends, (p.values.min(), p.values.max()))
