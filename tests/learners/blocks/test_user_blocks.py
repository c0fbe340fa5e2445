"""Blocks: their answers against the definitions, whoever holds them and however they are cut."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from openloop.kernels.least_squares import Problem, Rows, half_sweep_numpy
from openloop.kernels.ranking import ranks_numpy
from openloop.learners.blocks.user_blocks import (
    BLOCK_ROWS,
    MOST,
    Held,
    UserBlock,
    count_blocks,
    list_table,
    rank_table,
    share,
    user_table,
    vectors,
)
from openloop.learners.solvers.projected import Ask
from tests.learners.projected_logs import small_log


def block(dtype="float64"):
    log, w = small_log(users=20, items=9)
    return UserBlock(users=np.arange(20), rows=Rows(log.user_ptr, log.item, log.rating.astype(dtype), w.astype(dtype)))


def asked(factors=2, dtype="float64"):
    Q = np.random.default_rng(0).normal(0, 1, (9, factors + 1)).astype(dtype)
    return Ask(Q=Q, c=3.0, penalty=np.full(factors + 1, 1.5), scale=0.5, until=0.0)


def test_vectors_are_those_of_the_normal_equations():
    rows, ask = block().scaled(0.5).rows, asked()
    P = np.zeros((20, 3))
    half_sweep_numpy(rows, ask.Q, ask.c, P, Problem(ask.penalty, offsets=True))
    np.testing.assert_allclose(vectors(rows, ask), P, atol=1e-9)
    given = user_table().of(block(), ask)
    np.testing.assert_allclose(given["factors"], P[:, :2], atol=1e-9)
    np.testing.assert_allclose(given["bias"], P[:, 2], atol=1e-9)


def test_a_share_counts_losses_penalties_offsets_and_users():
    ask, rows = asked(), block().scaled(0.5).rows
    got, P = share(block(), ask), vectors(rows, ask)
    u = np.repeat(np.arange(20), np.diff(rows.ptr))
    e = rows.y - ask.c - P[u, -1] - ask.Q[rows.partner, -1] - np.sum(P[u, :2] * ask.Q[rows.partner, :2], axis=1)
    assert got.loss == pytest.approx(np.sum(rows.w * e**2) + 1.5 * np.sum(P**2), rel=1e-10)
    assert got.offsets == pytest.approx(P[:, -1].sum())
    assert got.users == 20


def scores(block, ask):
    P = vectors(block.scaled(ask.scale).rows, ask)
    return P[:, :-1] @ ask.Q[:, :-1].T + ask.Q[:, -1], P


def test_ranks_count_all_candidates_but_those_trained_with():
    own, ask, rng = block(), asked(), np.random.default_rng(2)
    wanted = np.sort(rng.integers(0, 9, (20, 1)), axis=1).ravel().astype(np.int32)
    held = Held(ptr=np.arange(21), item=wanted)
    got = rank_table().of(replace(own, held=held), ask)
    S, _ = scores(own, ask)
    above, tied = ranks_numpy(S.astype(np.float32), held.ptr, wanted, own.rows.ptr, own.rows.partner)
    assert got["above"].tolist() == above.tolist()
    assert got["tied"].tolist() == tied.tolist()
    assert got["user"].tolist() == list(range(20))


@pytest.mark.parametrize("k", [1, 4, 50])
def test_lists_are_the_best_items_that_were_not_trained_with(k):
    own, ask = block(), asked()
    got, (S, P) = list_table(k).of(own, ask), scores(own, ask)
    for u in range(20):
        trained = own.rows.partner[own.rows.ptr[u] : own.rows.ptr[u + 1]]
        best = [i for i in np.argsort(-S[u], kind="stable") if i not in trained][:k]
        mine = got["user"] == u
        assert got["item"][mine].tolist() == best
        assert got["rank"][mine].tolist() == list(range(1, len(best) + 1))
        np.testing.assert_allclose(got["score"][mine], S[u, best] + P[u, -1] + ask.c, rtol=1e-5)


def test_the_number_of_blocks_is_a_matter_of_rows_and_items_alone():
    assert count_blocks(10, 5) == 1
    assert count_blocks(4 * BLOCK_ROWS, 100) == 4
    assert count_blocks(10**9, 10**6) == 250  # 4 rows per item at least
    assert count_blocks(10**13, 100) == MOST
