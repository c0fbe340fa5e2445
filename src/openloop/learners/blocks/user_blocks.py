"""A block of users with all of their rows, and what it says when asked: totals, vectors, ranks and lists.

Blocks know nothing about where they are kept. Each is worked on by one thread, and its rows are sorted by user and
item: its answers do not depend on who asks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import numpy as np
from threadpoolctl import threadpool_limits

from openloop.core.feedback import Array
from openloop.kernels.least_squares import Problem, Rows, half_sweep
from openloop.kernels.projected_gradient import add_gradient
from openloop.kernels.ranking import block_users, factor_ranks, factor_scorer
from openloop.kernels.selecting import best
from openloop.learners.solvers.projected import STEPS, Ask, Totals

BLOCK_ROWS, ROWS_PER_ITEM, MOST = 250_000, 4, 4096

Kind = Literal["user", "item", "int", "float", "floats"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Held:
    """Held-out items of a block's users: those of u are item[ptr[u] : ptr[u + 1]]."""

    ptr: Array
    item: Array


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class UserBlock:
    """Some users, by ascending id, and their rows; `held` where a block was put beside held-out pairs."""

    users: Array
    rows: Rows
    held: Held | None = None

    def scaled(self, scale: float) -> UserBlock:
        """The block with weights of mean 1 over all blocks."""
        if scale == 1:
            return self
        r = self.rows
        return replace(self, rows=Rows(r.ptr, r.partner, r.y, r.w * r.w.dtype.type(scale)))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Answer:
    """A frame that blocks can give: its columns and their kinds, and what a block says of each.

    Users are positions in the block and items codes; who holds the blocks puts their ids there.
    """

    columns: Mapping[str, Kind]
    of: Callable[[UserBlock, Ask], dict[str, Array]]


def count_blocks(rows: int, items: int, least: int | None = None) -> int:
    """How many blocks rows are dealt to, whatever the machine: the number decides how sums are rounded.

    Each has `least` rows or more, and as its sums are of the size of Q, some rows per item.
    """
    return int(np.clip(rows // max(least or BLOCK_ROWS, ROWS_PER_ITEM * items), 1, MOST))


class InTurn(Executor):
    """One after the other, in the thread that asks."""

    def map(self, fn: Callable[..., Any], *iterables: Any, **_: Any) -> Any:
        """As the built-in one."""
        return map(fn, *iterables)


def vectors(rows: Rows, ask: Ask) -> Array:
    """P = [V a] of a block's users, given Q; zeros for who has no row."""
    P = np.zeros((len(rows), ask.Q.shape[1]), ask.Q.dtype)
    half_sweep(rows, ask.Q, ask.c, P, Problem(ask.penalty, offsets=True, until=ask.until), InTurn(), steps=STEPS)
    return P


def share(block: UserBlock, ask: Ask) -> Totals:
    """What a block adds to f, its gradient and its diagonal."""
    rows = block.scaled(ask.scale).rows
    P, sums = vectors(rows, ask), np.zeros((len(ask.Q), 2, ask.Q.shape[1]), ask.Q.dtype)
    loss = add_gradient(rows, ask.Q, P, ask.c, sums)
    penalty = float(np.sum(np.einsum("uk,uk->k", P, P, dtype=np.float64) * ask.penalty))
    offsets, users = float(P[:, -1].sum(dtype=np.float64)), int(rows.filled.sum())
    return Totals(loss=loss + penalty, sums=sums, offsets=offsets, users=users)


# -- answers -------------------------------------------------------------------------------------------------


def user_table() -> Answer:
    """Each user's vector and offset."""
    return Answer(columns={"user": "user", "factors": "floats", "bias": "float"}, of=_user_table)


def _user_table(block: UserBlock, ask: Ask) -> dict[str, Array]:
    P = vectors(block.scaled(ask.scale).rows, ask)
    return {"user": np.arange(len(P)), "factors": np.ascontiguousarray(P[:, :-1]), "bias": P[:, -1].copy()}


def rank_table() -> Answer:
    """How many candidates are above each held-out item, and how many tie with it, itself included.

    Candidates are all items but those that the user was trained with.
    """
    return Answer(columns={"user": "user", "item": "item", "above": "int", "tied": "int"}, of=_rank_table)


def _rank_table(block: UserBlock, ask: Ask) -> dict[str, Array]:
    assert block.held is not None  # noqa: S101 (only blocks beside held-out pairs are asked)
    held, rows = block.held, block.scaled(ask.scale).rows
    P = vectors(rows, ask)
    above, tied = factor_ranks(
        P[:, :-1], ask.Q[:, :-1], ask.Q[:, -1], held.ptr, held.item, rows.ptr, rows.partner, threads=1
    )
    user = np.repeat(np.arange(len(rows)), np.diff(held.ptr))
    return {"user": user, "item": held.item, "above": above, "tied": tied}


def list_table(k: int) -> Answer:
    """Each user's k best items among those that the user was not trained with, of equal scores the first by id."""
    columns: dict[str, Kind] = {"user": "user", "item": "item", "score": "float", "rank": "int"}
    return Answer(columns=columns, of=partial(_list_table, k=k))


def _list_table(block: UserBlock, ask: Ask, k: int) -> dict[str, Array]:
    rows = block.scaled(ask.scale).rows
    P, n_items = vectors(rows, ask), len(ask.Q)
    step = block_users(n_items, len(P))
    scores_of = factor_scorer(P[:, :-1], ask.Q[:, :-1], ask.Q[:, -1], step)
    chosen, score = np.empty((len(P), min(k, n_items)), np.int32), np.empty((len(P), min(k, n_items)), np.float32)
    with threadpool_limits(1, "blas"):
        for first in range(0, len(P), step):
            users = np.arange(first, min(first + step, len(P)))
            scores = np.array(scores_of(users))  # (B, I)
            ptr = rows.ptr[first : users[-1] + 2]
            scores[np.repeat(users - first, np.diff(ptr)), rows.partner[ptr[0] : ptr[-1]]] = -np.inf
            chosen[users], _ = best(scores, k)
            score[users] = np.take_along_axis(scores, np.maximum(chosen[users], 0), 1)
    score += (P[:, -1:] + ask.Q.dtype.type(ask.c)).astype(np.float32)
    there = chosen >= 0
    user, rank = np.nonzero(there)
    score = score[there].astype(ask.Q.dtype)
    return {"user": user, "item": chosen[there], "score": score, "rank": (rank + 1).astype(np.int32)}
