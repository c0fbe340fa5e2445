"""What every part of the page shares: sizes, counts of answers, goals, and a part as words, goals and tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Any, Literal

from openloop.studies.kit.running import Run

Answer = Literal["right", "wrong", "undecided", "conditional"]
ANSWERS: tuple[Answer, ...] = ("right", "wrong", "undecided", "conditional")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """How many logs stand behind each figure, and how large the completed worlds are."""

    cases: int = 200  # logs of each case
    coverage: int = 1000  # logs of each setting
    decisions: int = 20  # logs of each data set and way of being biased
    turning: int = 2000  # logs of each Γ₀
    users: int = 400
    items: int = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What a part is measured with."""

    run: Run
    sizes: Sizes

    def batches(self, logs: int, size: int) -> Iterator[dict[str, int]]:
        """Seeds in batches: a trial that takes milliseconds is not worth a file."""
        for first in range(0, logs, size):
            yield {"first": first, "count": min(size, logs - first)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """What was promised, what came out, and whether that keeps the promise."""

    text: str
    found: str
    met: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table of texts."""

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    caption: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A section of the page."""

    title: str
    words: str
    tables: tuple[Table, ...]
    goals: tuple[Goal, ...] = ()
    left_out: tuple[str, ...] = ()  # what could not be measured, and why


Measure = Callable[[Asked], Part]


def tallied(answers: Iterable[Any]) -> Counter[str]:
    """How often each answer was given."""
    return Counter(str(answer) for answer in answers)


def share(part: int, whole: int) -> str:
    """A share in percent; a dash of nothing."""
    return f"{part / whole:.1%}" if whole else "–"


def with_error(rate: float, n: int) -> str:
    """A rate with its standard error from n logs."""
    return f"{rate:.3f} ± {sqrt(max(rate * (1 - rate), 0.25 / n) / n):.3f}" if n else "–"


def missed(names: Sequence[str]) -> str:
    """The settings that miss a goal, for the page."""
    return "all meet it" if not names else f"missed by {', '.join(names)}"
