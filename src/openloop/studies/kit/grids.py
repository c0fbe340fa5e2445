"""Settings chosen from a grid: whether a choice is the least or the largest value that was tried."""

from __future__ import annotations

from collections.abc import Sequence

LEAST, LARGEST = "↓", "↑"
EDGES = (
    f"{LEAST} and {LARGEST} mark a chosen setting that is the least or the largest of those tried: a wider grid might "
    "choose another."
)


def edge(value: float, grid: Sequence[float]) -> str:
    """The mark of a value at an end of its grid; a grid of one value leaves no choice."""
    low, high = min(grid), max(grid)
    if low == high:
        return ""
    return LEAST if value == low else LARGEST if value == high else ""


def told(value: float, grid: Sequence[float]) -> str:
    """The value, and the mark of an end of its grid."""
    return f"{value:g}{edge(value, grid)}"
