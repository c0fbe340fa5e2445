"""What Spark's Python workers do: rows of tables are dealt to parts, parts packed as blocks, and blocks worked on.

Each task takes the Arrow batches of a partition and yields rows of `CELLS`. What goes wrong is told to the driver in
such a row, too: an exception that leaves a task would be tried again, and come with a trace of the JVM.
"""

from __future__ import annotations

import gc
import io
import pickle
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
from pyspark import TaskContext

from openloop.blocks.block import Block
from openloop.blocks.dealing import Check, ReadIds, deal_table
from openloop.blocks.joining import Join, JoinFacts
from openloop.blocks.population import IdSet
from openloop.blocks.store import BLOCK_ROWS, BUCKETS, Budget
from openloop.core.vocabulary import Int64s
from openloop.data.columns import InputTable
from openloop.errors import InputError, OpenloopError

CELLS = pa.schema(
    {"part": pa.int32(), "table": pa.int32(), "place": pa.int32(), "rows": pa.binary(), "told": pa.binary()}
)
LARGEST = 2**31 - 1  # bytes that Arrow and the JVM hold in one cell
BUDGET = 2**28  # bytes of rows that a task holds until they are dealt: executors have little memory beside the JVM's
NO_TABLE = -1

Batch = Any  # of pyarrow, whose types are not complete
Task = Callable[[Iterable[Batch]], Iterator[Batch]]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Failure:
    """What went wrong in a task."""

    error: BaseException


def run(payload: bytes, batches: Iterable[Batch]) -> Iterator[Batch]:
    """The rows of a pickled task, and of what went wrong."""
    gc.freeze()  # PySpark collects garbage after each task, and what numba has loaded is none
    batches = iter(batches)
    try:
        yield from _task(payload)(batches)
    except Exception as error:  # noqa: BLE001 (the driver raises it)
        for _ in batches:  # a worker that leaves rows unread ends, and the next one takes a second to start
            pass
        yield cells(told=Failure(error=_portable(error)))


@lru_cache(maxsize=1)
def _task(payload: bytes) -> Task:
    return pickle.loads(payload)  # noqa: S301 (by the driver's cloudpickle)


def _portable(error: Exception) -> Exception:
    """The error, with where it was unless that is the caller's matter; or its text where it cannot be pickled."""
    if not isinstance(error, OpenloopError | ImportError):
        error.add_note("On an executor:\n" + traceback.format_exc())
    try:
        pickle.dumps(error)
    except Exception:  # noqa: BLE001 (whatever pickling raises)
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error


def cells(
    *, part: int = 0, table: int = NO_TABLE, place: int = 0, rows: bytes | None = None, told: Any = None
) -> Batch:
    """A batch of one row."""
    said = None if told is None else pickle.dumps(told, protocol=5)
    if max(len(rows or b""), len(said or b"")) > LARGEST:
        raise InputError(
            "evaluate: a few users have so many rows that their block is larger than the 2 GiB that Spark holds in a "
            "cell; take fewer models at once, or scan the log with executors=False."
        )
    row = {"part": part, "table": table, "place": place, "rows": rows, "told": said}
    return pa.RecordBatch.from_pylist([row], CELLS)


def written(frame: pl.DataFrame) -> bytes:
    """A frame as bytes."""
    buffer = io.BytesIO()
    frame.write_ipc_stream(buffer)
    return buffer.getvalue()


def _rows_of(batches: Iterable[Batch]) -> Iterator[dict[str, Any]]:
    """The rows of a partition, one at a time."""
    for batch in batches:
        for k in range(batch.num_rows):
            yield {name: batch.column(j)[k].as_py() for j, name in enumerate(batch.schema.names)}


