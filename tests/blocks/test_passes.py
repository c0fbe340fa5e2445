"""Blocks on threads: order, look-ahead, and what ends a pass early."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from itertools import islice
from typing import Any

import numpy as np
import pytest
from threadpoolctl import threadpool_info

from openloop.blocks.passes import AHEAD, Together, run_blocks


def blas_threads():
    return [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]


@pytest.mark.parametrize("threads", [1, 2, 7, None])
def test_results_come_in_the_order_of_blocks(threads):
    def work(block):
        time.sleep(0.002 * (block % 3))
        return block

    assert list(run_blocks(work, 40, threads)) == list(range(40))
    assert list(run_blocks(work, 0, threads)) == []


def test_few_blocks_are_worked_on_before_their_turn():
    begun = []
    blocks = run_blocks(begun.append, 100, threads=2)
    for n_done in range(1, 101):
        next(blocks)
        time.sleep(0.001)
        assert len(begun) <= n_done - 1 + 2 * AHEAD
    assert list(blocks) == []
    assert sorted(begun) == list(range(100))


def test_the_first_error_in_the_order_of_blocks_ends_the_pass():
    begun = []

    def work(block):
        begun.append(block)
        if block == 3:
            time.sleep(0.01)
        if block >= 3:
            raise ValueError(block)

    with pytest.raises(ValueError, match="3"):
        list(run_blocks(work, 1000, threads=4))
    assert max(begun) <= 3 + 4 * AHEAD


def test_who_stops_early_leaves_the_rest_undone():
    begun = []
    with closing(run_blocks(begun.append, 1000, threads=2)) as blocks:
        list(islice(blocks, 3))
    assert len(begun) <= 3 + 2 * AHEAD
    time.sleep(0.01)
    assert len(begun) <= 3 + 2 * AHEAD


@pytest.mark.skipif(os.name != "posix", reason="signals of other systems")
def test_ctrl_c_ends_a_pass():
    begun = []

    def work(block):
        begun.append(block)
        if block == 2:
            os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.05)

    with pytest.raises(KeyboardInterrupt):
        list(run_blocks(work, 1000, threads=2))
    assert len(begun) < 20


def test_blas_has_one_thread_meanwhile():
    before = blas_threads()
    assert np.ones((2, 2)).dot(np.ones((2, 2))).sum() == 8
    assert all(set(counts) == {1} for counts in run_blocks(lambda _: blas_threads(), 5))
    assert blas_threads() == before
    with suppress(ZeroDivisionError):
        for block in run_blocks(lambda block: block, 5):
            _ = 1 / block
    assert blas_threads() == before


# -- common passes -------------------------------------------------------------------------------------------


def test_questions_that_are_asked_together_share_their_passes() -> None:
    passes: list[int] = []

    def over(work: Any) -> Iterator[Any]:
        passes.append(1)
        return map(work, (1.0, 2.0, 3.0))

    together = Together(over)

    def twice() -> float:
        largest = max(together.over(lambda block: block))
        return sum(together.over(lambda block: block / largest))

    assert together.answer([twice, lambda: sum(together.over(lambda block: 10 * block)), lambda: "none"]) == [
        2.0, 60.0, "none"
    ]  # fmt: skip
    assert len(passes) == 2
    assert together.answer([]) == []


@pytest.mark.parametrize("fails", ["question", "pass"])
def test_an_error_ends_all_questions(fails: str) -> None:
    def over(work: Any) -> Iterator[Any]:
        yield work(0 if fails == "pass" else 1)

    together = Together(over)

    def question() -> float:
        return 1 / next(together.over(lambda block: 1 // block)) - 1

    with pytest.raises(ZeroDivisionError):
        together.answer([question, lambda: 1 // 0 if fails == "question" else 1])
