"""Blocks on disk: the bits of blocks in memory, made once, and refused where they are of other rows."""

from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest

from openloop.errors import DuplicateError, FormatError, InputError
from openloop.learners.blocks import disk as disk_blocks
from openloop.learners.blocks import user_blocks
from openloop.learners.blocks.disk import Disk, stored
from openloop.learners.blocks.ratings import open_ratings
from openloop.learners.blocks.user_blocks import user_table
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


@pytest.mark.parametrize("text", [False, True])
def test_blocks_hold_every_row_once_sorted(tmp_path, text):
    log, w = small_log()
    blocks = made(as_frame(log, w, text=text), tmp_path)
    parts = [part() for part in blocks.local.parts]
    assert len(parts) > 8
    assert np.array_equal(np.concatenate([part.rows.partner for part in parts]), log.item)
    assert np.array_equal(np.concatenate([part.rows.y for part in parts]), log.rating)
    assert np.array_equal(np.concatenate([part.rows.w for part in parts]), (w / w.max()).astype(np.float32))
    assert blocks.facts.rows == len(log)
    assert blocks.facts.users == len(blocks.users) == 60
    assert blocks.facts.mean == pytest.approx(np.average(log.rating, weights=w), rel=1e-6)


def test_the_order_of_rows_changes_no_bit(tmp_path):
    log, w = small_log()
    first, second = (made(as_frame(log, w, seed=seed)) for seed in (1, 2))
    assert first.facts == second.facts
    assert np.array_equal(first.total(asked(first)).sums, second.total(asked(first)).sums)


def test_blocks_are_made_once(tmp_path, monkeypatch):
    log, w = small_log()
    frame = as_frame(log, w)
    first = made(frame, tmp_path)
    monkeypatch.setattr(disk_blocks, "_make", None)  # it would fail
    second = made(frame, tmp_path)
    assert second.facts == first.facts
    assert second.map(user_table(), asked(first)).equals(first.map(user_table(), asked(first)))


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


def test_repeats_are_refused_and_leave_no_temporary_folder(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    log, w = small_log()
    frame = as_frame(log, w)
    with pytest.raises(DuplicateError, match=facts("MF", 2)):
        made(pl.concat([frame, frame.head(2)]))
    assert list(tmp_path.iterdir()) == []


def test_a_temporary_folder_goes_with_its_blocks(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    log, w = small_log()
    blocks = made(as_frame(log, w))
    assert len(list(tmp_path.iterdir())) == 1
    del blocks
    assert list(tmp_path.iterdir()) == []


def test_a_folder_can_be_deleted(tmp_path):
    log, w = small_log()
    blocks = made(as_frame(log, w), tmp_path / "here")
    blocks.release()
    assert list(tmp_path.iterdir()) == []


def test_what_was_in_the_folder_stays(tmp_path):
    mine = {"notes.txt", "blocks", "unfinished"}
    (tmp_path / "notes.txt").write_text("mine")
    (tmp_path / "blocks").mkdir()
    (tmp_path / "unfinished").mkdir()
    log, w = small_log()
    blocks = made(as_frame(log, w), tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == mine | {disk_blocks.READY}
    blocks.release()
    assert {path.name for path in tmp_path.iterdir()} == mine
    with pytest.raises(InputError, match=facts("blocks", "file", "folder")):
        made(as_frame(log, w), tmp_path / "notes.txt")


def test_a_fit_that_does_not_fit_into_memory_is_refused(tmp_path):
    log, w = small_log()
    with pytest.raises(InputError, match=facts("memory", "1 MiB", 25, 60, 2000)):
        made(as_frame(log, w), memory="1 MiB", factors=2000)
    with pytest.raises(InputError, match=facts("memory", "'much'")):
        made(as_frame(log, w), memory="much")
    with pytest.raises(InputError, match=facts("blocks", "folder")):
        made(as_frame(log, w), tmp_path / "none" / "here")
