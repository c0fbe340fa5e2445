"""`Question`: what is asked of models and a log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from openloop.core.metric import Metric
from openloop.errors import InputError
from openloop.estimators.naming import Method


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Question:
    """What is asked of models and a log; see `evaluate` for each. `groups` are groupings of its rows by name."""

    metrics: Sequence[str | Metric]
    estimators: Sequence[str | Method]
    exclude: Any = None
    threshold: float | None = None
    missing: str = "error"
    level: float = 0.95
    imputation: Any = None
    user: str | None = None
    item: str | None = None
    rating: str | None = None
    population: tuple[int, int] | None = None
    complete: bool = False
    distinct: bool = False
    max_users: int = 2_000_000
    groups: Mapping[str, Any] = field(default_factory=dict[str, Any])
    lenient: bool = False  # metrics that some model cannot serve are left out, with the reason

    def __post_init__(self) -> None:
        if not 0 < self.level < 1:
            raise InputError(f"evaluate: level must lie strictly between 0 and 1, got {self.level}.")
