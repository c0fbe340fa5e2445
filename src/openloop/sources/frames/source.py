"""A log and predictions that stay in their engine as a source of Moments: joined, checked and reduced there."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import cache, cached_property, partial
from typing import Any

import narwhals as nw
import numpy as np

from openloop.core.feedback import Array, Floats
from openloop.core.metric import Metric, default_threshold, reaches
from openloop.core.moments import SUMS, Moments
from openloop.core.tilts import Tilts
from openloop.core.weights import WeightSummary
from openloop.errors import InputError
from openloop.estimators.naming import Method
from openloop.metrics.rating import MAX_LEVELS, midpoints
from openloop.sources import remarks
from openloop.sources.frames import facts as frame_facts
from openloop.sources.frames.dealing import Deal, by_cluster, dealt, in_clusters
from openloop.sources.frames.item_cells import ItemCells, weight_on_rare
from openloop.sources.frames.joining import Joined
from openloop.sources.frames.list_gaps import list_gaps
from openloop.sources.frames.lists import FrameLists
from openloop.sources.frames.parting import WHOLE
from openloop.sources.frames.population import population
from openloop.sources.frames.row_facts import RowFacts
from openloop.sources.frames.rows import (
    ROWS,
    STRATUM,
    USER,
    Finish,
    FrameSetting,
    Key,
    Reduced,
    SumTask,
    finished,
)
from openloop.sources.frames.summing import Batch, TakenSums, Wanted
from openloop.sources.frames.tilting import FrameTilter
from openloop.sources.plan import MAX_LISTED, Answers, LogFacts, Request, Strata, StrataFacts, strata_names
from openloop.sources.question import Question
from openloop.sources.terms import Common, assemble, paired
from openloop.support.frames import plain_ids

CLUSTERS = 100_000


class FrameSource:
    """Answers requests by group-bys inside the engine; see `sources.plan.Source`."""

    in_one_pass = True
    levelled = False

    def __init__(self, joined: Joined, asked: Question) -> None:
        self.models = joined.models
        self.held = ExitStack()
        self.notes: list[str] = []
        self._joined, self.coverage = joined, joined.coverage.__getitem__
        self._weighted = bool(joined.weights)
        self._given_threshold = asked.threshold
        self._asked, self._scaled, self._shares = asked, asked.scaled, asked.shares
        self._bounded = any(m.name == "ips" for m in asked.methods)
        self._seen = RowFacts(joined, asked)
        self._seen.refuse()
        self._stratifications = asked.stratifications
        self._n_users, self._n_items = population(joined, self._seen, asked.population, self.notes)
        self._whole = asked.whole
        joined.check_complete(self._n_items)
        self._frame = self._clustered(asked.max_users)
        self._parts = joined.parts if self._deal is None else WHOLE  # clusters have users of all ranges
        # Passes over the rows are shared by the requests that need them.
        self.edges = cache(lambda strata: self._seen.ladder.edges(*strata))
        self.taken = TakenSums(
            rows_for=self._rows_for, n_strata=self._n_strata, base_columns=self._base_columns(), users=self._units,
            rows=int(self._seen.rows.row["n"]), order=self._ids, parts=self._parts,
        )  # fmt: skip
        self.about, self.relevance = cache(self._about), lambda: self._seen.relevance(self._threshold)
        self.answers = cache(self._answers)
        self.common = cache(self._common)
        self.exclusions = cache(self._exclusions)
        self.tilter = cache(self._tilter)
        self.items_within = cache(self._items_within)
        self.gaps = cache(lambda: list_gaps(joined, self._seen.gaps))
        self.item_cells, self.inverse_squares = cache(self._item_cells), cache(self._inverse_squares)

    def remarks(self) -> list[str]:
        """None: whether a model gives all items one score would cost a pass over its scores."""
        return []

    @cached_property
    def _levels(self) -> Floats:
        """The distinct ratings, one more than may be at most; only metrics that need them cost the pass."""
        return np.sort(self._seen.ratings.table["y"].to_numpy())

    @property
    def _middles(self) -> tuple[float, ...] | None:
        middles = midpoints(self._levels)
        return None if middles is None else tuple(middles)

    @property
    def _threshold(self) -> float:
        if self._given_threshold is not None:
            return float(self._given_threshold)
        return default_threshold(self._levels)

    def _check_users(self, seen: int, known: int) -> None:
        """The users of the log are counted when their sums are there, which saves a pass."""
        if seen > known:
            raise InputError(
                f"evaluate: population= has {self._n_users:,} users, the log {seen:,}; give the size of the whole."
            )

    def _clustered(self, max_users: int) -> Any:
        """Above `max_users`, users are dealt to clusters, and only clusters' sums leave the engine."""
        frame, self._deal = self._joined.frame, None
        if self._n_users <= max_users:
            return frame
        groups, excluded = min(CLUSTERS, max_users), self._joined.excluded
        frame = dealt(frame, groups)
        left_out = None if excluded is None else dealt(excluded.counts, groups)
        self._deal = Deal.of(frame, left_out, groups, self._n_users)
        self._check_users(int(self._deal.known.sum()), self._n_users)
        self.notes.append(f"{self._n_users:,} users were assigned to {groups:,} clusters: intervals are over clusters")
        return in_clusters(frame)

    def close(self) -> None:
        """Give back what the engine holds."""
        self.held.close()

    def refusal(self, metric: Metric, method: Method) -> str | None:
        """Why this frame cannot give that estimate."""
        what, excluded = f"{method.name} of {metric.name}", self._joined.excluded
        if metric.name == "accuracy" and self._middles is None:
            return f"{what}: the log has more than {MAX_LEVELS} distinct ratings, too many for levels; use mae or mse."
        if method.weighted and not self._weighted:
            return f"{what} needs propensities; name their column as the third argument."
        if method.weighted and metric.on == "rank" and excluded is not None and excluded.overlap:
            return remarks.undefined_candidates(what, excluded.overlap)
        if metric.kind == "user" and not reaches(self._seen.rows.row["high_y"], self._threshold):
            return remarks.not_reached(what, self._threshold)
        if not self._scaled and remarks.needs_scale(metric, method):
            return remarks.unknown_share(what, remarks.BY_TIME)
        if method.imputes:
            return f"{what} needs imputed losses of every cell; read the log with ol.read."
        pools = metric.kind == "cell" or (metric.pooled and method.pools)
        if self._deal is not None and not pools:
            return f"{what} needs sums of each user; raise max_users= above the {self._n_users:,} users."
        return self._joined.refusal(metric, what)

    def summary(self, metric: Metric) -> WeightSummary | None:
        """The weights of the rows that count for a metric."""
        return self._weight_summary(metric.kind, metric.on)

    def mass(self, on: str) -> float | None:
        """Σw of all scored rows over the candidates."""
        return self.common("cell", on, None).mass

    def _weight_summary(self, kind: str, on: str) -> WeightSummary | None:
        weight = self._joined.weights[on].weight if self._weighted else None
        return None if weight is None else self._seen.weights(kind, weight, self._rows_for(kind, None))

    def _about(self) -> LogFacts:
        """What is scored."""
        counted = frame_facts.rating_counts(self._seen.ratings) if len(self._levels) <= MAX_LISTED else ((), ())
        # Users are counted by sums that estimates will need, too.
        usual = self._stratifications[0] if self._stratifications and self._weighted else None
        scored = len(self.base(usual).ids) if self._deal is None else int(self._deal.scored.sum())
        rows, excluded = self._seen.rows.row, self._joined.excluded
        return LogFacts(
            rows=int(rows["n"]), users=self._n_users, items=self._n_items, scored_users=scored,
            ratings=counted[0], masses=counted[1], span=(rows["low_y"], rows["high_y"]),
            threshold=self._threshold, dropped=self._joined.dropped,
            excluded=None if excluded is None else int(self.exclusions()[1].sum()) + excluded.overlap,
        )  # fmt: skip

    def _answers(self, model: str) -> Answers | None:
        """What a model says of the scored rows."""
        column = f"s{self.models.index(model)}"
        known = column in self._joined.frame.collect_schema().names()
        return frame_facts.answers(self._joined.frame, column, self._joined.filled.get(model, 0.0)) if known else None

    def facts(self, strata: Strata) -> StrataFacts:
        """What the scored rows of each stratum are."""
        n, asked = self._n_strata(strata), self._asked_strata(strata)
        rows, limits = (
            self._seen.ladder.strata(*strata) if isinstance(strata, tuple) and self._weighted else (None, None)
        )
        return StrataFacts(
            names=strata_names(n), items=tuple(self.items_within(asked)[asked.index(strata)]),
            rows=(int(self._seen.rows.row["n"]),) if rows is None else tuple(rows),
            limits=(None,) * n if limits is None else tuple((low, high) for low, high in limits.tolist()),
        )  # fmt: skip

    def _asked_strata(self, strata: Strata) -> tuple[Strata, ...]:
        """The strata, with others that are asked for too."""
        return (*self._stratifications, *([] if strata in self._stratifications else [strata]))

    def _items_within(self, groupings: tuple[Strata, ...]) -> list[list[int]]:
        levels = [(self._level(s), self._n_strata(s)) for s in groupings]
        return frame_facts.items_within(self._frame, levels, self._parts)

    def scored(self, metric: Metric, models: Sequence[str]) -> None:
        """Rows stay in the engine: bounds for each Γ, which need them sorted, are left out."""
        del metric, models

    @property
    def form(self) -> str:
        """What wrong propensities change: their odds, or where these have no scale the weight."""
        return "odds" if self._scaled else "ratio"

    def lists(self, asked: Question) -> FrameLists:
        """What models list for users."""
        return FrameLists(self._joined, asked, (self._n_users, self._n_items))

    def unlisted(self, model: str) -> float:
        """The share of scored rows whose users have no list of a model."""
        return self.gaps()[model].rows if model in self.gaps() else 0.0

    def weight_on_rare(self, fewest: int) -> tuple[float, int] | None:
        """The share of Σw on items with fewer rows in the whole log, where that is known, and the rows on others."""
        if (whole := self._whole) is None or not self._weighted or (joined := self._joined).dropped:
            return None
        return weight_on_rare(joined.frame, joined.weights["prediction"].weight, whole, fewest, joined.parts)

    def tilts(self, metrics: Sequence[Metric], pairs: Sequence[tuple[str, str]]) -> list[Tilts]:
        """Sums of tilted weights of the rows that count for each metric."""
        return self.tilter().tilts(metrics, pairs) if metrics else []

    def _tilter(self) -> FrameTilter:
        rows, setting = partial(self._rows_for, strata=None), lambda metric: self._setting(None, [metric])
        return FrameTilter.of(self._joined, rows, setting, self.about(), self._parts, self._places, self._asked)

    def moments(self, requests: Sequence[Request]) -> dict[Request, Moments]:
        """The moments of each request; what they lack is summed for all of them at once."""
        found: dict[Request, Moments] = {}
        singles = list(dict.fromkeys(r.single(m) for r in requests for m in r.models))
        asked = [*singles, *(r for r in requests if len(r.models) > 1)]
        sums = self._sums(asked)
        for r in asked:
            if len(r.models) == 1:
                found[r] = assemble(r.metric, sums[r], r.wanted, self.common(r.metric.kind, r.metric.on, r.strata))
                if self._deal is not None:  # a variance over cells says nothing about users beside one over clusters
                    found[r] = replace(found[r], squares=None)
        for r in asked:
            if len(r.models) > 1:
                a, b = (found[r.single(m)] for m in r.models)
                found[r] = paired(a, b, sums[r])
        return found

    def _sums(self, requests: Sequence[Request]) -> dict[Request, dict[str, Floats]]:
        """The sums of each request by term."""
        batches = dict.fromkeys((r.metric.kind, r.strata) for r in requests)
        keys: dict[Request, tuple[dict[str, Key], Finish | None]] = {}
        self.taken.take({batch: self._wanted(batch, requests, keys) for batch in batches})
        sums = {batch: self.taken.of(batch, self._units) for batch in batches}
        return {
            r: finished({term: sums[r.metric.kind, r.strata][key] for term, key in terms.items()}, finish)
            for r, (terms, finish) in keys.items()
        }

    def _wanted(self, batch: Batch, requests: Sequence[Request], keys: dict[Request, Any]) -> Wanted:
        """The expressions of a batch's requests; `keys` learns which of them each request needs."""
        own = [r for r in requests if (r.metric.kind, r.strata) == batch]
        setting = self._setting(batch[1], [r.metric for r in own])
        by_user: dict[Key, Any] = {}
        in_total: dict[Key, Any] = {}
        for r in own:
            task = SumTask(metric=r.metric, models=tuple(self.models.index(m) for m in r.models), wanted=r.wanted)
            columns, finish = task.columns(setting, self._joined.ranked)
            keys[r] = {term: task.key(term, setting) for term in columns}, finish
            for term, column in columns.items():
                kept = by_user if term in SUMS or finish is not None else in_total
                kept[task.key(term, setting)] = column
        return Wanted(by_user=by_user, in_total=in_total)

    @property
    def _units(self) -> int:
        return self._n_users if self._deal is None else self._deal.groups

    def _setting(self, strata: Strata | None, metrics: Sequence[Metric]) -> FrameSetting:
        full = nw.lit(float(self._n_items))
        ranked = full if self._joined.excluded is None else full - nw.col("excluded")
        return FrameSetting(
            weights=self._joined.weights,
            threshold=self._threshold if any(m.binary for m in metrics) else np.inf,
            middles=self._middles if any(m.name == "accuracy" for m in metrics) else None,
            cells={"prediction": full, "rank": ranked},
            stratified=self._n_strata(strata) > 1,
        )  # fmt: skip

    def _rows_for(self, kind: str, strata: Strata | None) -> Any:
        frame = self._frame
        if self._n_strata(strata) > 1:
            frame = frame.with_columns(self._level(strata).cast(nw.Int64()).alias(STRATUM))
        return frame if kind == "cell" else frame.filter(reaches(nw.col("y"), self._threshold))

    def _level(self, strata: Strata | None) -> Any:
        """The stratum of a row."""
        level = nw.lit(0.0)
        for edge in self.edges(strata) if self._n_strata(strata) > 1 else ():
            level = level + nw.when(nw.col("p") > edge).then(1.0).otherwise(0.0)
        return level

    def _n_strata(self, strata: Strata | None) -> int:
        return 1 if strata is None or not self._weighted else len(self.edges(strata)) + 1

    def base(self, strata: Strata | None) -> Reduced:
        """rows and mass of every user, over all scored rows."""
        return self.taken.base(strata)

    def _base_columns(self) -> dict[Key, Any]:
        weights = {by.weight for by in self._joined.weights.values()}
        return {ROWS: nw.lit(1.0)} | {("weight", name): nw.col(name) for name in sorted(weights)}

    def _common(self, kind: str, on: str, strata: Strata | None) -> Common:
        base = self.base(strata)
        self._check_users(len(base.ids), self._units)
        ids = self._ids(base.ids)
        sums = base.on(ids, self._units)
        edges = self.edges(strata) if self._n_strata(strata) > 1 else ()
        named: dict[str, Key] = {"rows": ROWS}
        if self._weighted:
            named["mass"] = ("weight", self._joined.weights[on].weight)
        return Common(
            cells=self._cells(on, ids), base={name: sums[key] for name, key in named.items()},
            weights=self._weight_summary(kind, on), edges=edges, scaled=self._scaled,
            limits=self._seen.ladder.strata(*strata)[1] if isinstance(strata, tuple) and self._weighted else None,
            ids=ids if self._deal is None and len(ids) == self._units else None,
            **self._of_cells(on, strata, edges),
        )  # fmt: skip

    def _ids(self, scored: Array) -> Array:
        """The ids of the users in the order of their sums: all of them where they are known, else those with rows."""
        if self._deal is not None:
            return np.arange(self._deal.groups)
        return scored if self._whole is None else self._whole.users

    def _of_cells(self, on: str, strata: Strata | None, edges: tuple[float, ...]) -> dict[str, Any]:
        """What only the p of all cells tells, and what a floor made of p."""
        whole = self._whole
        if whole is None or not self._weighted:
            return {}
        known: dict[str, Any] = {"floored": whole.floored, "kept_weight": whole.kept_weight}
        if whole.p is None:
            return known
        if isinstance(strata, tuple):
            known["catalogue"] = self.item_cells(on).by_stratum(edges, self._places)
        return known | ({"inverse_squares": self.inverse_squares(on)} if self._bounded else {})

    def _item_cells(self, on: str) -> ItemCells:
        """The cells that metrics of one kind are estimated over, where p of each item is known."""
        excluded = self._joined.excluded if on == "rank" else None
        users, pairs = np.ones(self._n_users), None if excluded is None else excluded.pairs
        if self._deal is not None:
            users = self._deal.users
            pairs = None if pairs is None else in_clusters(dealt(pairs, self._deal.groups))
        whole: Any = self._whole
        return ItemCells(frame=self._joined.frame, whole=whole, users=users, excluded=pairs)

    def _inverse_squares(self, on: str) -> float | None:
        s, t = self._shares
        return self.item_cells(on).inverse_squares(s, t if on == "rank" else 0.0) if self._scaled else None

    def _places(self, ids: Any) -> Array:
        """The places of a column of users in their order."""
        return np.searchsorted(self._ids(self.base(None).ids), ids if isinstance(ids, np.ndarray) else plain_ids(ids))

    def _cells(self, on: str, ids: Array) -> Floats:
        """|C_u|; only rankings lose the excluded items. A cluster's are those of its users.

        Where the population's ids are not known, users without a scored row come last: those with exclusions first.
        """
        excludes = on == "rank" and self._joined.excluded is not None
        if self._deal is not None:
            return self._deal.users * float(self._n_items) - (self.exclusions()[1] if excludes else 0.0)
        cells = np.full(self._n_users, float(self._n_items))
        if not excludes:
            return cells
        users, counts = self.exclusions()
        known = np.isin(users, ids)
        self._check_users(len(ids) + int((~known).sum()), self._n_users)
        cells[np.searchsorted(ids, users[known])] -= counts[known]
        cells[len(ids) : len(ids) + int((~known).sum())] -= counts[~known]
        return cells

    def _exclusions(self) -> tuple[Array, Floats]:
        """The users of the excluded pairs, and how many each has; or all clusters."""
        excluded = self._joined.excluded
        if excluded is None or self._seen.excluded is None:
            return np.empty(0, np.int64), np.empty(0)
        if self._deal is not None:
            groups = self._deal.groups
            return np.arange(groups), by_cluster(dealt(excluded.counts, groups), "excluded", groups)
        table = self._seen.excluded.table
        return plain_ids(table[USER]), table["excluded"].cast(nw.Float64()).to_numpy()
