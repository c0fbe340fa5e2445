"""Blocks: their answers against the definitions, whoever holds them and however they are cut."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from openloop.kernels.least_squares import Problem, Rows, half_sweep_numpy
from openloop.kernels.ranking import ranks_numpy
from openloop.learners.blocks.user_blocks import (
    Held,
    UserBlock,
    rank_table,
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
