"""A function of each block, computed by threads; results come in the order of blocks, whatever the threads did."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

from threadpoolctl import threadpool_limits

Result = TypeVar("Result")

AHEAD = 2  # blocks for each thread whose results may wait for an earlier one


def run_blocks(work: Callable[[int], Result], n_blocks: int, threads: int | None = None) -> Iterator[Result]:
    """work(0), work(1), …, work(n_blocks - 1), in this order; an error or Ctrl-C ends it when begun blocks are done."""
    threads = threads or os.cpu_count() or 1
    waiting: deque[Future[Result]] = deque()
    with threadpool_limits(1, "blas"), ThreadPoolExecutor(threads) as pool:
        try:
            for block in range(n_blocks):
                waiting.append(pool.submit(work, block))
                if len(waiting) == AHEAD * threads:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()
