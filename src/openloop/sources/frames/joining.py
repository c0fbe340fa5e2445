"""One joined frame from a log and predictions, on the engine that they are in.

Its columns are u, i, y (rating), p, w = 1/p, and each model's prediction or counts of candidates above and tied.
One backend, one type of id: DuckDB and Spark would match "1" with 1, so that is refused at the door.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import narwhals as nw

from openloop.core.metric import Metric
from openloop.errors import ColumnError, DuplicateError, InputError, PredictionError, did_you_mean
from openloop.sources.frames.facts import PAIR, absent, count, flag, only_row, repeats, rows
from openloop.sources.frames.opening import id_kinds, id_types, log_columns, named, opened, tables_of
from openloop.sources.frames.rows import collected, with_scores
from openloop.sources.predictions import ITEM, SCORE, USER, apart

RATING = ("rating", "stars")


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelColumns:
    """Where a model's predictions and ranks come from: columns of the log, or of a frame of its own."""

    name: str
    score: str | None
    rank: str | None
    frame: Any = None  # u, i and its columns; None: the log's own columns


@dataclass(frozen=True, slots=True, kw_only=True)
class Joined:
    """The joined frame and what is in it."""

    frame: Any
    models: tuple[str, ...]
    names: dict[str, str]
    weighted: bool
    excluded: Any  # (u, excluded): how many items leave the ranking of each user; None: none do
    ranked: dict[int, bool]  # a rank column, rather than full scores
    reasons: dict[tuple[str, str], str] = field(default_factory=dict[tuple[str, str], str])  # (model, on) → why not
    depths: dict[str, int] = field(default_factory=dict[str, int])  # of top-k lists
    notes: tuple[str, ...] = ()
    rows: int | None = None  # as many as the log has, unless predictions stand twice; None: not checked
    suspects: list[tuple[str, Any]] = field(default_factory=list[tuple[str, Any]])  # models' frames
    overlap: int = 0  # scored rows that are excluded too
    held: dict[str, int] = field(default_factory=dict[str, int])  # the fewest scores that a user of a model has

    def check_complete(self, n_items: int) -> None:
        """Refuse scores that were declared complete and are not."""
        for name, fewest in self.held.items():
            if fewest < n_items:
                raise PredictionError(
                    f"model {name!r}: complete=True, but a user has scores of {fewest:,} of {n_items:,} items; give "
                    "all, or a rank column."
                )

    def check_rows(self, found: int) -> None:
        """Refuse doubled predictions, which a join shows by its number of rows."""
        if self.rows is not None and found != self.rows:
            _refuse_doubled(self.suspects)

    def refusal(self, metric: Metric, what: str) -> str | None:
        """Why some model cannot serve this metric."""
        for model in self.models:
            if (model, metric.on) in self.reasons:
                return f"{what}: {self.reasons[model, metric.on]}"
            depth = self.depths.get(model) if metric.on == "rank" else None
            if depth is not None and (metric.k is None or metric.k > depth):
                return f"{what}: model {model!r} is a top-{depth} list, which serves only @k with k ≤ {depth}."
        return None


def join(
    models: Mapping[str, Any],
    log: Any,
    propensity: str | None,
    metrics: Sequence[Metric],
    *,
    exclude: Any,
    user: str | None,
    item: str | None,
    rating: str | None,
    complete: bool,
    distinct: bool,
    missing: str,
) -> Joined:
    """Join the log with each model's predictions, inside the engine that holds them."""
    if missing not in ("error", "drop", "worst"):
        raise InputError(f'evaluate: missing must be "error", "drop" or "worst", got {missing!r}.')
    table, eager = opened("the log", log), isinstance(nw.from_native(log), nw.DataFrame)
    columns = table.collect_schema().names()
    names = {
        "u": named("user", user, columns, USER),
        "i": named("item", item, columns, ITEM),
        "y": named("rating", rating, columns, RATING),
    }
    if propensity is not None:
        names["p"] = named("propensities", propensity, columns, ())
    builder = _Builder(
        table, names, metrics, complete=complete, distinct=distinct, missing=missing, eager=eager,
        types=id_types(table, names, models, exclude), own=log_columns(models),
    )  # fmt: skip
    builder.exclude(exclude)
    for position, (name, model) in enumerate(models.items()):
        builder.add(position, name, model)
    return builder.built(tuple(models))


