"""`Log`: a log whose rows stay where they are, and what is known of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from openloop.core.vocabulary import Vocabulary
from openloop.data.columns import InputTable


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Log:
    """A log whose rows stay where they are: `table` has them, `columns` names those of each role.

    `users` and `items` are the population: ids, a number, or None for those that the log shows. `share` is the
    probability with which a split kept a row of the log that p is about, None where it is unknown; `origin` marks the
    log that parts were split from.
    """

    table: InputTable
    columns: Mapping[str, str]
    users: Vocabulary | int | None = None
    items: Vocabulary | int | None = None
    share: float | None = 1.0
    origin: Any = None
    propensity: Any = None  # a model that was fitted on this log, in the place of a column
    by_items: bool = False  # p were fitted to each item's rows of this log
    positives: bool = False
    floor: float = 0.0
    item_rows: Any = None
    executors: bool = True  # of Spark, which have openloop and reduce the rows; else the driver reads them
    groups: Mapping[str, str] = field(default_factory=dict[str, str])  # columns by grouping
    notes: tuple[str, ...] = ()
