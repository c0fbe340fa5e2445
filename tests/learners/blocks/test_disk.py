"""Blocks on disk: the order of rows does not matter, and other rows are refused."""

from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest

from openloop.errors import FormatError, InputError
from openloop.learners.blocks import disk as disk_blocks
from openloop.learners.blocks import user_blocks
from openloop.learners.blocks.disk import Disk, stored
from openloop.learners.blocks.ratings import open_ratings
from openloop.learners.solvers.projected import Ask
from tests.facts import facts
from tests.learners.projected_logs import COLUMNS, as_frame, small_log


@pytest.fixture(autouse=True)
def cut(monkeypatch):
    """Blocks of about 40 rows, dealt 100 at a time."""
    monkeypatch.setattr(user_blocks, "BLOCK_ROWS", 40)
    monkeypatch.setattr(user_blocks, "ROWS_PER_ITEM", 1)
    monkeypatch.setattr(disk_blocks, "BATCH", 100)


def table_of(frame):
    return open_ratings("MF", frame, COLUMNS)


def made(frame, folder=None, memory="1 GiB", dtype="float32", factors=0):
    table = table_of(frame)
    return stored(table, Disk.of(table.distinct("i"), dtype, 2, memory), folder, factors)


def asked(blocks, dtype="float32"):
    Q = np.random.default_rng(0).normal(0, 1, (25, 4)).astype(dtype)
    return Ask(Q=Q, c=blocks.facts.mean, penalty=np.full(4, 1.0), scale=blocks.facts.scale)


def test_the_order_of_rows_changes_no_bit(tmp_path):
    log, w = small_log()
    first, second = (made(as_frame(log, w, seed=seed)) for seed in (1, 2))
    assert first.facts == second.facts
    assert np.array_equal(first.total(asked(first)).sums, second.total(asked(first)).sums)


def test_an_interrupted_making_begins_again(tmp_path, monkeypatch):
    log, w = small_log()
    frame, sort = as_frame(log, w), disk_blocks._sort

    def stops(making, k, *rest):
        if k == 3:
            raise KeyboardInterrupt
        return sort(making, k, *rest)

    monkeypatch.setattr(disk_blocks, "_sort", stops)
    with pytest.raises(KeyboardInterrupt):
        made(frame, tmp_path)
    monkeypatch.setattr(disk_blocks, "_sort", sort)
    assert made(frame, tmp_path).facts == made(frame).facts
    assert sorted(path.name for path in tmp_path.iterdir()) == [disk_blocks.READY]


def test_other_rows_are_refused(tmp_path):
    log, w = small_log()
    made(as_frame(log, w), tmp_path)
    with pytest.raises(InputError, match=facts("blocks")):
        made(as_frame(log, w).tail(-1), tmp_path)
    with pytest.raises(InputError, match=facts("blocks")):
        made(as_frame(log, w), tmp_path, dtype="float64")
    turned = as_frame(log, w).with_columns(stars=6 - pl.col("stars"))  # as many rows, the same ids and weights
    with pytest.raises(InputError, match=facts("blocks")):
        made(turned, tmp_path)
    (tmp_path / disk_blocks.READY / "blocks.json").write_text(json.dumps({}))
    with pytest.raises(FormatError, match=facts("blocks")):
        made(as_frame(log, w), tmp_path)


def test_a_fit_that_does_not_fit_into_memory_is_refused(tmp_path):
    log, w = small_log()
    with pytest.raises(InputError, match=facts("memory", "1 MiB", 25, 60, 2000)):
        made(as_frame(log, w), memory="1 MiB", factors=2000)
    with pytest.raises(InputError, match=facts("memory", "'much'")):
        made(as_frame(log, w), memory="much")
    with pytest.raises(InputError, match=facts("blocks", "folder")):
        made(as_frame(log, w), tmp_path / "none" / "here")