class _Builder:
    """The joined frame in the making."""

    def __init__(
        self, log: Any, names: dict[str, str], metrics: Sequence[Metric], *, complete: bool, distinct: bool,
        missing: str, eager: bool, types: tuple[Any, ...],
        own: Sequence[str],
    ) -> None:  # fmt: skip
        self._log, self._names, self._metrics = log, names, metrics
        self._complete, self._distinct, self._missing, self._eager = complete, distinct, missing, eager
        self._kinds = id_kinds(log, names["u"], names["i"])
        self._types, self._own = types, own
        self._frame = self._selected()
        self._excluded: Any = None
        self._counts: Any = None
        self._overlap = 0
        self._ranked: dict[int, bool] = {}
        self._reasons: dict[tuple[str, str], str] = {}
        self._depths: dict[str, int] = {}
        self._held: dict[str, int] = {}
        self._notes: list[str] = []
        self._needs = {m.on for m in metrics}
        self._joins = False
        self._rows = None if distinct else rows(self._frame)
        self._suspects: list[tuple[str, Any]] = []
        if not distinct:
            _refuse_duplicates("the log", self._frame, DuplicateError)

    def _selected(self) -> Any:
        # Columns of the log that models name stay until the end.
        named = self._ids(*(self._names[key] for key in PAIR))
        named.append(nw.col(self._names["y"]).cast(nw.Float64()).alias("y"))
        if "p" in self._names:
            named.append(nw.col(self._names["p"]).cast(nw.Float64()).alias("p"))
        known = self._log.collect_schema().names()
        kept = [nw.col(name).alias(f"log:{name}") for name in dict.fromkeys(self._own) if name in known]
        frame = self._log.select(*named, *kept)
        return frame.with_columns((1.0 / nw.col("p")).alias("w")) if "p" in self._names else frame

    def _ids(self, *columns: str) -> list[Any]:
        """The columns of ids as u and i, of one type in all frames, so that they join."""
        return [
            (nw.col(column) if kind is None else nw.col(column).cast(kind)).alias(key)
            for column, kind, key in zip(columns, self._types, PAIR, strict=True)
        ]

    def exclude(self, native: Any) -> None:
        """Take the excluded pairs, less the scored ones: the item being ranked always is a candidate."""
        if native is None:
            return
        table = self._same_engine("exclude", native)
        pairs = table.select(*self._ids(*(self._column(table, "exclude", key) for key in PAIR))).unique()
        self._overlap = rows(self._frame.select(*PAIR).join(pairs, on=list(PAIR), how="inner"))
        self._excluded = pairs.join(self._frame.select(*PAIR), on=list(PAIR), how="anti")
        once = self._excluded.with_columns(nw.lit(1.0).alias("excluded"))
        self._counts = once.group_by("u").agg(nw.col("excluded").sum())
        joined = self._frame.join(self._counts, on="u", how="left")
        self._frame = joined.with_columns(nw.col("excluded").fill_null(0.0))

    def add(self, position: int, name: str, model: Any) -> None:
        """Join one model's columns."""
        scores, ranks = apart(name, [self._source(name, table) for table in tables_of(model)])
        if "prediction" in self._needs:
            self._add_prediction(position, scores)
        if "rank" in self._needs:
            self._add_ranks(position, ranks)

    def _source(self, name: str, model: Any) -> ModelColumns:
        if isinstance(model, str | Mapping):
            given: Mapping[str, str] = {"score": model} if isinstance(model, str) else model  # pyright: ignore[reportUnknownVariableType]
            known = self._log.collect_schema().names()
            found = {kind: named(f"model {name!r}", column, known, ()) for kind, column in given.items()}
            return ModelColumns(name=name, score=found.get("score"), rank=found.get("rank"))
        self._joins = True
        table = self._same_engine(f"model {name!r}", model)
        known = table.collect_schema().names()
        keys = self._ids(*(self._column(table, f"model {name!r}", key) for key in PAIR))
        score = next((c for c in SCORE if c in known), None)
        rank = "rank" if "rank" in known else None
        if score is None and rank is None:
            raise ColumnError(
                f"model {name!r}: the frame has no column 'score' or 'rank'.{did_you_mean('score', known)}"
            )
        frame = table.select(*keys, *(nw.col(c).cast(nw.Float64()) for c in (score, rank) if c is not None))
        self._suspects.append((name, frame))
        return ModelColumns(name=name, score=score, rank=rank, frame=frame)

    def _add_prediction(self, position: int, source: ModelColumns) -> None:
        if source.score is None:
            self._reasons[source.name, "prediction"] = f"model {source.name!r} has ranks and no scores."
            return
        own = f"s{position}"
        if source.frame is None:
            self._frame = self._frame.with_columns(nw.col(f"log:{source.score}").cast(nw.Float64()).alias(own))
        else:
            self._refuse_gaps(source)
            scores = source.frame.select(*PAIR, nw.col(source.score).alias(own))
            joined = self._frame.join(scores, on=list(PAIR), how="left")
            if self._lacking(source, joined, own):
                return
            self._frame = joined
        self._resolve_missing(source.name, own)
        for check in (m.check for m in self._metrics if m.check is not None):
            some = self._frame.select(own).unique().head(3)  # a 0/1 matrix has no third value
            check(collected(some)[own].to_numpy())

    def _lacking(self, source: ModelColumns, joined: Any, own: str) -> bool:
        """Whether this is a list with scores and ranks that lacks a scored row: it was made for rankings."""
        if source.rank is None or self._missing != "error" or not count(joined, absent(nw.col(own))):
            return False
        self._reasons[source.name, "prediction"] = (
            f"model {source.name!r} is a list with ranks, which lacks scores of some scored rows; give those as a "
            'second table, or pass missing="drop".'
        )
        return True

    def _refuse_gaps(self, source: ModelColumns) -> None:
        for column in (source.score, source.rank):
            if column is not None and (bad := count(source.frame, absent(nw.col(column)))):
                raise PredictionError(
                    f"model {source.name!r}: {bad:,} {column}s are missing or not finite; repair them."
                )

    def _resolve_missing(self, name: str, column: str) -> None:
        gone = absent(nw.col(column))
        number = count(self._frame, gone)
        if not number:
            return
        if self._missing == "error":
            some = collected(self._frame.filter(gone).select("u").unique().head(6))["u"].to_list()
            raise PredictionError(
                f"model {name!r}: no prediction for {number:,} scored rows, as of users {_some(some)}; predict "
                'them, or pass missing="drop" or "worst".'
            )
        if self._missing == "drop":
            self._frame = self._frame.filter(~gone)
            self._rows = None if self._rows is None else self._rows - number
            self._notes.append(f"{number:,} rows without a prediction of {name} were dropped: mind the bias")
            return
        limits = only_row(self._frame.select(nw.col("y").min().alias("low"), nw.col("y").max().alias("high")))
        low, high = float(limits["low"]), float(limits["high"])
        furthest = nw.when(nw.col("y") - low > high - nw.col("y")).then(nw.lit(low)).otherwise(nw.lit(high))
        self._frame = self._frame.with_columns(nw.when(gone).then(furthest).otherwise(nw.col(column)).alias(column))
        self._notes.append(f"missing predictions count as the furthest rating: {name} {number:,} rows")

    def _add_ranks(self, position: int, source: ModelColumns) -> None:
        if source.rank is not None:
            self._add_list(position, source, source.rank)
        elif source.frame is not None and source.score is not None and self._complete:
            self._add_scores(position, source, source.score)
        else:
            self._reasons[source.name, "rank"] = (
                f"model {source.name!r} needs a rank column, or scores of all items declared with complete=True."
            )

    def _add_list(self, position: int, source: ModelColumns, rank: str) -> None:
        """Ranks from a column; what a top-k list does not hold stands below it."""
        own, h = f"r{position}", f"h{position}"
        if source.frame is None:
            self._frame = self._frame.with_columns(nw.col(f"log:{rank}").cast(nw.Float64()).alias(own))
            ranks = self._frame
        else:
            ranks = source.frame.select(*PAIR, nw.col(rank).alias(own))
            self._refuse_excluded(source.name, ranks)
            self._frame = self._frame.join(self._within_reach(ranks, own), on=list(PAIR), how="left")
        depth = self._checked_depth(source, ranks, own)
        if not self._complete:
            self._depths[source.name] = depth
        elif unranked := count(self._frame, nw.col(own).is_null()):
            raise PredictionError(
                f"model {source.name!r}: complete=True, but {unranked:,} scored rows have no rank; list all items."
            )
        self._frame = self._frame.with_columns((nw.col(own).fill_null(float(depth + 1)) - 1.0).alias(h))
        self._frame = self._frame.with_columns(
            nw.lit(1.0).alias(f"e{position}"), (1.0 / (nw.col(h) + 1.0)).alias(f"harmonic{position}")
        )
        self._ranked[position] = True

    def _within_reach(self, ranks: Any, own: str) -> Any:
        """The part of a list that the metrics look at: beyond the largest k no gain is left."""
        cuts = [m.k for m in self._metrics if m.on == "rank"]
        return ranks if None in cuts else ranks.filter(~(nw.col(own) > max(k for k in cuts if k is not None)))

    def _checked_depth(self, source: ModelColumns, ranks: Any, own: str) -> int:
        """The deepest rank, once ranks are known to be whole numbers that no two scored rows of a user share."""
        rank = nw.col(own)
        flags = {"gone": flag(absent(rank)), "odd": flag(~absent(rank) & ((rank < 1) | (rank != rank.floor())))}
        found = only_row(ranks.select(own, **flags).select(rank.max(), nw.col("gone").sum(), nw.col("odd").sum()))
        depth, gaps, oddities = found[own], found["gone"], found["odd"]
        if depth is None:
            raise PredictionError(f"model {source.name!r}: its list has no rank; give user, item and rank.")
        if gaps and source.frame is not None:
            raise PredictionError(f"model {source.name!r}: {gaps:,.0f} ranks are missing or not finite; repair them.")
        scored = self._frame.select("u", own).filter(~nw.col(own).is_null())
        if oddities or repeats(scored.select("u", rank.cast(nw.Int64()).alias("i"))):
            _refuse_doubled(self._suspects)  # a pair twice has its rank twice, too
            raise PredictionError(
                f"model {source.name!r}: ranks must be whole numbers from 1, each once a user; number lists 1, 2, 3 …"
            )
        return int(depth)

    def _refuse_excluded(self, name: str, ranks: Any) -> None:
        if self._excluded is None:
            return
        found = rows(ranks.select(*PAIR).join(self._excluded, on=list(PAIR), how="inner"))
        if found:
            raise PredictionError(
                f"model {name!r}: its list ranks {found:,} excluded cells; make it without them, or pass exclude=None."
            )

    def _add_scores(self, position: int, source: ModelColumns, score: str) -> None:
        """Full scores: ranks among the candidates, ties in expectation."""
        if "prediction" not in self._needs:
            self._refuse_gaps(source)
        if not self._distinct:
            _refuse_duplicates(f"model {source.name!r}", source.frame, PredictionError)
        own, h = f"s{position}", f"h{position}"
        scores = source.frame.select(*PAIR, nw.col(score).alias(own))
        if self._excluded is not None:
            scores = scores.join(self._excluded, on=list(PAIR), how="anti")
        times = source.frame.select("u", nw.lit(1.0).alias("times")).group_by("u").agg(nw.col("times").sum())
        self._held[source.name] = int(only_row(times.select(nw.col("times").min()))["times"] or 0)
        cuts = list(dict.fromkeys(m.k for m in self._metrics if m.on == "rank"))
        ranks = with_scores(scores, position, cuts).drop(own)
        self._frame = self._frame.join(ranks, on=list(PAIR), how="left")
        gone = count(self._frame, nw.col(h).is_null())
        if gone:
            raise PredictionError(f"model {source.name!r}: complete=True, but {gone:,} scored rows have no score.")
        self._ranked[position] = False

    def _same_engine(self, what: str, native: Any) -> Any:
        table = opened(what, native)
        if table.implementation != self._log.implementation:
            raise InputError(
                f"{what} is in {table.implementation}, the log in {self._log.implementation}; bring both into one."
            )
        kinds = id_kinds(table, *(self._column(table, what, key) for key in PAIR))
        if kinds != self._kinds:
            raise InputError(
                f"{what}: its user and item ids are {' and '.join(kinds)}, the log's {' and '.join(self._kinds)}; "
                "cast one side."
            )
        return table

    def _column(self, table: Any, what: str, key: str) -> str:
        known = table.collect_schema().names()
        options = (self._names[key], *(USER if key == "u" else ITEM))
        return named(what, next((o for o in options if o in known), self._names[key]), known, ())

    def _settled(self, frame: Any) -> Any:
        """The joined rows held where they are, so that later passes do not join again."""
        if frame.implementation.is_pyspark():
            return nw.from_native(frame.to_native().localCheckpoint())
        if self._joins and self._eager and frame.implementation.is_polars():
            return frame.collect().lazy()
        return frame

    def built(self, models: tuple[str, ...]) -> Joined:
        """The frame without the log's own columns."""
        kept = [name for name in self._frame.collect_schema().names() if not name.startswith("log:")]
        return Joined(
            frame=self._settled(self._frame.select(*kept)), models=models, names=self._names,
            weighted="p" in self._names, excluded=self._counts,
            ranked={i: self._ranked.get(i, True) for i in range(len(models))},
            reasons=self._reasons, depths=self._depths, notes=tuple(self._notes), rows=self._rows,
            overlap=self._overlap, held=self._held, suspects=self._suspects,
        )  # fmt: skip


def _refuse_duplicates(what: str, frame: Any, error: type[InputError]) -> None:
    number = repeats(frame.select(*PAIR))
    if number:
        raise error(f"{what}: {number:,} (user, item) pairs stand twice; keep one of each.")


def _refuse_doubled(frames: Sequence[tuple[str, Any]]) -> None:
    for name, frame in frames:
        _refuse_duplicates(f"model {name!r}", frame, PredictionError)


def _some(ids: list[Any]) -> str:
    """The first few of the ids, of which there may be many more."""
    return ", ".join(map(repr, sorted(ids, key=str)[:5])) + (", …" if len(ids) > 5 else "")
