"""Logs of impressions as they come, `Impressions` or a table that is scanned, dealt to buckets of clusters.

A cluster is a user; where the log names none, a request; where it names neither, a row. All its rows are in one bucket.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from openloop.blocks.dealing import Check, ReadIds, deal_table
from openloop.blocks.joining import Dealt
from openloop.blocks.population import IdIndex, IdSet, Population, vocabulary_of
from openloop.blocks.store import Budget, bucket_of
from openloop.core.feedback import Array, Ints, Vocabulary
from openloop.core.impression_columns import PER_REQUEST
from openloop.core.impressions import Impressions
from openloop.data.encoding import encode
from openloop.data.frames import open_frame
from openloop.data.impressions import CHECKS, IDS
from openloop.data.scanning import ShownLog
from openloop.errors import EmptyError, InputError

ROW = "row"
PLAIN = ("position", "reward", "propensity", "prefix", "slate", "shuffled", "pool", ROW)
LISTED = ("exposure", "arms")


def impressions_table(log: Impressions, arms: Sequence[Array]) -> ShownLog:
    """The rows of Impressions as a table of their ids, with ranks of the rows as arms."""
    columns: dict[str, Any] = {"item": _ids(log.items, log.item)}
    if log.requests is not None:
        columns["request"] = _ids(log.requests, log.request)
    if log.users is not None:
        columns["user"] = _ids(log.users, log.cluster[log.request])
    for name in PLAIN[:-1]:
        if (values := getattr(log, name)) is not None:
            columns[name] = values[log.request] if name in PER_REQUEST else values
    exposure = () if log.exposure is None else log.exposure.T
    for name, arrays in zip(LISTED, (exposure, arms), strict=True):
        columns |= {f"{name} {j}": values for j, values in enumerate(arrays, start=1)}
    table = replace(open_frame(pl.DataFrame(columns)), name="the log")
    return ShownLog(table=table, columns={name: name for name in columns}, users=log.users, items=log.items)


def _ids(names: Vocabulary, codes: Ints) -> pl.Series:
    return _series(names)[pl.Series(codes)]


def _series(names: Vocabulary) -> pl.Series:
    ids: Any = names.ids
    return pl.Series(ids) if ids.dtype.kind == "i" else pl.Series(ids.tolist(), dtype=pl.String)


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
    def size(self) -> int:
        """Bytes, without those of ids."""
        columns = (getattr(self.log, column.name) for column in fields(self.log))
        return sum(values.nbytes for values in columns if isinstance(values, np.ndarray))

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


@dataclass(frozen=True, kw_only=True, eq=False)
class DealtLog:
    """The rows of a log by bucket; the users of the population are the clusters."""

    dealt: Dealt
    population: Population
    by: str  # what a cluster is: "user", "request" or "row"
    roles: frozenset[str]
    kinds: Mapping[str, str]  # "integers" or "text", by side
    rows: Array  # (K,) at each position
    shuffled: bool  # whether some request is
    homes: pl.DataFrame | None  # the bucket of each request, where clusters are users

    def buckets(self, side: str, rows: pl.DataFrame) -> npt.NDArray[np.uint8]:
        """The bucket of each row of a table by its request or user; any, where the log does not have the request."""
        ids = rows[side]
        if self.homes is None or side == self.by:
            return bucket_of(ids)
        requests = pl.DataFrame({"request": ids.cast(self.homes["request"].dtype, strict=False)})
        return (
            requests.join(self.homes, on="request", how="left", maintain_order="left")["bucket"].fill_null(0).to_numpy()
        )

    def block(self, first: int, last: int) -> ShownBlock:
        """The requests of the buckets first … last - 1."""
        frame, population = self.dealt.store.frame(first, last), self.population
        if "request" not in self.roles:  # each row is one: in an order that is not that of the input
            frame = frame.sort(self.by, "item", "position", "reward", maintain_order=True)
        clusters = np.sort(population.block_users(first, last)[0])
        names = population.users.ids[clusters]
        columns: dict[str, Any] = {name: frame[name].to_numpy() for name in PLAIN if name in frame.columns}
        columns["item"] = population.item_index.find(frame["item"])
        if self.by == "user":
            columns |= {"user": IdIndex(names).find(frame["user"]), "users": Vocabulary(names)}
        if "request" in self.roles:
            columns["requests"], columns["request"] = encode(frame["request"])
        for name in LISTED:
            arrays = [column.to_numpy() for column in frame if column.name.startswith(f"{name} ")]
            columns |= {name: np.stack(arrays, axis=1)} if arrays else {}
        return ShownBlock(
            log=Impressions.from_arrays(**columns, items=population.items, positions=len(self.rows)),
            clusters=clusters, bucket=population.bucket_of_code[clusters] - np.int64(first), buckets=(first, last),
        )  # fmt: skip


def deal_log(log: ShownLog, budget: Budget) -> DealtLog:
    """The rows of a log by bucket of their clusters, read once."""
    by = next((side for side in ("user", "request") if side in log.columns), ROW)
    sets = {side: IdSet() for side in {by, "item"} - {ROW}}
    ids, homes, counts = ReadIds(sets=sets), list[pl.DataFrame](), Counts()

    def buckets_of(rows: pl.DataFrame) -> npt.NDArray[np.uint8]:
        buckets = bucket_of(rows[by])
        if by == "user" and "request" in rows.columns:
            homes.append(pl.DataFrame({"request": rows["request"], "bucket": buckets}).unique())
        counts.add(rows)
        return buckets

    checks: dict[str, Check] = {role: CHECKS[role.split()[0]] for role in log.columns if role not in IDS}
    dealt = deal_table(log.table, log.columns, checks, budget, ids, is_log=True, buckets_of=buckets_of)
    if not dealt.n_rows:
        raise EmptyError(f"{log.table.name}: no rows; a value needs at least one item that was shown.")
    exposures, depth = sum(role.startswith("exposure") for role in log.columns), len(counts.positions)
    if exposures not in (0, depth):
        raise InputError(f"exposure: {exposures} columns for {depth} positions; give one for each position.")
    clusters = Vocabulary.range(dealt.n_rows) if by == ROW else vocabulary_of(sets[by].ids)
    users = log.users if by == "user" and log.users is not None else clusters
    items = vocabulary_of(sets["item"].ids) if log.items is None else log.items
    return DealtLog(
        dealt=dealt, population=Population.of(users, items), by=by, roles=frozenset(log.columns), kinds=ids.kinds,
        rows=counts.positions, shuffled=counts.shuffled, homes=_homes(log.table.name, homes),
    )  # fmt: skip


@dataclass(slots=True, eq=False)
class Counts:
    """What is counted while rows are read: those at each position, and whether some request is shuffled."""

    positions: Array = field(default_factory=lambda: np.zeros(0, np.int64))  # (K,)
    shuffled: bool = False

    def add(self, rows: pl.DataFrame) -> None:
        """Count the rows of a batch."""
        positions = np.bincount(rows["position"].to_numpy() - 1, minlength=len(self.positions))
        positions[: len(self.positions)] += self.positions
        self.positions = positions
        self.shuffled |= "shuffled" in rows.columns and bool(rows["shuffled"].any())


def _homes(what: str, pairs: list[pl.DataFrame]) -> pl.DataFrame | None:
    """The bucket of each request; one of several users would be in several buckets."""
    if not pairs:
        return None
    homes = pl.concat(pairs, how="vertical_relaxed").unique()
    if split := homes.height - homes["request"].n_unique():
        raise InputError(f"{what}: {split:,} requests have more than one user; a request has one.")
    return homes
