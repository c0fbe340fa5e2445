"""λ by cross-validation, searched from a place of a grid outwards until its least error is not at the end."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple


@dataclass(frozen=True, slots=True, kw_only=True)
class OutwardSearch:
    """The λ that may be tried, in order; the place where the search starts; and when a fit ends.

    A fit ends when a sweep gains less than `tol` of the objective, or after `sweeps`.
    """

    regs: Sequence[float]
    start: int
    tol: float
    sweeps: int


class Validated(NamedTuple):
    """The best of some λ: its cross-validated error, and the model fitted with it to all rows."""

    reg: float
    value: float
    model: Any


Ask = Callable[[Sequence[float]], Validated]  # cross-validates some λ, always on the same folds


def searched(ask: Ask, search: OutwardSearch) -> Validated:
    """The best λ.

    First the start and its two neighbours. While the best is at an end of those tried, the next λ beyond that end. So
    the best has a worse neighbour on each side, or is at an end of the grid.
    """
    regs, n = list(search.regs), len(search.regs)
    low, high = max(search.start - 1, 0), min(search.start + 2, n)
    best = ask(regs[low:high])
    while True:
        at = regs.index(best.reg)
        if at == low > 0:
            low -= 1
            beyond = ask(regs[low : low + 1])
        elif at == high - 1 < n - 1:
            high += 1
            beyond = ask(regs[high - 1 : high])
        else:
            return best
        best = min(best, beyond, key=lambda found: found.value)  # of equals the one nearer to the start
