"""`Question`: what is asked of models and a log, checked once and handed down whole."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from openloop.core.lists import ListMetric
from openloop.core.metric import Metric
from openloop.data.columns import Column
from openloop.errors import InputError, quoted
from openloop.estimators.edges import Bins
from openloop.estimators.naming import Method, method
from openloop.metrics.naming import any_metric
from openloop.moments.table_rules import check_missing
from openloop.support.arguments import check_level, is_number

ERRORS = ("users", "cells")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Question:
    """What is asked of models and a log; see `evaluate` for each. `groups` are groupings of its rows by name.

    `measures`, `list_measures` and `methods` are the metrics and estimators of those names, each once.
    """

    metrics: Sequence[str | Metric | ListMetric]
    estimators: Sequence[str | Method]
    exclude: Any = None
    trained_on: Any = None  # what models were trained on, where that is not `exclude`
    threshold: float | None = None
    missing: str = "error"
    level: float = 0.95
    columns: Mapping[str, Column] = field(default_factory=dict[str, Any])  # of models' tables, as far as named
    floor: float = 0.0  # under p of a scanned log
    sample: Any = None  # ratings of cells drawn at random
    groups: Mapping[str, Any] = field(default_factory=dict[str, Any])
    running: str | None = None  # the model in production; other lists are compared with its lists
    item_features: Any = None  # Covariates or an array, for how alike the items of a list are
    by_items: bool = False  # the log's p were fitted to each item's rows of it
    errors: Any = "users"  # "cells", or a Refit
    rng: Any = 0
    device: Any = None  # "cuda" counts ranks on a GPU
    checked: bool = False  # tables of models were checked before, beside another log
    lenient: bool = False  # metrics that some model cannot serve are left out, with the reason
    guessed: tuple[str, ...] = ()  # default metrics: cut where the shortest list ends
    measures: tuple[Metric, ...] = field(init=False)
    list_measures: tuple[ListMetric, ...] = field(init=False)
    methods: tuple[Method, ...] = field(init=False)

    def __post_init__(self) -> None:
        check_level("evaluate", self.level)
        check_missing(self.missing)
        if isinstance(self.errors, str) and self.errors not in ERRORS:
            raise InputError(f'evaluate: errors must be "users", "cells" or ol.Refit(), got {self.errors!r}.')
        if self.threshold is not None and not (is_number(self.threshold) and -math.inf < self.threshold < math.inf):
            raise InputError(
                f"evaluate: threshold={quoted(self.threshold)}: give the rating from which items are relevant, such as "
                "4."
            )
        asked = _distinct([any_metric(m) for m in listed("metrics", self.metrics)])
        object.__setattr__(self, "measures", tuple(m for m in asked if isinstance(m, Metric)))
        lists = [m for m in asked if isinstance(m, ListMetric)]
        if self.running is not None:
            lists = [replace(m, running=m.running or self.running) if m.needs == "running" else m for m in lists]
        object.__setattr__(self, "list_measures", tuple(lists))
        object.__setattr__(self, "methods", _distinct([method(e) for e in listed("estimators", self.estimators)]))

    @property
    def trained(self) -> Any:
        """What models were trained on, None where unknown."""
        return self.exclude if self.trained_on is None else self.trained_on

    @property
    def stratifications(self) -> tuple[tuple[int, Bins], ...]:
        """The strata of propensity that will be asked for, as far as that is known; each once."""
        return strata_of(self.methods)

    @property
    def keeps_tables(self) -> bool:
        """Whether models' tables are looked at beyond the scored rows."""
        return bool(self.list_measures) or any(m.imputes for m in self.methods)

    @property
    def imputation(self) -> Any:
        """Imputed ratings, which a doubly robust estimator brings along."""
        return next((m.imputation for m in self.methods if m.imputation is not None), None)

    @property
    def kinds(self) -> set[str]:
        """Whether metrics on predictions are asked for, on ranks, or both; lists are of ranks."""
        return {m.on for m in self.measures} | ({"rank"} if self.list_measures else set())


def within_lists(asked: Question, depth: int) -> Question:
    """The question with the default metrics cut at `depth`, where the shortest list ends."""

    def cut(given: str | Metric | ListMetric) -> str | Metric | ListMetric:
        known = any_metric(given)
        short = known.k is None or known.k <= depth or known.name not in asked.guessed
        return given if short else f"{known.name.partition('@')[0]}@{depth}"

    return replace(asked, metrics=tuple(map(cut, listed("metrics", asked.metrics))))


def strata_of(methods: Sequence[Method]) -> tuple[tuple[int, Bins], ...]:
    """The strata of estimators, each once."""
    return tuple(dict.fromkeys(m.stratification for m in methods if m.stratification is not None))


def listed(name: str, values: Any, least: int = 1) -> list[Any]:
    """What is asked for, as a list; a single name is one."""
    found = [values] if isinstance(values, str | Metric | ListMetric | Method) else list(values)
    if len(found) < least:
        raise InputError(f"evaluate: {name} is empty; name at least one.")
    return found


def _distinct(values: list[Any]) -> tuple[Any, ...]:
    """Each once, by name; two that were made by `@ol.metric` or `@ol.estimator` may not share one."""
    found = dict[str, Any]()
    for value in values:
        other = found.setdefault(value.name, value)
        if other is not value and (getattr(value, "about", "") or getattr(other, "about", "")):
            raise InputError(f"evaluate: two of your own metrics or estimators are called {value.name!r}; rename one.")
    return tuple(found.values())
