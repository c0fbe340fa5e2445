"""`ShownQuestion`: what is asked of rankers and impressions, checked once and handed down whole."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from openloop.errors import InputError
from openloop.estimators.shown import ShownMethod, shown_method, shown_metric
from openloop.support.arguments import check_level

CANDIDATES = ("all", "shown")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ShownQuestion:
    """What is asked of rankers and impressions; see `evaluate` for each."""

    metrics: Sequence[str] | str | None = None
    estimators: Sequence[str | ShownMethod] | str | None = None
    candidates: str = "all"
    level: float = 0.95
    columns: Mapping[str, Any] = field(default_factory=dict[str, Any])  # of the models' tables, as far as named
    measures: tuple[str, ...] = field(init=False)
    methods: tuple[ShownMethod, ...] = field(init=False)

    def __post_init__(self) -> None:
        check_level("evaluate", self.level)
        if self.candidates not in CANDIDATES:
            raise InputError(f'evaluate: candidates must be "all" or "shown", got {self.candidates!r}.')
        measures = [shown_metric(name) for name in _listed("metrics", self.metrics, ("clicks",))]
        methods = [shown_method(name) for name in _listed("estimators", self.estimators, ("snpbm", "sniips"))]
        object.__setattr__(self, "measures", tuple(dict.fromkeys(measures)))
        object.__setattr__(self, "methods", tuple({m.name: m for m in methods}.values()))

    @property
    def imputation(self) -> Any:
        """A reward for each item, which a doubly robust estimator brings along."""
        return next((m.imputation for m in self.methods if m.imputation is not None), None)

    @property
    def reorders(self) -> bool:
        """Whether models reorder what was shown."""
        return self.candidates == "shown"


def _listed(name: str, given: Any, default: tuple[str, ...]) -> list[Any]:
    if given is None:
        return list(default)
    found = [given] if isinstance(given, str | ShownMethod) else list(given)
    if not found:
        raise InputError(f"evaluate: {name} is empty; name at least one.")
    return found
