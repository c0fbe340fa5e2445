"""Tasks of Spark's workers, without Spark: lists of held-out items by block, and blocks beside them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest


@pytest.fixture(scope="module")
def tasks():
    """The module, which imports pyspark: only here, as other tests run without."""
    from openloop.learners.blocks import spark_tasks as module

    return module


def batch(**columns):
    return pa.RecordBatch.from_pydict(columns)


def built(tasks, monkeypatch, number=0):
    monkeypatch.setattr(tasks, "_block", lambda: number)
    rows = batch(u=["b", "a", "b"], i=[3, 1, 1], y=[1.0, 2.0, 3.0], w=[1.0, 1.0, 1.0])
    (block,) = tasks.built([rows], pa.array([1, 3]), 1.0, np.dtype("float32"), "text")
    return block


def test_a_block_says_that_it_is_too_large(tasks, monkeypatch):
    monkeypatch.setattr(tasks, "CELL", 20)
    block = built(tasks, monkeypatch)
    assert block.column("ptr").null_count == 1
    assert block.column("rows").to_pylist() == [3]


def test_held_out_pairs_become_lists_by_block(tasks):
    first = batch(u=["b", "a"], i=[1, 3], block=np.array([7, 2], np.int32))
    second = batch(u=["b", "b"], i=[3, 1], block=np.array([7, 7], np.int32))
    found = pa.Table.from_batches(tasks.held_lists([first, second], pa.array([1, 3]), "text"))
    assert found.column("block").to_pylist() == [2, 7]
    assert found.column("held_ids").to_pylist() == [["a"], ["b"]]
    assert [np.frombuffer(item, np.int32).tolist() for item in found.column("held_item").to_pylist()] == [
        [1],
        [0, 0, 1],
    ]
    assert found.column("repeats").to_pylist() == [0, 1]
    assert list(tasks.held_lists([], pa.array([1, 3]), "text")) == []


def test_only_blocks_with_held_out_pairs_are_opened(tasks, monkeypatch):
    monkeypatch.setattr(tasks.gc, "freeze", lambda: None)  # is for processes that only work
    blocks = [built(tasks, monkeypatch, number) for number in (0, 1)]
    pairs = batch(u=["c", "b"], i=[1, 1], block=np.array([1, 1], np.int32))
    held = pa.Table.from_batches(tasks.held_lists([pairs], pa.array([1, 3]), "text"))
    ((number, users, block),) = tasks._opened(blocks, np.float32, held)
    assert (number, users.to_pylist()) == (1, ["b", "c"])
    assert np.diff(block.rows.ptr).tolist() == [2, 0]  # a user without a row has none
    assert block.held.item.tolist() == [0, 0]
