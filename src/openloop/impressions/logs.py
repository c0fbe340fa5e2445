"""Logs of impressions as they come, `Impressions` or a table that is scanned, dealt to buckets of clusters.

A cluster is a user; where the log names none, a request; where it names neither, a row. All its rows are in one bucket.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from openloop.blocks.dealing import ReadIds
from openloop.blocks.population import PENDING, IdIndex, IdSet, Population, vocabulary_of
from openloop.blocks.readers import batches
from openloop.blocks.store import Budget, Store, bucket_of
from openloop.core.feedback import Array, Ints, Vocabulary
from openloop.core.impression_columns import PER_REQUEST
from openloop.core.impressions import Impressions
from openloop.data.columns import InputTable
from openloop.data.encoding import encode
from openloop.data.frames import open_frame
from openloop.data.impressions import CHECKS, IDS, ShownColumns
from openloop.errors import EmptyError, InputError, quoted

ROW = "row"
BY_ROW = ("position", "reward", "propensity", "prefix")
UNUSED = ("arms", "time")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ShownLog:
    """A log of impressions whose rows stay where they are: `table` has them, `columns` names those of each role."""

    table: InputTable
    columns: Mapping[str, str]


def scanned_impressions(frame: Any, columns: ShownColumns) -> ShownLog:
    """The log in a frame or a table of any engine."""
    table = frame if isinstance(frame, InputTable) else replace(open_frame(frame), name="the log")
    return ShownLog(table=table, columns=columns.choose(table))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ShownBlock:
    """All requests of some clusters: items are codes of the population, requests and users are codes of the block.

    `clusters` (c,) are codes of the population, and `bucket` (c,) is that of each, counted from the first.
    The arms of `log` are the models that are ranks of its rows.
    """

    log: Impressions
    clusters: Ints
    bucket: Array
    buckets: tuple[int, int]  # the first, and the one after the last

    @property
    def n_buckets(self) -> int:
        """The number of buckets."""
        return self.buckets[1] - self.buckets[0]

    def names(self, side: str) -> Vocabulary:
        """The ids of its users or requests, which the log names."""
        names = self.log.users if side == "user" else self.log.requests
        assert names is not None  # noqa: S101
        return names

    @property
    def of_requests(self) -> Array:
        """The bucket of each request, (N,)."""
        return self.bucket[self.log.cluster]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DealtLog:
    """The rows of a log by bucket; the users of the population are the clusters.

    `homes` has the bucket of each request where clusters are users. `memory` is the log, where its rows are in memory:
    then ids are stored as codes.
    """

    store: Store
    population: Population
    by: str  # what a cluster is: "user", "request" or "row"
    roles: frozenset[str]
    ranks: Sequence[str]  # the models that are ranks of rows
    kinds: Mapping[str, str]  # "integers" or "text", by side
    rows: Array  # (K,) at each position
    shuffled: bool  # whether some request is
    homes: pl.DataFrame | None = None
    memory: Impressions | None = None

    @property
    def depth(self) -> int:
        """K."""
        return len(self.rows)

    def buckets(self, side: str, ids: pl.Series) -> npt.NDArray[np.int64]:
        """The bucket of each request or user, -1 where the log does not have the request."""
        if self.homes is None or side == self.by:
            return bucket_of(ids).astype(np.int64)
        wanted = pl.DataFrame({"request": ids.cast(self.homes["request"].dtype, strict=False)})
        homes = wanted.join(self.homes, on="request", how="left", maintain_order="left")
        return homes["bucket"].cast(pl.Int64).fill_null(-1).to_numpy()

    def block(self, first: int, last: int) -> ShownBlock:
        """The requests of the buckets first … last - 1."""
        frame, population = self.store.frame(first, last), self.population
        if "request" not in self.roles:  # each row is one: in an order that is not that of the input
            frame = frame.sort(self.by, "item", "position", "reward", maintain_order=True)
        clusters = np.sort(population.block_users(first, last)[0])
        columns: dict[str, Any] = {name: frame[name].to_numpy() for name in (*BY_ROW, ROW) if name in self.roles}
        columns |= {name: frame[name].to_numpy() for name in PER_REQUEST if name in self.roles and name != "user"}
        is_coded = self.memory is not None
        columns["item"] = frame["item"].to_numpy() if is_coded else population.item_index.find(frame["item"])
        cluster = IdIndex(clusters.astype(np.int64) if is_coded else population.users.ids[clusters]).find(
            frame[self.by]
        )
        if self.by == "user":
            columns |= {"user": cluster, "users": Vocabulary(population.users.ids[clusters])}
        columns |= self._requests(frame["request"]) if "request" in self.roles else {}
        for name, number in (("exposure", self.depth), ("arms", len(self.ranks))):
            if f"{name} 1" in frame.columns:
                columns[name] = np.stack([frame[f"{name} {j}"].to_numpy() for j in range(1, number + 1)], axis=1)
        log = Impressions.from_arrays(**columns, items=population.items, positions=self.depth)
        return ShownBlock(
            log=log, clusters=clusters, bucket=population.bucket_of_code[clusters] - np.int64(first),
            buckets=(first, last),
        )  # fmt: skip

    def _requests(self, ids: pl.Series) -> dict[str, Any]:
        """Requests in the order of their ids."""
        requests, request = encode(ids)
        if self.memory is not None and self.memory.requests is not None:
            requests = Vocabulary(self.memory.requests.ids[requests.ids])
        return {"request": request, "requests": requests}


def deal_impressions(log: Impressions, ranks: Mapping[str, Array], budget: Budget) -> DealtLog:
    """The rows of Impressions by bucket of their clusters, with ranks of the rows by model."""
    ids = {"user": log.users, "request": log.requests, ROW: Vocabulary.range(len(log))}
    by = next(name for name, vocabulary in ids.items() if vocabulary is not None)
    population = Population.of(ids[by] or log.items, log.items)
    columns: dict[str, Any] = {ROW: np.arange(len(log)), "item": log.item}
    columns |= {"request": log.request.astype(np.int64)} if log.requests is not None else {}
    columns |= {name: values for name in BY_ROW if (values := getattr(log, name)) is not None}
    columns |= {name: values[log.request] for name in PER_REQUEST if (values := getattr(log, name)) is not None}
    exposure = np.empty((len(log), 0)) if log.exposure is None else log.exposure
    columns |= {f"exposure {j}": values for j, values in enumerate(exposure.T, start=1)}
    store, buckets = Store(budget), population.bucket_of_code[log.cluster]
    roles = frozenset(columns)
    columns |= {f"arms {j}": values for j, values in enumerate(ranks.values(), start=1)}
    store.add(pl.DataFrame(columns), buckets[log.request])
    store.finish()
    homes = None
    if by == "user" and log.requests is not None:
        requests: Any = log.requests.ids
        homes = pl.DataFrame(
            {"request": requests if requests.dtype.kind == "i" else requests.tolist(), "bucket": buckets}
        )
    return DealtLog(
        store=store, population=population, by=by, roles=roles, ranks=tuple(ranks), homes=homes, memory=log,
        kinds={
            side: "integers" if vocabulary.ids.dtype.kind == "i" else "text"
            for side, vocabulary in (ids | {"item": log.items}).items() if vocabulary is not None
        },
        rows=np.bincount(log.position - 1, minlength=log.depth),
        shuffled=log.shuffled is not None and bool(log.shuffled.any()),
    )  # fmt: skip


# -- scanned -------------------------------------------------------------------------------------------------


def deal_scanned(log: ShownLog, ranks: Mapping[str, str], budget: Budget) -> DealtLog:
    """The rows of a table by bucket of their clusters, read once; `ranks` are columns by model."""
    return _Reading(log, ranks, budget).dealt()


@dataclass(slots=True, kw_only=True, eq=False)
class _Homes:
    """The bucket of each request, which comes in batches."""

    pending: list[pl.DataFrame] = field(default_factory=list[pl.DataFrame])
    rows: int = 0

    def add(self, requests: pl.Series, buckets: npt.NDArray[np.uint8]) -> None:
        """Note the requests of a batch."""
        self.pending.append(pl.DataFrame({"request": requests, "bucket": buckets}).unique())
        self.rows += self.pending[-1].height
        if self.rows > PENDING and len(self.pending) > 1:
            self.pending = [self.frame()]
            self.rows = self.pending[0].height // 2

    def frame(self) -> pl.DataFrame:
        """All requests so far."""
        is_text = any(part["request"].dtype == pl.String for part in self.pending)
        parts = [part.with_columns(pl.col("request").cast(pl.String)) if is_text else part for part in self.pending]
        return pl.concat(parts).unique()


class _Reading:
    """One pass over a table."""

    def __init__(self, log: ShownLog, ranks: Mapping[str, str], budget: Budget) -> None:
        self.table = log.table
        self.columns = {role: name for role, name in log.columns.items() if role.split()[0] not in UNUSED}
        self.ranks = ranks
        self.by = next((side for side in ("user", "request") if side in self.columns), ROW)
        self.ids = ReadIds(sets={side: IdSet() for side in (self.by, "item") if side != ROW})
        self.homes = _Homes()
        self.store = Store(budget)
        self.positions, self.n_rows, self.shuffled = np.zeros(0, np.int64), 0, False

    def dealt(self) -> DealtLog:
        """What was read."""
        arms = {f"arms {j}": name for j, name in enumerate(self.ranks.values(), start=1)}
        columns = self.columns | arms
        for batch in batches(self.table, list(dict.fromkeys(columns.values()))):
            self._add(batch, columns)
        self.store.finish()
        if not self.n_rows:
            raise EmptyError(f"{self.table.name}: no rows; a value needs at least one item that was shown.")
        exposures = sum(role.startswith("exposure") for role in columns)
        if exposures not in (0, len(self.positions)):
            raise InputError(
                f"exposure: {exposures} columns for {len(self.positions)} positions; give one for each position."
            )
        sets = self.ids.sets
        clusters = Vocabulary.range(self.n_rows) if self.by == ROW else vocabulary_of(sets[self.by].ids)
        return DealtLog(
            store=self.store, population=Population.of(clusters, vocabulary_of(sets["item"].ids)), by=self.by,
            roles=frozenset({*self.columns, ROW}), ranks=tuple(self.ranks), kinds=self.ids.kinds, rows=self.positions,
            shuffled=self.shuffled, homes=self._homes_of_requests(),
        )  # fmt: skip

    def _add(self, batch: pl.DataFrame, columns: Mapping[str, str]) -> None:
        name = self.table.name if self.n_rows == 0 else f"{self.table.name}, after {self.n_rows:,} rows"
        made: dict[str, Any] = {ROW: np.arange(self.n_rows, self.n_rows + batch.height)}
        for role, column in columns.items():
            what = f"{name}: {role} column {quoted(column)}"
            is_id = role in IDS
            made[role] = (
                self.ids.add(role, batch[column], what, text=self.table.text)
                if is_id
                else CHECKS[role.split()[0]](batch[column], what)
            )
        rows = pl.DataFrame(made)
        buckets = bucket_of(rows[self.by])
        self.store.add(rows, buckets)
        if self.by == "user" and "request" in columns:
            self.homes.add(rows["request"], buckets)
        self.n_rows += batch.height
        if batch.height:
            self._count(made["position"])
            self.shuffled |= bool(np.any(made.get("shuffled", False)))

    def _count(self, position: Ints) -> None:
        counts = np.bincount(position - 1, minlength=len(self.positions))
        counts[: len(self.positions)] += self.positions
        self.positions = counts

    def _homes_of_requests(self) -> pl.DataFrame | None:
        if not self.homes.pending:
            return None
        homes = self.homes.frame()
        if split := homes.height - homes["request"].n_unique():
            raise InputError(f"{self.table.name}: {split:,} requests have more than one user; a request has one.")
        return homes
