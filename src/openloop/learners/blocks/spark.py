"""Blocks on Spark: made once, kept on the executors, and asked by map and add. DataFrames only, no RDDs.

Users are dealt to a fixed number of partitions by Spark's hash of their ids, and a partition's rows are sorted: a block
that an executor lost is made again with the same bits. Item factors travel with the question, rows stay.
"""

from __future__ import annotations

import warnings
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any

import narwhals as nw
import numpy as np
import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import functions

from openloop.core.feedback import Array
from openloop.errors import DuplicateError, InputError
from openloop.learners.blocks.building import BlockFacts, total_facts
from openloop.learners.blocks.ratings import RatingsTable
from openloop.learners.blocks.sizes import AT_ONCE, ON_DRIVER, piece_count
from openloop.learners.blocks.sizes import SPARK_ROWS as BLOCK_ROWS
from openloop.learners.blocks.spark_tasks import IDS, PARTS, adder, answers, built, held_lists, pc, summed, sums_of
from openloop.learners.blocks.user_blocks import Answer, count_blocks
from openloop.learners.solvers.projected import Ask, Totals
from openloop.support.sizes import RESULT, bytes_of, driver_limit, written

TRAVEL = 4_000_000  # held-out pairs that travel with the question; of more, blocks travel to them
FACTS = [f.name for f in fields(BlockFacts)]
HELD = "block int, held_ids array<{}>, held_ptr binary, held_item binary, repeats bigint"
SUMS = "piece int, block int, loss double, offsets double, users bigint, sums binary"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SparkBlocks:
    """A persisted frame with one row per block; `held`: lists of held-out items that travel with the question."""

    frame: Any
    count: int
    items: Array
    kinds: dict[str, str]
    dtype: Any
    facts: BlockFacts
    held: Any = None

    def total(self, ask: Ask) -> Totals:
        """See `solvers.projected.Blocks`: each task sums its block, and blocks are added in order."""
        edges = _edges(len(ask.Q), self.count, 2 * ask.Q.nbytes)
        self._check_sizes(ask, 2 * ask.Q.nbytes * (self.count if len(edges) == 2 else 1))
        work = partial(sums_of, ask=ask, edges=edges, dtype=self.dtype)
        with arrow_alone():
            parts = self.frame.select("block", "ids", *PARTS).mapInArrow(work, SUMS)
            if len(edges) > 2:
                parts = parts.groupBy("piece").applyInArrow(adder(ask.Q), SUMS)
        found = parts.toArrow().sort_by([("piece", "ascending"), ("block", "ascending")])
        pieces = [summed(found.filter(pc.field("piece") == piece), ask.Q) for piece in range(len(edges) - 1)]
        return replace(pieces[0], sums=np.concatenate([piece.sums for piece in pieces]))

    def map(self, answer: Answer, ask: Ask) -> Any:
        """A Spark frame of what `answer` says of each block, under the answer's own names."""
        self._check_sizes(ask, 0)
        types = {kind: IDS[self.kinds[kind]][1] for kind in ("user", "item")}
        real = "float" if self.dtype == np.float32 else "double"
        types |= {"int": "int", "float": real, "floats": f"array<{real}>"}
        schema = ", ".join(f"`{name}` {types[kind]}" for name, kind in answer.columns.items())
        work = partial(answers, answer=answer, ask=ask, items=_ids(self.items), dtype=self.dtype, held=self.held)
        with arrow_alone():
            return self.frame.drop(*FACTS).mapInArrow(work, schema)

    def beside(self, pairs: RatingsTable) -> SparkBlocks:
        """The same blocks with held-out pairs beside them, and with the items that only these have."""
        few = pairs.rows <= TRAVEL
        dealt = pairs.frame.to_native().repartition(self.count, functions.col("u"))  # as the rows were
        dealt = dealt.withColumn("block", functions.spark_partition_id())
        if few:
            dealt = dealt.toArrow()
            pairs = replace(pairs, frame=nw.from_native(dealt))
        items = pairs.items_after(self.items)
        work = partial(held_lists, items=_ids(items), kind=self.kinds["user"])
        if few:
            held = pa.Table.from_batches(work(dealt.to_batches()))
            found = replace(self, items=items, held=held)
        else:
            with arrow_alone():
                lists = dealt.mapInArrow(work, HELD.format(IDS[self.kinds["user"]][1]))
            held = lists.select("repeats").toArrow()
            found = replace(self, items=items, frame=self.frame.join(lists.drop("repeats"), "block"))
        if repeats := pc.sum(held.column("repeats")).as_py():
            raise DuplicateError(
                f"{pairs.who}: {repeats:,} of {pairs.rows:,} rows repeat a (user, item) pair; keep one of each."
            )
        return found

    def release(self) -> None:
        """Free the memory of the executors."""
        self.frame.unpersist()

    def _check_sizes(self, ask: Ask, result: int) -> None:
        """Refuse what Spark would break at, in its own words and late."""
        session = self.frame.sparkSession
        most = driver_limit(session)
        if most is not None and result > most:
            raise InputError(
                f"MF: sums of {len(ask.Q):,} items × {ask.Q.shape[1]:,} factors are {written(result)}, and the driver "
                f"takes {written(most)}; raise {RESULT}, or use fewer factors."
            )
        if type(session).__module__.startswith("pyspark.sql.connect"):
            limit = bytes_of("maxInboundMessageSize", session.conf.get(MESSAGE, str(128 * 2**20)) or 128 * 2**20)
            sent = ask.Q.nbytes + (0 if self.held is None else self.held.nbytes)
            if sent > 0.9 * limit:  # what travels beside them is small
                raise InputError(
                    f"MF: the factors of {len(ask.Q):,} items are {written(sent)} with what is held out, and Spark "
                    f"Connect takes messages of {written(limit)}; raise {MESSAGE}, use fewer factors, or a session "
                    "without Connect."
                )


