"""A model's table beside the users of a block: scores of all items, ranks by them, and the first items of lists."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from openloop.blocks.block import Block, Pairs
from openloop.core.vocabulary import Floats, Int64s, Ints
from openloop.errors import UndefinedError
from openloop.kernels import ranking, selecting

Scorer = Callable[[Int64s], Floats]  # users (B,) → scores (B, I)


def table_scorer(pairs: Pairs, n_items: int, absent: float = -np.inf) -> Scorer:
    """The scores that a table, sorted by user, has of some users of a block; `absent` where it has none."""

    def scores(users: Int64s) -> Floats:
        found = np.full((len(users), n_items), absent)
        start, end = np.searchsorted(pairs.user, users), np.searchsorted(pairs.user, users, side="right")
        lengths = end - start
        owner = np.repeat(np.arange(len(users)), lengths)
        place = np.repeat(start - np.cumsum(lengths) + lengths, lengths) + np.arange(lengths.sum())
        found[owner, pairs.item[place]] = pairs.numbers["score"][place]
        return found  # (B, I)

    return scores


def table_ranks(block: Block, pairs: Pairs, n_items: int) -> tuple[Int64s, Int64s]:
    """How many candidates rank above each row's item by the scores of a table, and how many tie with it."""
    above, tied = ranking.ranks(
        table_scorer(pairs, n_items), block.user_ptr, block.item, n_items, block.excluded_ptr, block.excluded.item
    )
    return above.astype(np.int64), tied.astype(np.int64)


def table_lists(name: str, block: Block, pairs: Pairs, n_items: int, k: int) -> tuple[Ints, int]:
    """The first k items of every user: by rank as they are, where a rank that is left out is a gap; or by score."""
    if "rank" not in pairs.numbers:
        return best_lists(name, table_scorer(pairs, n_items), block, n_items, k)
    rank = pairs.numbers["rank"].astype(np.int64)
    near = (rank <= k) & (pairs.item >= 0)
    lists = np.full((block.n_users, k), -1, np.int32)
    lists[pairs.user[near], rank[near] - 1] = pairs.item[near]
    return lists, 0


def best_lists(name: str, scores_of: Scorer, block: Block, n_items: int, k: int) -> tuple[Ints, int]:
    """The k best candidates of every user of a block, and of how many users one that is left out ties with the last."""
    try:
        return selecting.best_lists(scores_of, (block.n_users, n_items), k, block.excluded_ptr, block.excluded.item)
    except UndefinedError as error:
        raise UndefinedError(f"model {name!r}: {error}") from error
