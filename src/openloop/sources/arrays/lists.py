"""The lists of models over a Feedback, as arrays of item codes, and their sums by user and by item."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from openloop.core.covariates import Covariates
from openloop.core.feedback import Feedback, Floats
from openloop.core.lists import ListMetric, ListSums
from openloop.core.metric import Column
from openloop.metrics.lists import mean_cosines
from openloop.sources.lists import list_notes
from openloop.sources.outcomes import Exclusion, held, top_lists
from openloop.sources.question import Question
from openloop.sources.rules import Coverage, unlisted

ItemLists = npt.NDArray[np.int32]  # (U, k), -1 where a list is shorter


class Entries:
    """`ListColumns` of the entries of all lists, as arrays; `shared` is None where it is not asked for."""

    def __init__(self, users: int, rows: Floats, shared: Floats | None) -> None:
        self.users, self.rows, self.shared = float(users), rows, shared

    def log2(self, x: Column) -> Column:
        """The logarithm to base 2."""
        return np.log2(x)

    def where(self, condition: Column, yes: Column, no: Column) -> Column:
        """`yes` where the condition holds, else `no`."""
        return np.where(condition, yes, no)


class ArrayLists:
    """Lists of models that score all items, or of tables with ranks; see `sources.lists.ListSource`."""

    def __init__(
        self,
        models: Mapping[str, Any],
        log: Feedback,
        exclusion: Exclusion,
        coverage: Mapping[str, Coverage],
        asked: Question,
    ) -> None:
        self.models = tuple(models)
        self._given, self._log, self._exclusion, self._coverage, self._asked = models, log, exclusion, coverage, asked
        trained = log if asked.trained is None else asked.trained
        self._rows = np.bincount(trained.item, minlength=log.n_items).astype(np.float64)  # n_i
        self._depth = max((m.k for m in asked.list_measures), default=1)
        self._without, self._tied = dict[str, int](), dict[str, int]()
        self.longest = cache(self._longest)

    def refusal(self, metric: ListMetric) -> str | None:
        """Why these models cannot give that metric."""
        return unlisted(self._coverage, metric)

    def notes(self) -> list[str]:
        """Of whom there is no list, and where ties decided."""
        return list_notes(self._without, self._tied, self._log.n_users)

    def sums(self, metrics: Sequence[ListMetric]) -> dict[str, ListSums]:
        """The sums of each model's lists."""
        compared = any(m.needs == "running" for m in metrics)
        running = self._cells(self._top(str(self._asked.running), metrics[0].k)) if compared else None
        return {model: self._sums(self._top(model, metrics[0].k), metrics, running) for model in self.models}

    def _longest(self, model: str) -> ItemLists:
        """The lists down to the largest k, best first."""
        lists, tied = top_lists(model, self._given[model], self._log, self._exclusion, self._depth)
        self._without[model], self._tied[model] = int(np.count_nonzero((lists < 0).all(axis=1))), tied
        return lists

    def _top(self, model: str, k: int) -> ItemLists:
        """The k best, by item: in which order a list has them does not matter."""
        return np.sort(self.longest(model)[:, :k], axis=1)

    def _cells(self, lists: ItemLists) -> npt.NDArray[np.int64]:
        """The entries' flat positions in the grid, ascending."""
        user, place = np.nonzero(lists >= 0)
        return user * np.int64(self._log.n_items) + lists[user, place]

    def _sums(self, lists: ItemLists, metrics: Sequence[ListMetric], running: Any) -> ListSums:
        U, I = self._log.n_users, self._log.n_items
        cells = self._cells(lists)
        user, item = np.divmod(cells, I)
        length = np.bincount(user, minlength=U).astype(np.float64)
        shared: Any = None if running is None else held(running, cells) * 1.0 if len(running) else np.zeros(len(cells))
        x = Entries(U, self._rows[item], shared)
        values: dict[str, Floats] = {}
        for metric in metrics:
            if metric.gain is not None:
                total: Any = np.bincount(user, metric.gain(x), minlength=U)
                values[metric.name] = np.divide(total, length, out=np.full(U, np.nan), where=length > 0)
            elif metric.spread is None:
                values[metric.name] = mean_cosines(lists, self._covariates())
        exposure: Any = np.bincount(item, minlength=I)
        return ListSums(length=length, exposure=exposure.astype(np.float64), values=values)

    def _covariates(self) -> Floats:
        found = Covariates.of(self._asked.item_features, self._log.items, "item")
        return np.zeros((self._log.n_items, 1)) if found is None else found.values
