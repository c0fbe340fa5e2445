"""A log and predictions that stay in their engine as a source of Moments: joined, checked and reduced there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache, cached_property, partial
from typing import Any

import narwhals as nw
import numpy as np

from openloop.core.feedback import LEAST, Array, Floats
from openloop.core.metric import Metric, default_threshold, reaches
from openloop.core.moments import SUMS, Moments
from openloop.core.tilts import Tilts
from openloop.core.weights import WeightSummary
from openloop.errors import EmptyError, InputError, PropensityError, RatingError
from openloop.estimators.naming import Method
from openloop.metrics.rating import MAX_LEVELS, midpoints
from openloop.sources.frames import facts as frame_facts
from openloop.sources.frames.facts import absent, flag, only_row, weight_summary
from openloop.sources.frames.joining import Joined, join
from openloop.sources.frames.lists import FrameLists
from openloop.sources.frames.rows import (
    STRATUM,
    USER,
    Finish,
    FrameSetting,
    Key,
    Reduced,
    SumTask,
    collected,
    finished,
    plain_ids,
    reduce,
    reduce_total,
)
from openloop.sources.frames.tilting import FrameTilter
from openloop.sources.plan import MAX_LISTED, Answers, LogFacts, Request, Strata, StrataFacts
from openloop.sources.question import Question
from openloop.sources.terms import Common, assemble, paired
from openloop.support.arguments import are_counts

CLUSTERS = 100_000
WRONG: dict[str, tuple[type[InputError], str]] = {
    "u": (InputError, "no user id"),
    "i": (InputError, "no item id"),
    "y": (RatingError, "a missing or infinite rating"),
    "p": (PropensityError, "a missing or infinite propensity"),
    "outside": (PropensityError, "a propensity outside (0, 1]"),
}


def from_frame(models: Mapping[str, Any], log: Any, propensity: Any, asked: Question) -> tuple[FrameSource, list[str]]:
    """The source of a log frame, and what the reader of its estimates should know."""
    if propensity is not None and not isinstance(propensity, str):
        raise InputError(
            f"evaluate: with a frame as the log, propensities is the name of its column, got "
            f"{type(propensity).__name__}; add them as a column, or read the log with ol.read."
        )
    if propensity is None and (asked.share is not None or asked.excluded_share is not None):
        raise InputError("evaluate: share= and excluded_share= scale propensities; name their column, too.")
    joined = join(models, log, propensity, asked)
    source = FrameSource(joined, asked)
    notes = [*joined.notes, *source.notes]
    if propensity is not None and asked.exclude is not None and asked.excluded_share is None:
        notes.append("exclude= changes the candidates, not their probability; pass excluded_share= if both are one log")
    return source, notes


class FrameSource:
    """Answers requests by group-bys inside the engine; see `sources.plan.Source`."""

    in_one_pass = True
    levelled = False

    def __init__(self, joined: Joined, asked: Question) -> None:
        self.models = joined.models
        self.notes: list[str] = []
        self._joined = joined
        self._weighted = bool(joined.weights)
        self._refuse()
        self._given_threshold = asked.threshold
        self._scaled, self._by_items = asked.scaled, asked.by_items
        self._n_users, self._n_items = self._population(asked.population)
        joined.check_complete(self._n_items)
        self._frame = self._clustered(asked.max_users)
        # Passes over the rows are shared by the requests that need them.
        self.edges = cache(lambda strata: frame_facts.edges(self._frame, *strata))
        self.limits = cache(lambda s: frame_facts.strata_limits(self._rows_for("cell", s), self._n_strata(s)))
        self._bases: dict[Strata | None, Reduced] = {}
        self.about = cache(self._about)
        self.answers = cache(self._answers)
        self.common = cache(self._common)
        self.weights = cache(lambda kind, column: weight_summary(self._rows_for(kind, None), column))
        self.exclusions = cache(self._exclusions)
        self.tilter = cache(self._tilter)

    def _refuse(self) -> None:
        """Count what no engine may sum over, and refuse it before anything is summed."""
        p = nw.col("p")
        wrong = {"u": nw.col("u").is_null(), "i": nw.col("i").is_null(), "y": absent(nw.col("y"))}
        if self._weighted:
            wrong |= {"p": absent(p), "outside": ~((p >= LEAST) & (p <= 1))}
        flagged = self._joined.frame.select(
            **{name: flag(condition) for name, condition in wrong.items()}, n=nw.lit(1.0)
        )
        found = only_row(flagged.select(*(nw.col(name).sum() for name in (*wrong, "n"))))
        rows = int(found.pop("n") or 0)
        self._joined.check_rows(rows)
        if not rows:
            raise EmptyError("evaluate: the log frame has no rows; an estimate needs at least one.")
        for name, number in found.items():
            if number:
                error, what = WRONG[name]
                column = self._joined.names["p" if name == "outside" else name]
                raise error(
                    f"evaluate: {number:,.0f} of {rows:,} rows have {what} in column {column!r}; drop or repair them."
                )

    def remarks(self) -> list[str]:
        """None: whether a model gives all items one score would cost a pass over its scores."""
        return []

    @cached_property
    def _levels(self) -> Floats:
        """The distinct ratings, one more than may be at most; only metrics that need them cost the pass."""
        return np.sort(collected(self._joined.frame.select("y").unique().head(MAX_LEVELS + 1))["y"].to_numpy())

    @property
    def _middles(self) -> tuple[float, ...] | None:
        middles = midpoints(self._levels)
        return None if middles is None else tuple(middles)

    @property
    def _threshold(self) -> float:
        if self._given_threshold is not None:
            return float(self._given_threshold)
        return default_threshold(self._levels)

    def _population(self, given: tuple[int, int] | None) -> tuple[int, int]:
        if given is not None and not are_counts(given):
            raise InputError(f"evaluate: population= must be (users, items), two whole numbers, got {given!r}.")
        items = self._items(None if given is None else int(given[1]))
        if given is None:
            users = self._users()
            self.notes.append(
                f"the population was taken to be the {users:,} users × {items:,} items in the log; pass population="
            )
            return users, items
        n_users, n_items = (int(v) for v in given)
        if n_items < items:
            raise InputError(
                f"evaluate: population= has {n_items:,} items, the log and exclude= {items:,}; give the size of the "
                "whole catalogue, or drop what is no longer in it."
            )
        return n_users, n_items

    def _items(self, enough: int | None) -> int:
        """The items of the log and of the excluded pairs; where ids span no more than `enough`, none are counted."""
        frame, excluded = self._joined.frame.select("i"), self._joined.excluded
        frames = [frame] if excluded is None else [frame, excluded.pairs.select("i")]
        if enough is not None and frame.collect_schema()["i"].is_integer():
            lows, highs = zip(*map(frame_facts.ends, frames), strict=True)
            if max(highs) - min(lows) < enough:
                return max(highs) - min(lows) + 1
        known, *others = (part.unique() for part in frames)
        return frame_facts.rows(known) + sum(frame_facts.rows(more.join(known, on="i", how="anti")) for more in others)

    def _users(self) -> int:
        """The users of the log, and of the excluded pairs."""
        known = self._joined.frame.select(USER).unique()
        others = 0
        if self._joined.excluded is not None:
            others = frame_facts.rows(self._joined.excluded.counts.select(USER).join(known, on=USER, how="anti"))
        return frame_facts.rows(known) + others

    def _check_users(self, seen: int, known: int) -> None:
        """The users of the log are counted when their sums are there, which saves a pass."""
        if seen > known:
            raise InputError(
                f"evaluate: population= has {self._n_users:,} users, the log {seen:,}; give the size of the whole."
            )

    def _clustered(self, max_users: int) -> Any:
        """Above `max_users`, users are dealt to clusters, and only clusters' sums leave the engine."""
        self._clusters = self._n_users > max_users
        frame = self._joined.frame
        if not self._clusters:
            return frame
        groups = min(CLUSTERS, max_users)
        users = frame.select(USER).unique().with_row_index("position", order_by=USER)
        self._check_users(frame_facts.rows(users), self._n_users)
        users = users.with_columns((nw.col("position") % groups).cast(nw.Int64()).alias("cluster")).drop("position")
        self.notes.append(f"{self._n_users:,} users were dealt to {groups:,} clusters: intervals are over clusters")
        self._groups = groups
        return frame.join(users, on=USER, how="inner").drop(USER).rename({"cluster": USER})

    def refusal(self, metric: Metric, method: Method) -> str | None:
        """Why this frame cannot give that estimate."""
        what, excluded = f"{method.name} of {metric.name}", self._joined.excluded
        if metric.name == "accuracy" and self._middles is None:
            return f"{what}: the log has more than {MAX_LEVELS} distinct ratings, which are no levels; use mae or mse."
        if method.weighted and not self._weighted:
            return f"{what} needs propensities; name their column as the third argument."
        if method.weighted and metric.on == "rank" and excluded is not None and excluded.overlap:
            return (
                f"{what}: {excluded.overlap:,} scored rows are in exclude= too, so the probability of a candidate "
                "is undefined; drop them from one of the two."
            )
        if method.imputes:
            return f"{what} needs imputed losses of every cell; read the log with ol.read."
        pools = metric.kind == "cell" or (metric.pooled and method.pools)
        if self._clusters and not pools:
            return f"{what} needs sums of each user; raise max_users= above the {self._n_users:,} users."
        return self._joined.refusal(metric, what)

    def summary(self, metric: Metric) -> WeightSummary | None:
        """The weights of the rows that count for a metric."""
        return self._weight_summary(metric.kind, metric.on)

    def mass(self, on: str) -> float | None:
        """Σw of all scored rows over the candidates."""
        return self.common("cell", on, None).mass

    def _weight_summary(self, kind: str, on: str) -> WeightSummary | None:
        return self.weights(kind, self._joined.weights[on].weight) if self._weighted else None

    def _about(self) -> LogFacts:
        """What is scored."""
        base, y, frame = self.base(None), nw.col("y"), self._joined.frame
        weight = self._joined.weights["prediction"].weight if self._weighted else None
        counted = frame_facts.rating_counts(frame, weight) if len(self._levels) <= MAX_LISTED else ((), ())
        ends = only_row(frame.select(y.min().alias("low"), y.max().alias("high")))
        return LogFacts(
            rows=int(base.sums["n",].sum()), users=self._n_users, items=self._n_items, scored_users=len(base.ids),
            ratings=counted[0], masses=counted[1], span=(ends["low"], ends["high"]),
            threshold=self._threshold, dropped=self._joined.dropped,
            excluded=None if self._joined.excluded is None else int(self.exclusions()[1].sum()),
        )  # fmt: skip

    def _answers(self, model: str) -> Answers | None:
        """What a model says of the scored rows."""
        column = f"s{self.models.index(model)}"
        known = column in self._joined.frame.collect_schema().names()
        return frame_facts.answers(self._joined.frame, column) if known else None

    def facts(self, strata: Strata) -> StrataFacts:
        """What the scored rows of each stratum are."""
        return frame_facts.strata_facts(self._rows_for("cell", strata), self._n_strata(strata), weighted=self._weighted)

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

    def tilts(self, metric: Metric, pairs: Sequence[tuple[str, str]]) -> Tilts:
        """Sums of tilted weights of the rows that count for a metric."""
        return self.tilter().tilts(metric, pairs)

    def _tilter(self) -> FrameTilter:
        rows, setting = partial(self._rows_for, strata=None), lambda metric: self._setting(None, [metric])
        return FrameTilter.of(self._joined, rows, setting, self.about(), by_items=self._by_items)

    def moments(self, requests: Sequence[Request]) -> dict[Request, Moments]:
        """The moments of each request, all of one kind of row and one set of strata in one pass."""
        found: dict[Request, Moments] = {}
        singles = list(dict.fromkeys(r.single(m) for r in requests for m in r.models))
        batches = dict.fromkeys((r.metric.kind, r.strata) for r in requests)
        for kind, strata in batches:
            own = [r for r in (*singles, *(r for r in requests if len(r.models) > 1))
                   if (r.metric.kind, r.strata) == (kind, strata)]  # fmt: skip
            sums = self._sums(kind, strata, own)
            for r in own:
                if len(r.models) == 1:
                    found[r] = assemble(r.metric, sums[r], r.wanted, self.common(kind, r.metric.on, strata))
                    if self._clusters:  # a variance over cells says nothing about users beside one over clusters
                        found[r] = replace(found[r], squares=None)
            for r in own:
                if len(r.models) > 1:
                    a, b = (found[r.single(m)] for m in r.models)
                    found[r] = paired(a, b, sums[r])
        return found

    def _sums(self, kind: str, strata: Strata | None, requests: Sequence[Request]) -> dict[Request, dict[str, Floats]]:
        setting = self._setting(strata, [r.metric for r in requests])
        by_user: dict[Key, Any] = {}
        in_total: dict[Key, Any] = {}
        keys: dict[Request, tuple[dict[str, Key], Finish | None]] = {}
        for r in requests:
            task = SumTask(metric=r.metric, models=tuple(self.models.index(m) for m in r.models), wanted=r.wanted)
            own, finish = task.columns(setting, self._joined.ranked)
            keys[r] = {term: task.key(term, setting) for term in own}, finish
            for term, column in own.items():
                kept = by_user if term in SUMS or finish is not None else in_total
                kept[task.key(term, setting)] = column
        frame, n = self._rows_for(kind, strata), self._n_strata(strata)
        sums = self._per_user(kind, strata, frame, by_user) | reduce_total(frame, in_total, n)
        return {
            r: finished({term: sums[key] for term, key in terms.items()}, finish) for r, (terms, finish) in keys.items()
        }

    def _per_user(self, kind: str, strata: Strata | None, frame: Any, columns: dict[Key, Any]) -> dict[Key, Floats]:
        if not columns:
            return {}
        if kind == "user" or strata in self._bases:
            return reduce(frame, columns, self._n_strata(strata)).on(self.base(strata).ids, self._units)
        # n and Σw over all rows are the base of the strata's shares: one pass serves both.
        extra = self._base_columns()
        reduced = reduce(frame, extra | columns, self._n_strata(strata))
        self._bases[strata] = Reduced(ids=reduced.ids, sums={key: reduced.sums[key] for key in extra})
        return reduced.on(reduced.ids, self._units)

    @property
    def _units(self) -> int:
        return self._groups if self._clusters else self._n_users

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
            level = nw.lit(0.0)
            for edge in self.edges(strata):
                level = level + nw.when(nw.col("p") > edge).then(1.0).otherwise(0.0)
            frame = frame.with_columns(level.cast(nw.Int64()).alias(STRATUM))
        return frame if kind == "cell" else frame.filter(reaches(nw.col("y"), self._threshold))

    def _n_strata(self, strata: Strata | None) -> int:
        return 1 if strata is None or not self._weighted else len(self.edges(strata)) + 1

    def base(self, strata: Strata | None) -> Reduced:
        """rows and mass of every user, over all scored rows."""
        if strata not in self._bases:
            columns = self._base_columns()
            frame = self._rows_for("cell", strata)
            self._bases[strata] = reduce(frame, columns, self._n_strata(strata))
        return self._bases[strata]

    def _base_columns(self) -> dict[Key, Any]:
        weights = {by.weight for by in self._joined.weights.values()}
        return {("n",): nw.lit(1.0)} | {("weight", name): nw.col(name) for name in sorted(weights)}

    def _common(self, kind: str, on: str, strata: Strata | None) -> Common:
        base = self.base(strata)
        self._check_users(len(base.ids), self._units)
        sums = base.on(base.ids, self._units)
        edges = self.edges(strata) if self._n_strata(strata) > 1 else ()
        named: dict[str, Key] = {"rows": ("n",)}
        if self._weighted:
            named["mass"] = ("weight", self._joined.weights[on].weight)
        return Common(
            cells=self._cells(on, base.ids), base={name: sums[key] for name, key in named.items()},
            weights=self._weight_summary(kind, on), edges=edges, scaled=self._scaled,
            limits=None if strata is None or not self._weighted else self.limits(strata),
            ids=base.ids if not self._clusters and len(base.ids) == self._units else None,
        )  # fmt: skip

    def _cells(self, on: str, ids: Array) -> Floats:
        """|C_u|; only rankings lose the excluded items. A cluster's is an even part of the whole."""
        cells = np.full(self._units, float(self._n_items) * self._n_users / self._units)
        if on == "prediction" or self._joined.excluded is None:
            return cells
        users, counts = self.exclusions()
        if self._clusters:
            return cells - counts.sum() / self._units
        known = np.isin(users, ids)
        self._check_users(len(ids) + int((~known).sum()), self._n_users)
        cells[np.searchsorted(ids, users[known])] -= counts[known]
        # Users without a scored row come last, in no order: those with exclusions first.
        cells[len(ids) : len(ids) + int((~known).sum())] -= counts[~known]
        return cells

    def _exclusions(self) -> tuple[Array, Floats]:
        """The users of the excluded pairs, and how many each has."""
        if self._joined.excluded is None:
            return np.empty(0, np.int64), np.empty(0)
        table = collected(self._joined.excluded.counts)
        return plain_ids(table[USER]), table["excluded"].cast(nw.Float64()).to_numpy()
