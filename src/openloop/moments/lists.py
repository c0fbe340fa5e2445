"""The lists of models for the users of all blocks, and their sums by user and by item."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from openloop.blocks.block import Block
from openloop.blocks.tables import table_lists
from openloop.core.feedback import Floats
from openloop.core.lists import ListMetric, ListSums
from openloop.core.metric import Column
from openloop.core.vocabulary import Int64s, Ints
from openloop.metrics.lists import mean_cosines
from openloop.moments.table_rules import unlisted

TIED = 0.01  # of the users: from here on a note tells how ties were broken


class Entries:
    """`ListColumns` of the entries of all lists; `shared` is None where it is not asked for."""

    def __init__(self, users: int, rows: Floats, shared: Floats | None) -> None:
        self.users, self.rows, self.shared = float(users), rows, shared

    def log2(self, x: Column) -> Column:
        """The logarithm to base 2."""
        return np.log2(x)

    def where(self, condition: Column, yes: Column, no: Column) -> Column:
        """`yes` where the condition holds, else `no`."""
        return np.where(condition, yes, no)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ListPass:
    """The sums of the lists of each model, of the users of a block; all metrics have one k."""

    subject: Any
    metrics: Sequence[ListMetric]
    covariates: Floats | None

    def __call__(self, block: Block) -> dict[str, tuple[ListSums, int, int]]:
        """By model its sums, the users without a list, and those whose list ends among tied items."""
        others = dict.fromkeys(m.running for m in self.metrics if m.running is not None)
        running = {name: self._lists(block, name)[0] for name in others}
        found: dict[str, tuple[ListSums, int, int]] = {}
        for model in self.subject.models:
            lists, tied = self._lists(block, model)
            without = int(np.count_nonzero((lists < 0).all(axis=1)))
            found[model] = self._sums(block, lists, running), without, tied
        return found

    def _lists(self, block: Block, model: str) -> tuple[Ints, int]:
        """The k best, by item: in which order a list has them does not matter."""
        k, n_items = self.metrics[0].k, len(self.subject.population.items)
        if model in block.tables:
            lists, tied = table_lists(model, block, block.tables[model], n_items, k)
        else:
            lists, tied = self.subject.asked[model].lists(block, k)
        return np.sort(lists, axis=1), tied

    def _sums(self, block: Block, lists: Ints, running: Mapping[str, Ints]) -> ListSums:
        n_users, n_items = block.n_users, len(self.subject.population.items)
        cells = _cells(lists, n_items)
        user, item = np.divmod(cells, n_items)
        length = np.bincount(user, minlength=n_users).astype(np.float64)
        rows = self.subject.trained_rows[item].astype(np.float64)
        values: dict[str, Floats] = {}
        for metric in self.metrics:
            if metric.gain is not None:
                other = None if metric.running is None else _cells(running[metric.running], n_items)
                shared = None if other is None else np.isin(cells, other).astype(np.float64)
                x = Entries(self.subject.setting.n_users, rows, shared)
                total: Any = np.bincount(user, metric.gain(x), minlength=n_users)
                values[metric.name] = np.divide(total, length, out=np.full(n_users, np.nan), where=length > 0)
            elif metric.spread is None:
                covariates = np.zeros((n_items, 1)) if self.covariates is None else self.covariates
                values[metric.name] = mean_cosines(lists, covariates)
        exposure: Any = np.bincount(item, minlength=n_items)
        return ListSums(length=length, exposure=exposure.astype(np.float64), values=values)


class BlockLists:
    """Lists of models that score all items, or of tables with ranks; see `sources.lists.ListSource`."""

    def __init__(self, subject: Any, over: Any, by_code: Any, covariates: Floats | None) -> None:
        self.models = subject.models
        self._subject, self._over, self._by_code = subject, over, by_code
        self._covariates = covariates
        self._without, self._tied = dict[str, int](), dict[str, int]()

    def refusal(self, metric: ListMetric) -> str | None:
        """Why these models cannot give that metric."""
        for name in self.models:
            if self._subject.coverage[name].rows_alone:
                return f"model {name!r} tells of the log's rows alone, and has no lists; give ranks, or all scores."
        return unlisted(self._subject.coverage, metric)

    def notes(self) -> list[str]:
        """Of whom there is no list, and where ties decided."""
        return list_notes(self._without, self._tied, self._subject.setting.n_users)

    def sums(self, metrics: Sequence[ListMetric]) -> dict[str, ListSums]:
        """The sums of each model's lists."""
        work = ListPass(subject=self._subject, metrics=metrics, covariates=self._covariates)
        parts: list[Mapping[str, Any]] = list(self._over(work))
        sums: dict[str, ListSums] = {}
        for model in self.models:
            own = [part[model][0] for part in parts]
            if model not in self._without:  # the longest lists come first
                self._without[model] = sum(part[model][1] for part in parts)
                self._tied[model] = sum(part[model][2] for part in parts)
            sums[model] = ListSums(
                length=self._by_code([x.length for x in own]),
                exposure=np.sum([x.exposure for x in own], axis=0),
                values={name: self._by_code([x.values[name] for x in own]) for name in own[0].values},
            )
        return sums


def _cells(lists: Ints, n_items: int) -> Int64s:
    """The entries' flat positions in the grid, ascending."""
    user, place = np.nonzero(lists >= 0)
    return user * np.int64(n_items) + lists[user, place]


def list_notes(without: Mapping[str, int], tied: Mapping[str, int], users: int) -> list[str]:
    """Of how many users a model has no list, and of how many the list ends among tied items."""
    found: list[str] = []
    if some := {model: n for model, n in without.items() if n}:
        found.append(f"users without a list are left out of means over lists: {_counts(some, users)}")
    if some := {model: n for model, n in tied.items() if n > TIED * users}:
        found.append(f"lists that end among tied items take those with the smallest ids: {_counts(some, users)}")
    return found


def _counts(found: Mapping[str, int], users: int) -> str:
    return ", ".join(f"{model} {n:,} of {users:,}" for model, n in found.items())
