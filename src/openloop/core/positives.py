"""Whether the ratings of a log say that anything was not liked."""

from __future__ import annotations

BEST = 4.0, 5.0  # of five stars: a log that has no others was filtered


def only_positives(low: float, high: float) -> bool:
    """Whether ratings from `low` to `high` say of nothing that it was not liked: one above 0, or 4 to 5 of five."""
    return low == high > 0 or (low >= BEST[0] and high <= BEST[1])