# -- dealing -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Reading:
    """What a partition of a table told: its rows, the kinds of its ids, and its checks with what they have counted."""

    table: int
    place: int
    rows: int
    ids: ReadIds
    checks: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Deal:
    """The rows of a table, checked, by part: so many neighbouring buckets of their users."""

    table: int
    name: str
    names: tuple[str, ...]
    columns: Mapping[str, str]
    checks: Mapping[str, Check]
    text: bool
    n_parts: int
    is_log: bool = False
    positive: float | None = None

    def __call__(self, batches: Iterable[Batch]) -> Iterator[Batch]:
        """Those of a partition of a Spark frame."""
        context = TaskContext.get()
        place = 0 if context is None else context.partitionId()
        frames = (pl.DataFrame(batch).rename(lambda k: self.names[int(k)]) for batch in batches if batch.num_rows)
        first = next(frames, None)
        if first is not None:
            yield from self.dealt(chain([first], frames), f"{self.name}, partition {place}", place)

    def dealt(self, frames: Iterable[pl.DataFrame], name: str, place: int = 0) -> Iterator[Batch]:
        """Those of some frames."""
        ids, width = ReadIds(), BUCKETS // self.n_parts
        table = InputTable(name, self.names, lambda columns, _: (f.select(columns) for f in frames), text=self.text)
        dealt = deal_table(
            table, self.columns, self.checks, Budget(BUDGET), ids, is_log=self.is_log, positive=self.positive
        )
        store = dealt.store
        for part in range(self.n_parts):
            first, last = part * width, (part + 1) * width
            bucket = np.repeat(np.arange(first, last, dtype=np.uint8), store.rows[first:last])
            rows = store.frame(first, last).with_columns(bucket=bucket)
            yield cells(part=part, table=self.table, place=place, rows=written(rows))
            store.release(first, last)
        n_rows = int(store.rows.sum())
        yield cells(told=Reading(table=self.table, place=place, rows=n_rows, ids=ids, checks=self.checks))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Ids:
    """The distinct ids of a block, by the number of the set that wants them; and its bytes."""

    size: int
    sets: Mapping[int, pl.Series]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Pack:
    """Parts to blocks of raw rows; table 0 is the log, whose rows say how many blocks a part has.

    `sets` are the tables and sides whose ids are wanted, by number.
    """

    n_parts: int
    sets: Mapping[int, tuple[tuple[int, str], ...]]

    def __call__(self, batches: Iterable[Batch]) -> Iterator[Batch]:
        """The blocks of a partition."""
        pieces: dict[int, dict[int, list[tuple[int, bytes]]]] = {}
        for row in _rows_of(batches):
            if row["rows"] is None:
                yield cells(told=pickle.loads(row["told"]))  # noqa: S301 (of another task)
            else:
                pieces.setdefault(row["part"], {}).setdefault(row["table"], []).append((row["place"], row["rows"]))
        for part in sorted(pieces):
            tables = {table: _in_order(own) for table, own in sorted(pieces.pop(part).items())}
            yield from self._blocks(part, tables)

    def _blocks(self, part: int, tables: Mapping[int, pl.DataFrame]) -> Iterator[Batch]:
        width = BUCKETS // self.n_parts
        starts = {
            table: np.searchsorted(frame["bucket"].to_numpy(), np.arange(width + 1) + part * width)
            for table, frame in tables.items()
        }
        log = starts.get(0, np.zeros(width + 1, np.int64))
        for low, high in _ranges(np.diff(log)):
            rows = {
                table: frame[int(starts[table][low]) : int(starts[table][high])].drop("bucket")
                for table, frame in tables.items()
            }
            first, last = part * width + low, part * width + high
            packed = pickle.dumps((first, last, {table: written(frame) for table, frame in rows.items()}), protocol=5)
            sets = {number: self._ids(rows, wanted) for number, wanted in self.sets.items()}
            yield cells(place=first, rows=packed, told=Ids(size=len(packed), sets=sets))

    def _ids(self, rows: Mapping[int, pl.DataFrame], wanted: Iterable[tuple[int, str]]) -> pl.Series:
        ids = IdSet()
        for table, side in wanted:
            if table in rows:
                ids.add(rows[table][side])
        return ids.ids


def _in_order(pieces: list[tuple[int, bytes]]) -> pl.DataFrame:
    """The pieces of a table by bucket, in the order of its partitions."""
    frames = [pl.read_ipc_stream(rows) for _, rows in sorted(pieces, key=lambda piece: piece[0])]
    return pl.concat(frames).sort("bucket", maintain_order=True)


def _ranges(rows: Int64s) -> list[tuple[int, int]]:
    """Ranges of a part's buckets, as few as give each at most `BLOCK_ROWS` rows on average."""
    n_blocks = 1
    while n_blocks < len(rows) and rows.sum() > BLOCK_ROWS * n_blocks:
        n_blocks *= 2
    width = len(rows) // n_blocks
    return [(first, first + width) for first in range(0, len(rows), width)]


# -- blocks --------------------------------------------------------------------------------------------------


class PartRows:
    """The rows of a table that executors hold; in a task, those of the block that is joined."""

    def __init__(self, table: int, roles: Iterable[str]) -> None:
        self.table = table
        self.rows = np.zeros(1, np.int64)
        self._empty = pl.DataFrame(schema={r: pl.Int64 if r in ("user", "item") else pl.Float64 for r in roles})
        self._frame = self._empty

    def put(self, tables: Mapping[int, bytes]) -> None:
        """Have the rows of a block."""
        rows = tables.get(self.table)
        self._frame = self._empty if rows is None else pl.read_ipc_stream(rows)

    def frame(self, first: int, last: int) -> pl.DataFrame:
        """The rows of these buckets, which are the block's."""
        del first, last
        return self._frame

    def release(self, first: int, last: int) -> None:
        """They are replaced by those of the next block."""

    def close(self) -> None:
        """There is nothing to close."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Joining:
    """Blocks of raw rows to joined blocks, and what they told, added up."""

    join: Join

    def __call__(self, batches: Iterable[Batch]) -> Iterator[Batch]:
        """Those of a partition."""
        parts: list[JoinFacts] = []
        for row in _rows_of(batches):
            if row["rows"] is None:
                continue
            first, last, tables = pickle.loads(row["rows"])  # noqa: S301 (of another task)
            for dealt in self.join.dealt:
                store: Any = dealt.store
                store.put(tables)
            block, facts = self.join(first, last)
            parts.append(facts)
            yield cells(place=first, rows=_packed(block))
        if parts:
            yield cells(told=sum(parts, JoinFacts()))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Working:
    """What a function makes of each block; with `updates` also the blocks that it makes."""

    work: Callable[[Block], Any]
    updates: bool = False

    def __call__(self, batches: Iterable[Batch]) -> Iterator[Batch]:
        """Those of a partition."""
        for row in _rows_of(batches):
            if row["rows"] is None:
                continue
            frames = {name: pl.read_ipc_stream(data) for name, data in pickle.loads(row["rows"]).items()}  # noqa: S301
            result = self.work(Block.of_frames(frames))
            if self.updates:
                block, result = result
                yield cells(place=row["place"], rows=_packed(block), told=(result,))
            else:
                yield cells(place=row["place"], told=(result,))


def _packed(block: Block) -> bytes:
    return pickle.dumps({name: written(frame) for name, frame in block.frames().items()}, protocol=5)
