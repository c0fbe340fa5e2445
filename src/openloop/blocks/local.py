"""Blocks on this machine: joined once, held or spilled, and worked on by threads."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Protocol, TypeVar

from openloop.blocks.block import Block
from openloop.blocks.joining import Join, JoinFacts
from openloop.blocks.passes import run_blocks
from openloop.blocks.store import Budget, Shelf, bounds
from openloop.support.progress import Step, silent

Result = TypeVar("Result")


class Blocks(Protocol):
    """All blocks of a log, wherever they are."""

    facts: JoinFacts

    def map(self, work: Callable[[Block], Result]) -> Iterator[Result]:
        """What `work` makes of each block, in their order."""
        ...

    def update(self, work: Callable[[Block], tuple[Block, Result]]) -> Iterator[Result]:
        """The same, where `work` gives the block anew, too, as later passes see it."""
        ...

    def close(self) -> None:
        """Give back what they take."""
        ...


class LocalBlocks:
    """Blocks in memory, or on disk beyond a budget of bytes; their number depends on the log's size alone."""

    def __init__(self, join: Join, budget: Budget, step: Step = silent, bounds_of: Any = bounds) -> None:
        self._bounds: list[tuple[int, int]] = bounds_of(join.log.store.rows)
        self._shelf = Shelf(budget)
        self._step = step
        self._names: dict[int, list[str]] = {}
        self._join = join
        self.facts = JoinFacts()
        for facts in self._run("joining rows and predictions", self._joined):
            self.facts = self.facts + facts
        for dealt in join.dealt:
            dealt.store.close()

    def map(self, work: Callable[[Block], Result]) -> Iterator[Result]:
        """What `work` makes of each block, in their order."""
        return self._run("adding up", lambda k: work(self._load(k)))

    def update(self, work: Callable[[Block], tuple[Block, Result]]) -> Iterator[Result]:
        """The same, where `work` gives the block anew, too, as later passes see it."""
        return self._run("asking models", partial(self._updated, work))

    def close(self) -> None:
        """Give memory and disk back."""
        self._shelf.close()

    def _run(self, what: str, work: Callable[[int], Result]) -> Iterator[Result]:
        n_blocks = len(self._bounds)
        for k, result in enumerate(run_blocks(work, n_blocks)):
            if n_blocks > 1:
                self._step(f"{what}, block {k + 1} of {n_blocks}", k / n_blocks)
            yield result

    def _joined(self, k: int) -> JoinFacts:
        first, last = self._bounds[k]
        block, facts = self._join(first, last)
        for dealt in self._join.dealt:
            dealt.store.release(first, last)
        self._keep(k, block)
        return facts

    def _updated(self, work: Callable[[Block], tuple[Block, Result]], k: int) -> Result:
        block, result = work(self._load(k))
        self._keep(k, block)
        return result

    def _keep(self, k: int, block: Block) -> None:
        frames = block.frames()
        self._names[k] = list(frames)
        for name, frame in frames.items():
            self._shelf.put((k, name), frame)

    def _load(self, k: int) -> Block:
        return Block.of_frames({name: self._shelf.get((k, name)) for name in self._names[k]})
