"""Whether the default threshold fits the ratings: what it makes relevant, and a better one otherwise."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from openloop.core.feedback import Array
from openloop.core.metric import reaches
from openloop.core.positives import only_positives
from openloop.support.wording import percent

MOST, LEAST = 0.9, 0.001  # shares of relevant rows beyond which a threshold tells nothing apart
TOP = 0.2  # of the rows: what a proposed threshold makes relevant, about


@dataclass(frozen=True, slots=True, kw_only=True)
class Relevance:
    """How many of the rows a threshold makes relevant, a better one, and the share of rows that reach it."""

    rows: int
    relevant: int
    threshold: float
    span: tuple[float, float]
    proposal: float
    reached: float
    positives: bool = False  # the log does not say of anything that it was not liked, for any threshold

    @property
    def warning(self) -> str | None:
        """That nearly all rows or nearly none are relevant, with the remedy; None where the threshold fits."""
        share, (low, high) = self.relevant / self.rows, self.span
        binary = self.threshold == 1 and {low, high} <= {0.0, 1.0}  # where no other threshold tells more apart
        if self.positives or binary or LEAST <= share <= MOST:
            return None
        return (
            f"ratings run from {low:g} to {high:g}, and the default threshold {self.threshold:g} makes "
            f"{percent(share)} of the rows relevant, so metrics of relevant items hardly distinguish models; pass "
            f"threshold= with the rating from which an item is liked, such as threshold={self.proposal:g}, "
            f"which {percent(self.reached)} of the rows reach"
        )


def of_levels(levels: Array, counts: Array, threshold: float, *, positives: bool = False) -> Relevance:
    """What a threshold makes of the rows of each rating, in rising order."""
    low, high = float(levels[0]), float(levels[-1])
    above = counts[::-1].cumsum()[::-1]  # the rows that reach each level
    total = int(above[0])
    at = int(np.argmin(np.abs(above / total - TOP)))
    return Relevance(
        rows=total, relevant=int(counts[reaches(levels, threshold)].sum()), threshold=threshold, span=(low, high),
        proposal=float(levels[at]), reached=float(above[at] / total), positives=positives or only_positives(low, high),
    )  # fmt: skip