@contextmanager
def arrow_alone() -> Generator[None]:
    """Without PySpark's warning about the version of pandas, which blocks do not use."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)
        yield


MESSAGE = "spark.connect.grpc.maxInboundMessageSize"


def build(table: RatingsTable, items: Array, dtype: Any, *, keep: bool = True) -> SparkBlocks:
    """Deal the rows to blocks, and keep these in memory and on disk of the executors if they are asked often."""
    count = count_blocks(table.rows, len(items), BLOCK_ROWS)
    kinds = table.kinds
    real = {name: "bigint" if name not in ("weight", "ratings", "squares") else "double" for name in FACTS}
    schema = f"block int, ids array<{IDS[kinds['user']][1]}>, {', '.join(f'{part} binary' for part in PARTS)}, "
    schema += ", ".join(f"{name} {kind}" for name, kind in real.items())
    work = partial(built, items=_ids(items), heaviest=table.heaviest, dtype=np.dtype(dtype), kind=kinds["user"])
    dealt = table.frame.to_native().repartition(count, functions.col("u"))
    with arrow_alone():
        frame = dealt.mapInArrow(work, schema)
    frame = frame.persist(StorageLevel.MEMORY_AND_DISK) if keep else frame
    try:
        facts = _facts(table, frame)
    except BaseException:
        frame.unpersist()
        raise
    return SparkBlocks(frame=frame, count=count, items=items, kinds=kinds, dtype=np.dtype(dtype), facts=facts)


def _facts(table: RatingsTable, frame: Any) -> BlockFacts:
    """The facts of all blocks; asking for them makes the blocks."""
    found = (
        frame.select("block", functions.col("ptr").isNull().alias("large"), *FACTS)
        .toArrow()
        .sort_by("block")
        .to_pylist()
    )
    for row in found:
        if row["large"]:
            raise InputError(
                f"{table.who}: block {row['block']} has {row['rows']:,} rows of {row['users']:,} users, more than the "
                "2 GiB that Arrow holds in a cell; a few users have most of the rows: cut them."
            )
    facts = total_facts([BlockFacts(**{name: row[name] for name in FACTS}) for row in found])
    facts.check(table.who)
    return facts


def _ids(values: Array) -> Any:
    return pa.array(values, pa.string() if values.dtype == object else pa.int64())


def _edges(items: int, blocks: int, size: int) -> list[int]:
    """Where the sums of items are cut into pieces that are added on executors; one piece where the driver adds them."""
    pieces = piece_count(items, blocks * size, ON_DRIVER, AT_ONCE)
    return np.linspace(0, items, pieces + 1).astype(int).tolist()
