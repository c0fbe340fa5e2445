"""The whole log behind streamed rows: counts, a model of counts, and its check."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from openloop.commands.audit.inputs import run
from openloop.commands.audit.request import AuditRequest
from openloop.commands.audit.scan_whole import ScannedWhole
from openloop.propensity.naming import ModelSpec

KNOWN = {"user": pl.Series("user", [1, 2, 3]), "item": pl.Series("item", ["a", "b", "c"])}
PARTS = [
    pl.DataFrame({"user": [1, 2], "item": ["a", "a"], "rating": [5.0, 4.0]}).lazy(),
    pl.DataFrame({"user": [2, 3], "item": ["b", "a"], "rating": [4.0, 5.0]}).lazy(),
]


def test_items_are_counted_over_all_parts():
    whole = ScannedWhole.of(PARTS, KNOWN)
    assert whole.counts.tolist() == [3, 1, 0]
    assert whole.positives
    assert not ScannedWhole.of([*PARTS, PARTS[0].with_columns(rating=1.0 * pl.col("user"))], KNOWN).positives


def test_a_floor_is_noted_and_kept():
    notes: list[str] = []
    model = ScannedWhole.of(PARTS, KNOWN).fitted(ModelSpec(name="popularity", gamma=1.0), 0.5, notes)
    np.testing.assert_array_equal(model.fitted, np.maximum(model.model.item_propensities_, 0.5))
    assert any("p below the floor 0.5 count as the floor: 25.0%" in note for note in notes)


@pytest.mark.parametrize("floor", [0.0, 0.4])
def test_the_check_is_that_of_the_rows_in_memory(tmp_path, floor):
    draw = np.random.default_rng(0)
    u, i = np.nonzero(draw.random((40, 8)) < np.linspace(0.2, 0.9, 8))
    pl.DataFrame({"user": u, "item": i, "rating": draw.integers(1, 6, len(u))}).write_csv(tmp_path / "log.csv")
    for name in "ab":
        cells = np.indices((40, 8)).reshape(2, -1)
        pl.DataFrame({"user": cells[0], "item": cells[1], "score": draw.uniform(1, 5, 320)}).write_csv(
            tmp_path / f"{name}.csv"
        )
    asked = {
        "log": tmp_path / "log.csv", "models": tuple((name, tmp_path / f"{name}.csv") for name in "ab"),
        "propensity": "popularity", "metrics": ("mae",), "floor": floor,
    }  # fmt: skip
    memory, stream = (run(AuditRequest(**asked, stream=mode), "").check for mode in (False, True))
    assert [(h.user, h.item, h.p) for h in stream.heaviest] == [(h.user, h.item, h.p) for h in memory.heaviest]
    assert stream.flags == memory.flags
    assert stream.calibration.log_likelihood == pytest.approx(memory.calibration.log_likelihood, rel=1e-12)
    assert run(AuditRequest(**asked, stream=True, check=False), "").check is None
