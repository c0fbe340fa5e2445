"""A function of each block, computed by threads; results come in the order of blocks, whatever the threads did."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass
from threading import Condition
from typing import Any, TypeVar

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
                waiting.append(pool.submit(copy_context().run, work, block))  # as NumPy's error state is
                if len(waiting) == AHEAD * threads:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()


@dataclass(frozen=True, slots=True, eq=False)
class Works:
    """Several functions of a block as one."""

    works: Sequence[Callable[[Any], Any]]

    def __call__(self, block: Any) -> list[Any]:
        """What each makes of it."""
        return [work(block) for work in self.works]


class Together:
    """Questions that are asked at the same time: their passes over blocks become one.

    Each question has a thread, which waits when it needs a pass. Once all that are not yet answered wait, the caller's
    thread makes the pass for all of them.
    """

    def __init__(self, over: Callable[[Callable[[Any], Any]], Iterator[Any]]) -> None:
        self._over, self._n_open, self._change = over, 0, Condition()
        self._waiting: list[tuple[Callable[[Any], Any], Future[list[Any]]]] = []

    def answer(self, questions: Sequence[Callable[[], Any]]) -> list[Any]:
        """The answers to all questions; the error of the first that has one is raised."""
        self._n_open = len(questions)
        with ThreadPoolExecutor(max(len(questions), 1)) as pool:
            answers = [pool.submit(self._answered, question) for question in questions]
            while waiting := self._all_waiting():
                self._pass(waiting)
        return [answer.result() for answer in answers]

    def over(self, work: Callable[[Any], Any]) -> Iterator[Any]:
        """What `work` makes of each block, once the others wait, too."""
        results: Future[list[Any]] = Future()
        with self._change:
            self._waiting.append((work, results))
            self._change.notify_all()
        parts = results.result()
        parts.reverse()
        while parts:  # so that what was worked with is free again, though the result is still known elsewhere
            yield parts.pop()

    def _answered(self, question: Callable[[], Any]) -> Any:
        try:
            return question()
        finally:
            with self._change:
                self._n_open -= 1
                self._change.notify_all()

    def _all_waiting(self) -> list[tuple[Callable[[Any], Any], Future[list[Any]]]]:
        """What the open questions wait for, once all of them do; nothing when all are answered."""
        with self._change:
            self._change.wait_for(lambda: len(self._waiting) >= self._n_open)
            waiting, self._waiting = self._waiting, []
            return waiting

    def _pass(self, waiting: Sequence[tuple[Callable[[Any], Any], Future[list[Any]]]]) -> None:
        try:
            parts = list(self._over(Works([work for work, _ in waiting])))
        except BaseException as error:
            for _, results in waiting:
                results.set_exception(error)
            raise
        for k, (_, results) in enumerate(waiting):
            results.set_result([part[k] for part in parts])
