"""Blocks on Spark: made once, kept on the executors, and asked by map and add. DataFrames only, no RDDs.

Users are dealt to a fixed number of partitions by Spark's hash of their ids, and a partition's rows are sorted: a block
that an executor lost is made again with the same bits. Item factors travel with the question, rows stay.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields, replace
from functools import partial
from importlib import import_module
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark import StorageLevel, TaskContext
from pyspark.sql import functions

from openloop.core.feedback import Array
from openloop.errors import DuplicateError, InputError
from openloop.kernels.least_squares import Rows
from openloop.learners.blocks.building import BlockFacts, compressed, lists, taken, total_facts
from openloop.learners.blocks.ratings import RatingsTable
from openloop.learners.blocks.sizes import AT_ONCE, ON_DRIVER, bytes_of, piece_count, told
from openloop.learners.blocks.sizes import SPARK_ROWS as BLOCK_ROWS
from openloop.learners.blocks.user_blocks import Answer, Held, UserBlock, count_blocks, share
from openloop.learners.solvers.projected import Ask, Totals, added

CELL = 2**31 - 1  # bytes that Arrow and the JVM hold in one cell
BROADCAST_ROWS = 4_000_000  # held-out pairs that travel to the blocks; of more, blocks travel to them
pc: Any = import_module("pyarrow.compute")  # its functions are made when it is loaded, and have no types
FACTS = [f.name for f in fields(BlockFacts)]
IDS = {"integers": (pa.int64(), "bigint"), "text": (pa.string(), "string")}
PARTS = ("ptr", "item", "y", "w")
SUMS = "piece int, block int, loss double, offsets double, users bigint, sums binary"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SparkBlocks:
    """A persisted frame with one row per block; `held`: another with held-out pairs beside it."""

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
        work = partial(_sum_blocks, ask=ask, edges=edges, dtype=self.dtype)
        with arrow_alone():
            parts = self.frame.select("block", "ids", *PARTS).mapInArrow(work, SUMS)
            if len(edges) > 2:
                parts = parts.groupBy("piece").applyInArrow(_adder(ask.Q), SUMS)
        found = parts.toArrow().sort_by([("piece", "ascending"), ("block", "ascending")])
        pieces = [_summed(found.filter(pc.field("piece") == piece), ask.Q) for piece in range(len(edges) - 1)]
        return replace(pieces[0], sums=np.concatenate([piece.sums for piece in pieces]))

    def map(self, answer: Answer, ask: Ask) -> Any:
        """A Spark frame of what `answer` says of each block, under the answer's own names."""
        self._check_sizes(ask, 0)
        frame = self.frame.select("block", "ids", *PARTS)
        if self.held is not None:
            frame = frame.join(self.held, "block")
        types = {kind: IDS[self.kinds[kind]][1] for kind in ("user", "item")}
        real = "float" if self.dtype == np.float32 else "double"
        types |= {"int": "int", "float": real, "floats": f"array<{real}>"}
        schema = ", ".join(f"`{name}` {types[kind]}" for name, kind in answer.columns.items())
        work = partial(_answer, answer=answer, ask=ask, items=_ids(self.items), dtype=self.dtype)
        with arrow_alone():
            return frame.mapInArrow(work, schema)

    def beside(self, pairs: RatingsTable, items: Array) -> SparkBlocks:
        """The same blocks with held-out pairs beside them; `items` begins with the items of the fit."""
        schema = f"block int, held_ids array<{IDS[self.kinds['user']][1]}>, held_ptr binary, held_item binary"
        work = partial(_build_lists, items=_ids(items), kind=self.kinds["user"])
        dealt = pairs.frame.to_native().repartition(self.count, functions.col("u"))
        with arrow_alone():
            frame = dealt.mapInArrow(work, f"{schema}, repeats bigint")
        small = pairs.rows <= BROADCAST_ROWS
        told_once = frame.toArrow() if small else frame.select("repeats").toArrow()
        repeats = sum(told_once.column("repeats").to_pylist())
        if repeats:
            raise DuplicateError(
                f"{pairs.who}: {repeats:,} of {pairs.rows:,} rows repeat a (user, item) pair; keep one of each."
            )
        if small:  # beside the rows that they were held out of: then they go where the blocks are
            frame = functions.broadcast(frame.sparkSession.createDataFrame(told_once))
        return replace(self, items=items, held=frame.drop("repeats"))

    def release(self) -> None:
        """Free the memory of the executors."""
        self.frame.unpersist()

    def _check_sizes(self, ask: Ask, result: int) -> None:
        """Refuse what Spark would break at, in its own words and late."""
        session = self.frame.sparkSession
        most = bytes_of("spark.driver.maxResultSize", session.conf.get("spark.driver.maxResultSize", "1g") or "1g")
        if result > most:
            raise InputError(
                f"MF: sums of {len(ask.Q):,} items × {ask.Q.shape[1]:,} factors are {told(result)}, and the driver "
                f"takes {told(most)}; raise spark.driver.maxResultSize, or use fewer factors."
            )
        if type(session).__module__.startswith("pyspark.sql.connect"):
            limit = bytes_of("maxInboundMessageSize", session.conf.get(MESSAGE, str(128 * 2**20)) or 128 * 2**20)
            if ask.Q.nbytes > 0.9 * limit:  # what travels beside them is small
                raise InputError(
                    f"MF: the factors of {len(ask.Q):,} items are {told(ask.Q.nbytes)}, and Spark Connect takes "
                    f"messages of {told(limit)}; raise {MESSAGE}, use fewer factors, or a session without Connect."
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
    work = partial(_build, items=_ids(items), heaviest=table.heaviest, dtype=np.dtype(dtype), kind=kinds["user"])
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


# -- on the executors ----------------------------------------------------------------------------------------


def _build(batches: Iterable[Any], items: Any, heaviest: float, dtype: Any, kind: str) -> Iterator[Any]:
    """One row: the partition's users and their rows. An empty partition is an empty block, as all blocks are there."""
    table = _table(batches, {"u": IDS[kind][0], "i": items.type, "y": pa.float64(), "w": pa.float64()})
    users, user = _coded(table.column("u"))
    y, w = table.column("y").to_numpy().astype(dtype), (table.column("w").to_numpy() / heaviest).astype(dtype)
    rows, facts = compressed(user, len(users), _codes(table.column("i"), items), y, w)
    cells: list[Any] = [np.ascontiguousarray(c).tobytes() for c in (rows.ptr, rows.partner, rows.y, rows.w)]
    if sum(map(len, cells)) + users.nbytes > CELL:
        cells, users = [None] * len(PARTS), users[:0]
    columns = {"block": pa.array([_block()], pa.int32()), "ids": pa.array([users.to_pylist()], pa.list_(users.type))}
    columns |= {name: pa.array([cell], pa.binary()) for name, cell in zip(PARTS, cells, strict=True)}
    yield pa.RecordBatch.from_pydict(columns | {name: pa.array([value]) for name, value in asdict(facts).items()})


def _build_lists(batches: Iterable[Any], items: Any, kind: str) -> Iterator[Any]:
    table = _table(batches, {"u": IDS[kind][0], "i": items.type})
    users, user = _coded(table.column("u"))
    ptr, item, repeats = lists(user, len(users), _codes(table.column("i"), items))
    yield pa.RecordBatch.from_pydict(
        {
            "block": pa.array([_block()], pa.int32()),
            "held_ids": pa.array([users.to_pylist()], pa.list_(users.type)),
            "held_ptr": pa.array([ptr.tobytes()], pa.binary()),
            "held_item": pa.array([item.tobytes()], pa.binary()),
            "repeats": pa.array([repeats], pa.int64()),
        }
    )


def _block() -> int:
    context = TaskContext.get()
    assert context is not None  # noqa: S101 (this runs in a task)
    return context.partitionId()


def _table(batches: Iterable[Any], types: dict[str, Any]) -> Any:
    return pa.Table.from_batches([b.cast(pa.schema(types)) for b in batches], pa.schema(types))


def _coded(column: Any) -> tuple[Any, Array]:
    """The distinct ids, ascending, and the position of each value among them."""
    ids = pc.unique(column)
    ids = ids.take(pc.sort_indices(ids))
    return ids, _codes(column, ids)


def _codes(column: Any, ids: Any) -> Array:
    """The position of each value among ids, -1 where it is not there."""
    return pc.fill_null(pc.index_in(column, value_set=ids), -1).to_numpy()


def _opened(batches: Iterable[Any], dtype: Any) -> Iterator[tuple[int, Any, UserBlock]]:
    """Number, ids of users and block of each row of a frame of blocks, without a copy of its rows."""
    for batch in batches:
        for k in range(batch.num_rows):
            cells = {name: batch.column(name)[k] for name in batch.schema.names}
            parts: Any = zip(PARTS, (np.int64, np.int32, dtype, dtype), strict=True)
            arrays: Any = (np.frombuffer(cells[name].as_buffer(), kind) for name, kind in parts)
            rows = Rows(*arrays)
            users, held = cells["ids"].values, None
            if "held_ptr" in cells:
                wanted = cells["held_ids"].values
                rows, users = taken(rows, _codes(wanted, users)), wanted
                ptr, item = cells["held_ptr"].as_buffer(), cells["held_item"].as_buffer()
                held = Held(ptr=np.frombuffer(ptr, np.int64), item=np.frombuffer(item, np.int32))
            yield cells["block"].as_py(), users, UserBlock(users=np.arange(len(users)), rows=rows, held=held)


def _sum_blocks(batches: Iterable[Any], ask: Ask, edges: Sequence[int], dtype: Any) -> Iterator[Any]:
    for number, _, block in _opened(batches, dtype):
        got = share(block, ask)
        for piece, (first, last) in enumerate(pairwise(edges)):
            yield pa.RecordBatch.from_pylist([_sum_row(piece, number, got, got.sums[first:last])], SUM_SCHEMA)


SUM_SCHEMA = pa.schema(
    {"piece": pa.int32(), "block": pa.int32(), "loss": pa.float64(), "offsets": pa.float64(), "users": pa.int64(),
     "sums": pa.binary()}
)  # fmt: skip


def _sum_row(piece: int, block: int, got: Totals, sums: Array) -> dict[str, Any]:
    told_once = {"loss": got.loss, "offsets": got.offsets, "users": got.users}
    return {"piece": piece, "block": block, **told_once, "sums": np.ascontiguousarray(sums).tobytes()}


def _adder(like: Array) -> Callable[[Any], Any]:
    """What adds the sums of one piece over all blocks, as the driver would; Spark reads its types."""
    empty = like[:0]  # the shape and the type are enough

    def add(table: pa.Table) -> pa.Table:  # pyright: ignore[reportUnknownParameterType]
        got = _summed(table.sort_by("block"), empty)
        row = _sum_row(table.column("piece")[0].as_py(), 0, got, got.sums)
        return pa.Table.from_pylist([row], SUM_SCHEMA)

    return add


def _summed(table: Any, like: Array) -> Totals:
    """Rows of sums in the order of blocks, added."""
    return added(
        Totals(
            loss=row["loss"].as_py(), offsets=row["offsets"].as_py(), users=row["users"].as_py(),
            sums=np.frombuffer(row["sums"].as_buffer(), like.dtype).reshape(-1, 2, like.shape[1]),
        )
        for row in ({name: table.column(name)[k] for name in SUM_SCHEMA.names} for k in range(table.num_rows))
    )  # fmt: skip


def _answer(batches: Iterable[Any], answer: Answer, ask: Ask, items: Any, dtype: Any) -> Iterator[Any]:
    for _, users, block in _opened(batches, dtype):
        found, ids = answer.of(block, ask), {"user": users, "item": items}
        yield pa.RecordBatch.from_pydict({
            name: ids[kind].take(pa.array(found[name])) if kind in ids else _arrow(found[name])
            for name, kind in answer.columns.items()
        })  # fmt: skip


def _arrow(values: Array) -> Any:
    if values.ndim == 1:
        return pa.array(values)
    offsets = np.arange(len(values) + 1, dtype=np.int32) * values.shape[1]
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), pa.array(values.ravel()))
