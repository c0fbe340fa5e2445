"""Blocks on this machine: rows in memory, or opened from files when their turn comes."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from openloop.core.feedback import Array
from openloop.kernels.least_squares import Rows
from openloop.learners.blocks.user_blocks import Answer, UserBlock, count_blocks, share
from openloop.learners.solvers.projected import Ask, Totals, added

Opened = Callable[[], UserBlock]  # a block may lie in a file until its turn


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LocalBlocks:
    """Blocks that threads of this process work on; sums are added in the order of blocks."""

    parts: Sequence[Opened]
    threads: int
    items: Array  # ids, by code

    def total(self, ask: Ask) -> Totals:
        """See `solvers.projected.Blocks`."""
        return added(self.each(partial(share, ask=ask)))

    def each(self, fn: Callable[[UserBlock], Any]) -> Iterator[Any]:
        """What a function says of each block, in their order; no more than a thread's turn is held ahead."""
        waiting: deque[Future[Any]] = deque()
        with ThreadPoolExecutor(self.threads) as pool:
            for part in self.parts:
                if len(waiting) >= self.threads:
                    yield waiting.popleft().result()
                waiting.append(pool.submit(_apply, fn, part))
            while waiting:
                yield waiting.popleft().result()

    def map(self, answer: Answer, ask: Ask) -> Any:
        """A Polars frame of what `answer` says of each block, under the answer's own names."""
        import polars as pl

        return pl.concat(self.each(lambda block: self._table(answer, block, ask)))

    def _table(self, answer: Answer, block: UserBlock, ask: Ask) -> Any:
        import polars as pl

        found, ids = answer.of(block, ask), {"user": block.users, "item": self.items}
        columns = {
            name: ids[kind][found[name]] if kind in ids else found[name] for name, kind in answer.columns.items()
        }
        frame = pl.DataFrame({name: values for name, values in columns.items() if values.ndim == 1})
        wide = [
            pl.Series(name, values, dtype=pl.Array(_float(values), values.shape[1])).arr.to_list()
            for name, values in columns.items()
            if values.ndim > 1
        ]
        return frame.with_columns(*wide).select(*answer.columns)


def _float(values: Array) -> Any:
    import polars as pl

    return pl.Float32 if values.dtype == np.float32 else pl.Float64


def _apply(fn: Callable[[UserBlock], Any], part: Opened) -> Any:
    return fn(part())


def blocks_of_rows(rows: Rows, items: int, threads: int) -> LocalBlocks:
    """Rows in memory, cut between users into blocks of about equally many."""
    n = count_blocks(len(rows.partner), items)
    cuts = np.searchsorted(rows.ptr, np.linspace(0, len(rows.partner), n + 1)[1:-1])
    edges = np.unique(np.concatenate([[0], cuts, [len(rows)]])).tolist()
    parts = [partial(_cut, rows, first, last) for first, last in pairwise(edges)]
    return LocalBlocks(parts=parts, threads=threads, items=np.arange(items))


def _cut(rows: Rows, first: int, last: int) -> UserBlock:
    ptr, mine = rows.ptr[first : last + 1], slice(rows.ptr[first], rows.ptr[last])
    own = Rows(ptr - ptr[0], rows.partner[mine], rows.y[mine], rows.w[mine])
    return UserBlock(users=np.arange(first, last), rows=own)
