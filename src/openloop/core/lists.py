"""`ListMetric`: what kind of items a model lists for users, liked or not.

List metrics need no ratings and no propensities. They describe a model and do not judge it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol

from openloop.core.feedback import Floats
from openloop.core.metric import Column
from openloop.errors import InputError

LISTS = "lists"  # in the place of an estimator's name: what is listed is known, so nothing is estimated


class ListColumns(Protocol):
    """What a gain may use of an entry of a list; one implementation holds arrays, another expressions."""

    users: float  # U
    rows: Column  # n_i, the rows of the entry's item that models may have been trained on
    shared: Column  # 1 where the running model lists the item for that user, too; else 0

    def log2(self, x: Column) -> Column:
        """The logarithm to base 2."""
        ...

    def where(self, condition: Column, yes: Column, no: Column) -> Column:
        """`yes` where the condition holds, else `no`."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ListMetric:
    """A named property of lists of k items.

    With a `gain` it is the mean over users of the mean over their list; with `spread` a function of how many lists
    hold each item; with neither, the mean over users of the mean over all pairs of items in their list. `needs` names
    what must be given for it.
    """

    name: str
    k: int
    gain: Callable[[ListColumns], Column] | None = None
    spread: Callable[[Floats], float] | None = None
    needs: Literal["", "running", "item_features"] = ""
    running: str | None = None  # the model whose lists others are compared with

    def __post_init__(self) -> None:
        if self.k < 1:
            raise InputError(f"ListMetric {self.name!r}: k must be at least 1, got {self.k}.")

    def __repr__(self) -> str:
        return f"ListMetric({self.name!r})"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ListSums:
    """The lists of one model, cut at one k: items per user, users per item, and each metric's value per user."""

    length: Floats  # (U,), 0 where a user has no list
    exposure: Floats  # (I,), the lists that hold each item
    values: Mapping[str, Floats] = field(default_factory=dict[str, Floats])  # by metric (U,), NaN where there is none
