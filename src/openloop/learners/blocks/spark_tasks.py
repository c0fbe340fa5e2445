"""Tasks of Spark's Python workers: rows to blocks, held-out pairs to lists, and what blocks say when asked.

Each takes the Arrow batches of a partition and yields others.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from importlib import import_module
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark import TaskContext

from openloop.core.feedback import Array
from openloop.kernels.least_squares import Rows
from openloop.learners.blocks.building import compressed, lists, taken
from openloop.learners.blocks.user_blocks import Answer, Held, UserBlock, share
from openloop.learners.solvers.projected import Ask, Totals, added

CELL = 2**31 - 1  # bytes that Arrow and the JVM hold in one cell
pc: Any = import_module("pyarrow.compute")  # its functions are made when it is loaded, and have no types
IDS = {"integers": (pa.int64(), "bigint"), "text": (pa.string(), "string")}
PARTS = ("ptr", "item", "y", "w")


def built(batches: Iterable[Any], items: Any, heaviest: float, dtype: Any, kind: str) -> Iterator[Any]:
    """One row: the partition's users and their rows. An empty partition is an empty block, as all blocks are there."""
    table = _table(batches, {"u": IDS[kind][0], "i": items.type, "y": pa.float64(), "w": pa.float64()})
    users, user = _coded(table.column("u"))
    y, w = table.column("y").to_numpy().astype(dtype), (table.column("w").to_numpy() / heaviest).astype(dtype)
    rows, facts = compressed(user, len(users), _codes(table.column("i"), items), y, w)
    cells: list[Any] = [np.ascontiguousarray(c).tobytes() for c in (rows.ptr, rows.partner, rows.y, rows.w)]
    if sum(map(len, cells)) + users.nbytes > CELL:
        cells, users = [None] * len(PARTS), users[:0]
    columns = {"block": pa.array([_block()], pa.int32()), "ids": _one_list(users)}
    columns |= {name: pa.array([cell], pa.binary()) for name, cell in zip(PARTS, cells, strict=True)}
    yield pa.RecordBatch.from_pydict(columns | {name: pa.array([value]) for name, value in asdict(facts).items()})


def held_lists(batches: Iterable[Any], items: Any, kind: str) -> Iterator[Any]:
    """A row for each block that there are pairs of: its users and their held-out items."""
    table = _table(batches, {"u": IDS[kind][0], "i": items.type, "block": pa.int32()}).sort_by("block")
    number = table.column("block").to_numpy()
    starts = np.flatnonzero(np.diff(number, prepend=-1))
    for first, last in pairwise([*starts.tolist(), len(number)]):
        mine = table.slice(first, last - first)
        users, user = _coded(mine.column("u"))
        ptr, item, repeats = lists(user, len(users), _codes(mine.column("i"), items))
        yield pa.RecordBatch.from_pydict(
            {
                "block": pa.array(number[first : first + 1]),
                "held_ids": _one_list(users),
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


def _one_list(values: Any) -> Any:
    return pa.ListArray.from_arrays(pa.array([0, len(values)], pa.int32()), values)


def _opened(batches: Iterable[Any], dtype: Any, held: Any = None) -> Iterator[tuple[int, Any, UserBlock]]:
    """Number, ids of users and block of each row of a frame of blocks, without a copy of its rows.

    Where lists of held-out items came with the question, only blocks with one are opened.
    """
    gc.freeze()  # PySpark collects garbage after each task, and what numba has loaded is none: a fifth of a pass
    lists_of = {} if held is None else {cells["block"].as_py(): cells for cells in _rows(held)}
    for batch in batches:
        for cells in _rows(batch):
            number = cells["block"].as_py()
            if held is None or number in lists_of:
                yield number, *_block_of({**cells, **lists_of.get(number, {})}, dtype)


def _rows(table: Any) -> Iterator[dict[str, Any]]:
    for k in range(table.num_rows):
        yield {name: table.column(name)[k] for name in table.schema.names}


def _block_of(cells: Mapping[str, Any], dtype: Any) -> tuple[Any, UserBlock]:
    parts: Any = zip(PARTS, (np.int64, np.int32, dtype, dtype), strict=True)
    arrays: Any = (np.frombuffer(cells[name].as_buffer(), kind) for name, kind in parts)
    rows, users, held = Rows(*arrays), cells["ids"].values, None
    if "held_ptr" in cells:
        wanted = cells["held_ids"].values
        rows, users = taken(rows, _codes(wanted, users)), wanted
        ptr, item = cells["held_ptr"].as_buffer(), cells["held_item"].as_buffer()
        held = Held(ptr=np.frombuffer(ptr, np.int64), item=np.frombuffer(item, np.int32))
    return users, UserBlock(users=np.arange(len(users)), rows=rows, held=held)


def sums_of(batches: Iterable[Any], ask: Ask, edges: Sequence[int], dtype: Any) -> Iterator[Any]:
    """A row for each block and piece of items."""
    for number, _, block in _opened(batches, dtype):
        got = share(block, ask)
        for piece, (first, last) in enumerate(pairwise(edges)):
            yield pa.RecordBatch.from_pylist([_sum_row(piece, number, got, got.sums[first:last])], SUM_SCHEMA)


SUM_SCHEMA = pa.schema(
    {"piece": pa.int32(), "block": pa.int32(), "loss": pa.float64(), "offsets": pa.float64(), "users": pa.int64(),
     "sums": pa.binary()}
)  # fmt: skip


def _sum_row(piece: int, block: int, got: Totals, sums: Array) -> dict[str, Any]:
    totals = {"loss": got.loss, "offsets": got.offsets, "users": got.users}
    return {"piece": piece, "block": block, **totals, "sums": np.ascontiguousarray(sums).tobytes()}


def adder(like: Array) -> Callable[[Any], Any]:
    """What adds the sums of one piece over all blocks, as the driver would; Spark reads its types."""
    empty = like[:0]  # the shape and the type are enough

    def add(table: pa.Table) -> pa.Table:  # pyright: ignore[reportUnknownParameterType]
        got = summed(table.sort_by("block"), empty)
        row = _sum_row(table.column("piece")[0].as_py(), 0, got, got.sums)
        return pa.Table.from_pylist([row], SUM_SCHEMA)

    return add


def summed(table: Any, like: Array) -> Totals:
    """Rows of sums in the order of blocks, added."""
    return added(
        Totals(
            loss=row["loss"].as_py(), offsets=row["offsets"].as_py(), users=row["users"].as_py(),
            sums=np.frombuffer(row["sums"].as_buffer(), like.dtype).reshape(-1, 2, like.shape[1]),
        )
        for row in _rows(table)
    )  # fmt: skip


def answers(batches: Iterable[Any], answer: Answer, ask: Ask, items: Any, dtype: Any, held: Any) -> Iterator[Any]:
    """What each block says, with the ids of its users and items."""
    for _, users, block in _opened(batches, dtype, held):
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
