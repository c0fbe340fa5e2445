"""The lists of models that stay in their engine: reduced there to sums by user and by item."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import narwhals as nw
import numpy as np

from openloop.core.feedback import Floats
from openloop.core.lists import ListMetric, ListSums
from openloop.core.metric import Column
from openloop.errors import UndefinedError
from openloop.sources.frames.collecting import FrameTally, together
from openloop.sources.frames.joining import Joined
from openloop.sources.frames.opening import PAIR
from openloop.sources.frames.predicting import beside_pairs, without_pairs
from openloop.sources.frames.rows import STRATUM, USER, Pass
from openloop.sources.lists import list_notes
from openloop.sources.question import Question
from openloop.sources.rules import unlisted


class EntryColumns:
    """`ListColumns` as expressions."""

    rows = nw.col("rows")
    shared = nw.col("shared")

    def __init__(self, users: int) -> None:
        self.users = float(users)

    def log2(self, x: Column) -> Column:
        """The logarithm to base 2."""
        return x.log(2)

    def where(self, condition: Column, yes: Column, no: Column) -> Column:
        """`yes` where the condition holds, else `no`."""
        return nw.when(condition).then(_expression(yes)).otherwise(_expression(no))


class FrameLists:
    """Lists from tables with ranks, or from the scores of all items; see `sources.lists.ListSource`."""

    def __init__(self, joined: Joined, asked: Question, population: tuple[int, int]) -> None:
        self.models = joined.models
        self._joined, self._asked = joined, asked
        self._users, self._items = population
        self._without: dict[str, int] = {}

    def refusal(self, metric: ListMetric) -> str | None:
        """Why these models cannot give that metric."""
        if metric.needs == "item_features":
            return "needs lists in memory; read the log with ol.read."
        if metric.spread is None and self._users > self._asked.max_users:
            return f"needs sums of each user; raise max_users= above the {self._users:,} users."
        for name, table in self._joined.rankings.items():
            if table.frame is None:
                return f"model {name!r} is a column of the log, which holds no whole lists; give a table."
            if table.rank is None and table.counts:
                return f"model {name!r} counts candidates above its rows, and has no lists; give ranks, or all scores."
        return unlisted(self._joined.coverage, metric)

    def notes(self) -> list[str]:
        """Of whom there is no list; how ties were broken is not counted here."""
        return list_notes(self._without, {}, self._users)

    def sums(self, metrics: Sequence[ListMetric]) -> dict[str, ListSums]:
        """The sums of each model's lists, all of the same users in the same order."""
        k, compared = metrics[0].k, any(m.needs == "running" for m in metrics)
        lists = [self._top(at, k) for at in range(len(self.models))]
        # All models' lists in one frame, the model as the stratum: each is summed once.
        tagged = nw.concat([e.with_columns(nw.lit(at).cast(nw.Int64()).alias(STRATUM)) for at, e in enumerate(lists)])
        running = lists[self.models.index(str(self._asked.running))] if compared else None
        gains = {(m.name,): m.gain(EntryColumns(self._users)) for m in metrics if m.gain is not None}
        columns = {("length",): nw.lit(1.0)} | gains
        by_user = Pass(
            frame=self._columns(tagged, running), columns=columns, strata=max(len(lists), 2), parts=self._joined.parts
        )
        exposed, *tables = together([_exposed(tagged), *map(by_user.tally, by_user.batches)])
        reduced, exposures = by_user.reduced(tables), self._exposures(exposed)
        sums = reduced.on(reduced.ids, self._users)
        return {
            model: self._sums(model, {key: v[:, at] for key, v in sums.items()}, exposures[at])
            for at, model in enumerate(self.models)
        }

    def _top(self, at: int, k: int) -> Any:
        """The entries (u, i) of a model's lists of k items."""
        table, excluded = self._joined.rankings[self.models[at]], self._joined.excluded
        if table.rank is not None:
            return table.frame.filter(nw.col(table.rank) <= k).select(*PAIR)
        scores = table.frame.select(*PAIR, nw.col(str(table.score)).alias("s"))
        return self._joined.parts.each(partial(_first, k), scores, *([] if excluded is None else [excluded.pairs]))

    def _columns(self, entries: Any, running: Any) -> Any:
        """The entries with n_i, and whether the running model has them, too."""
        found = entries.join(self._rows(), on="i", how="left").with_columns(nw.col("rows").fill_null(0.0))
        if running is None:
            return found
        shared = running.with_columns(nw.lit(1.0).alias("shared"))
        joined = self._joined.parts.each(beside_pairs, found, shared)
        return joined.with_columns(nw.col("shared").fill_null(0.0))

    def _rows(self) -> Any:
        """n_i of each item that has rows."""
        excluded = self._joined.excluded
        pairs = self._joined.frame.select(*PAIR) if excluded is None else excluded.given
        return pairs.with_columns(nw.lit(1.0).alias("rows")).group_by("i").agg(nw.col("rows").sum())

    def _exposures(self, table: Any) -> list[Floats]:
        """How many lists of each model hold each item; items that none holds come last."""
        of, counts = table[STRATUM].to_numpy(), table["x"].cast(nw.Float64()).to_numpy()
        return [self._padded(model, counts[of == at]) for at, model in enumerate(self.models)]

    def _padded(self, model: str, found: Floats) -> Floats:
        if len(found) > self._items:
            raise UndefinedError(
                f"model {model!r} lists {len(found):,} items, the population has {self._items:,}; pass population=."
            )
        return np.pad(found, (0, self._items - len(found)))

    def _sums(self, model: str, sums: Mapping[Any, Floats], exposure: Floats) -> ListSums:
        length = sums["length",]
        self._without[model] = int(np.count_nonzero(length == 0))
        values = {
            key[0]: np.divide(total, length, out=np.full(len(length), np.nan), where=length > 0)
            for key, total in sums.items()
            if key != ("length",)
        }
        return ListSums(length=length, exposure=exposure, values=values)


def _first(k: int, scores: Any, *excluded: Any) -> Any:
    """The entries (u, i) of k items with the highest scores of each user, of those that are not excluded."""
    # Of equal scores the smaller id leads: the place of a tied block, and inside it that of the id.
    placed = without_pairs(scores, *excluded).with_columns(
        nw.col("s").rank("min", descending=True).over(USER).cast(nw.Float64()).alias("block"),
        nw.col("i").rank("min").over(USER, "s").cast(nw.Float64()).alias("inside"),
    )
    return placed.filter(nw.col("block") + nw.col("inside") - 1.0 <= k).select(*PAIR)


def _exposed(tagged: Any) -> FrameTally:
    """How many lists of each model hold each item."""
    return FrameTally.sums(tagged.select(STRATUM, "i", nw.lit(1.0).alias("x")), ["x"], by=[STRATUM, "i"])


def _expression(x: Any) -> Any:
    return x if isinstance(x, nw.Expr) else nw.lit(float(x))
