"""Parts of a scanned log: every row is in one of them, the same one at every reading, and they know their share."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import openloop as ol
from openloop.errors import InputError


def log(rows: int = 4000) -> pl.DataFrame:
    rng = np.random.default_rng(0)
    cells = rng.choice(200 * 60, rows, replace=False)
    return pl.DataFrame({
        "user": cells // 60, "item": cells % 60, "rating": rng.integers(1, 6, rows), "p": rng.uniform(0.2, 0.9, rows),
        "time": rng.permutation(rows),
    })  # fmt: skip


def rows_of(part: ol.Log, size: int = 700) -> pl.DataFrame:
    return pl.concat(list(part.table.batches(["user", "item", "time"], size)))


@pytest.mark.parametrize("by", ["row", "user", "time"])
def test_parts_divide_the_rows_and_are_the_same_at_every_reading(by):
    frame = log()
    train, test = ol.split(ol.scan(frame, time="time"), test=0.25, by=by, rng=3)
    whole = pl.concat([rows_of(train), rows_of(test)])
    assert whole.sort("user", "item").equals(frame.select("user", "item", "time").sort("user", "item"))
    assert rows_of(test).equals(rows_of(test, size=90))
    if by == "user":
        assert not set(rows_of(train)["user"]) & set(rows_of(test)["user"])
    if by == "time":
        assert rows_of(train)["time"].max() < rows_of(test)["time"].min()


def test_parts_are_weighted_as_parts_in_memory_are():
    frame = log()
    truth = np.random.default_rng(1).uniform(1, 5, (200, 60))
    scan = ol.scan(frame, propensity="p", users=200, items=60)
    train, test = ol.split(scan, test=0.25, rng=3)
    found = ol.evaluate({"m": truth}, test, exclude=train, metrics=["mae", "dcg"], estimators=["ips", "snips"])
    memory = ol.read(frame, propensity="p", users=200, items=60)
    of_test = set(rows_of(test).select("user", "item").iter_rows())
    is_test = np.array([pair in of_test for pair in zip(memory.user.tolist(), memory.item.tolist(), strict=True)])
    parts = [
        memory.take(rows, share=np.array([rows.mean()]), origin=memory.fingerprint, split=("row",))
        for rows in (~is_test, is_test)
    ]
    known = ol.evaluate({"m": truth}, parts[1], exclude=parts[0], metrics=["mae", "dcg"], estimators=["ips", "snips"])
    for key, estimate in known.estimates.items():
        np.testing.assert_allclose(
            [found.estimates[key].value, found.estimates[key].stderr], [estimate.value, estimate.stderr], rtol=1e-12
        )


def test_what_a_scanned_log_cannot_be_split_by():
    with pytest.raises(InputError, match="leave-k-out"):
        ol.split(ol.scan(log()), k=2, by="leave-k-out", rng=0)
    with pytest.raises(InputError, match="time"):
        ol.split(ol.scan(log().drop("time")), by="time")


def test_a_model_of_counts_is_fitted_where_the_rows_are():
    frame = log()
    scan, memory = ol.scan(frame, users=200, items=60), ol.read(frame, users=200, items=60)
    models = {"m": np.random.default_rng(1).uniform(1, 5, (200, 60))}
    p = ol.propensity.Popularity(gamma=1)
    scanned = ol.evaluate(models, scan, p.fit(scan), metrics=["mae"], estimators=["snips"])
    known = ol.evaluate(
        models, memory, ol.propensity.Popularity(gamma=1).fit(memory), metrics=["mae"], estimators=["snips"]
    )
    np.testing.assert_allclose(scanned["m", "mae", "snips"].value, known["m", "mae", "snips"].value, rtol=1e-12)
