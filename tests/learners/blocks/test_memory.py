from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from openloop.kernels.least_squares import Rows
from openloop.learners.blocks import memory, user_blocks
from openloop.learners.blocks.memory import LocalBlocks, blocks_of_rows
from openloop.learners.blocks.user_blocks import UserBlock, user_table, vectors
from openloop.learners.solvers.projected import Ask
from tests.learners.projected_logs import small_log


@pytest.fixture
def cut(monkeypatch):
    """Blocks of about 40 rows."""
    monkeypatch.setattr(user_blocks, "BLOCK_ROWS", 40)
    monkeypatch.setattr(user_blocks, "ROWS_PER_ITEM", 1)


def rows_and_ask(dtype="float32"):
    log, w = small_log()
    Q = np.random.default_rng(0).normal(0, 1, (log.n_items, 4)).astype(dtype)
    rows = Rows(log.user_ptr, log.item, log.rating.astype(dtype), w.astype(dtype))
    return rows, Ask(Q=Q, c=3.0, penalty=np.full(4, 1.0))


def test_totals_have_the_same_bits_whatever_the_threads(cut):
    rows, ask = rows_and_ask()
    one, many = (blocks_of_rows(rows, 25, threads).total(ask) for threads in (1, 5))
    assert len(blocks_of_rows(rows, 25, 1).parts) > 8
    assert one.loss == many.loss
    assert np.array_equal(one.sums, many.sums)


def test_totals_do_not_depend_on_the_blocks_but_for_rounding(cut, monkeypatch):
    rows, ask = rows_and_ask("float64")
    many = blocks_of_rows(rows, 25, 2).total(ask)
    monkeypatch.setattr(user_blocks, "BLOCK_ROWS", 10**9)
    whole = blocks_of_rows(rows, 25, 2)
    assert len(whole.parts) == 1
    np.testing.assert_allclose(many.sums, whole.total(ask).sums, rtol=1e-10, atol=1e-10)
    assert (many.users, many.loss) == (whole.total(ask).users, pytest.approx(whole.total(ask).loss, rel=1e-12))


def test_every_row_is_in_one_block(cut):
    rows, _ = rows_and_ask()
    blocks = [part() for part in blocks_of_rows(rows, 25, 1).parts]
    assert np.concatenate([b.users for b in blocks]).tolist() == list(range(60))
    assert np.array_equal(np.concatenate([b.rows.partner for b in blocks]), rows.partner)
    assert np.array_equal(np.concatenate([b.rows.y for b in blocks]), rows.y)


def test_a_frame_of_answers_has_ids(cut):
    rows, ask = rows_and_ask()
    blocks = blocks_of_rows(rows, 25, 2)
    frame = blocks.map(user_table(), ask)
    assert frame.schema == {"user": pl.Int64, "factors": pl.List(pl.Float32), "bias": pl.Float32}
    assert frame["user"].to_list() == list(range(60))
    assert np.array_equal(np.stack(frame["factors"].to_list()), vectors(rows, ask)[:, :-1])


def test_few_blocks_are_open_at_a_time():
    now, most = [0], [0]

    def part():
        now[0] += 1
        most[0] = max(most[0], now[0])
        return UserBlock(users=np.arange(0), rows=Rows(*(np.zeros(1, np.int64), *np.zeros((3, 0)))))

    blocks = LocalBlocks(parts=[part] * 20, threads=2, items=np.arange(1))
    for _ in blocks.each(lambda _: None):
        now[0] -= 1
    assert most[0] <= 3
    assert memory.LocalBlocks is LocalBlocks
