"""`Request`: one set of moments that estimates need; and what is told of the rows beside them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from openloop.core.metric import Metric
from openloop.moments.setting import Strata
from openloop.moments.terms import Needed


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One set of moments: of a model, or (two names) of the difference of a pair."""

    metric: Metric
    models: tuple[str, ...]
    strata: Strata | None = None
    imputed: bool = False
    needed: Needed = field(default_factory=Needed)

    def single(self, model: str) -> Request:
        """What a pair needs of one of its models."""
        return replace(self, models=(model,), needed=replace(self.needed, pair=False, parts=False))


def strata_names(n: int) -> tuple[str, ...]:
    """Q1, Q2 …, from the least propensity to the largest, as in the paper."""
    return tuple(f"Q{s + 1}" for s in range(n))


@dataclass(frozen=True, slots=True, kw_only=True)
class StrataFacts:
    """What the scored rows of each stratum are."""

    names: tuple[str, ...]
    rows: tuple[int, ...]
    items: tuple[int, ...]
    limits: tuple[tuple[float, float] | None, ...]  # the least and the largest p; None where p is not known


@dataclass(frozen=True, slots=True, kw_only=True)
class LogFacts:
    """What was scored. `ratings` counts the rows of each rating, empty where they are too many to list.

    `masses` are their Σw over all cells, empty without propensities.
    """

    rows: int
    users: int
    items: int
    scored_users: int
    ratings: tuple[tuple[float, int], ...]
    span: tuple[float, float]  # the lowest and the highest rating
    threshold: float
    excluded: int | None = None  # rows that leave the rankings; None: nothing was excluded
    dropped: int = 0  # rows of the log that some model does not predict
    masses: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """What a model says of the scored rows: its range, and the share of rows where it says the rating itself."""

    low: float
    high: float
    copied: float
    filled: float = 0.0  # the share of rows without a prediction, which count as the furthest rating
