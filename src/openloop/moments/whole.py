"""All blocks as one, users in the order of their codes: for what takes whole grids, and for draws of users."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from openloop.blocks.block import Block, Outcome, Pairs
from openloop.core.vocabulary import Int64s
from openloop.moments.source import Subject

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OneBlock:
    """A block as all blocks of a log."""

    block: Block

    def map(self, work: Callable[[Block], Result]) -> Iterator[Result]:
        """What `work` makes of it."""
        yield work(self.block)

    def update(self, work: Callable[[Block], tuple[Block, Result]]) -> Iterator[Result]:
        """It cannot change."""
        raise NotImplementedError

    def close(self) -> None:
        """Nothing to do: it is freed when nothing refers to it."""


def whole_block(subject: Subject) -> Block:
    """All blocks as one."""
    blocks = list(subject.blocks.map(lambda block: block))
    n_users, n_items = len(subject.population.users), len(subject.population.items)
    pairs = [Pairs(user=b.users[b.user], item=b.item) for b in blocks]
    order, rows = _ordered(pairs, n_items)
    _, excluded = _ordered([Pairs(user=b.users[b.excluded.user], item=b.excluded.item) for b in blocks], n_items)
    names = [name for name in blocks[0].tables if all(name in b.tables for b in blocks)]
    tables = {
        name: _ordered(
            [
                Pairs(user=b.users[t.user], item=t.item, numbers=t.numbers)
                for b, t in ((b, b.tables[name]) for b in blocks)
            ],
            n_items,
        )[1]
        for name in names
    }
    return Block(
        users=np.arange(n_users, dtype=np.int32), user_start=np.array([0, n_users]), rows=rows,
        rating=np.concatenate([b.rating for b in blocks])[order],
        columns={name: np.concatenate([b.columns[name] for b in blocks])[order] for name in blocks[0].columns},
        excluded=excluded, tables=tables,
        outcomes={
            name: Outcome.joined([b.outcomes[name] for b in blocks]).take(order) for name in blocks[0].outcomes
        },
    )  # fmt: skip


def _ordered(parts: list[Pairs], n_items: int) -> tuple[Int64s, Pairs]:
    """Pairs of several blocks by user and item, and where they were."""
    names = parts[0].numbers
    pairs = Pairs(
        user=np.concatenate([p.user for p in parts]), item=np.concatenate([p.item for p in parts]),
        numbers={name: np.concatenate([p.numbers[name] for p in parts]) for name in names},
    )  # fmt: skip
    order = np.argsort(pairs.user.astype(np.int64) * (n_items + 1) + pairs.item, kind="stable")
    return order, pairs.take(order)
