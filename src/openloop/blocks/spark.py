"""Blocks on Spark's executors: tables are dealt and joined there, and stay there; sums come to the driver.

The same code deals, joins and reduces as on one machine. Rows travel as Arrow data in binary cells: a row of a Spark
frame is a piece of a table, or a block.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import reduce
from typing import Any, TypeVar, cast

import pyarrow as pa
from pyspark.sql import functions

from openloop.blocks.block import Block
from openloop.blocks.dealing import Check, ReadIds
from openloop.blocks.joining import Dealt, Join, JoinFacts
from openloop.blocks.population import IdSet
from openloop.blocks.spark_jobs import check_workers, kept, mapped, released_on_error, told
from openloop.blocks.spark_tasks import CELLS, Deal, Ids, Joining, Pack, PartRows, Reading, Working
from openloop.blocks.store import BUCKETS
from openloop.data.columns import InputTable

Result = TypeVar("Result")

# Parts of the users: a power of two. Spark moves the rows of a part at once and 2 GiB at most, so there are many even
# on a small cluster; a task works on several, where they are small.
PER_CORE, FEWEST = 4, 32  # tasks of a core, so that all cores are busy; parts
SMALL, LARGE = 2**22, 2**27  # bytes of a task: with fewer, Spark takes longer to start it than the work takes


class SparkDealer:
    """Has the tables of an evaluation read by executors; small tables from elsewhere are sent to them."""

    def __init__(self, session: Any) -> None:
        check_workers(session)
        self._session = session
        self._n_tasks = PER_CORE * _cores(session)
        self._n_parts = FEWEST
        while self._n_parts < min(self._n_tasks, BUCKETS):
            self._n_parts *= 2
        self._frames: list[Any] = []
        self._dealt: list[tuple[Dealt, PartRows, Mapping[str, Any], ReadIds]] = []
        self._packed: Any = None
        self._blocks: SparkBlocks | None = None

    def deal(
        self,
        table: InputTable,
        columns: Mapping[str, str],
        checks: Mapping[str, Check],
        ids: ReadIds,
        *,
        is_log: bool = False,
        positive: float | None = None,
    ) -> Dealt:
        """The rows of a table, which are numbered within their partition."""
        names = tuple(dict.fromkeys(columns.values()))
        task = Deal(
            table=len(self._dealt), name=table.name, names=names, columns=columns, checks=checks, text=table.text,
            n_parts=self._n_parts, is_log=is_log, positive=positive,
        )  # fmt: skip
        if on_spark(table):
            chosen = [functions.col(_quoted(name)).alias(str(k)) for k, name in enumerate(names)]
            self._frames.append(mapped(table.frame.select(*chosen), task))
        else:
            batches = task.dealt(table.batches(names, 1_000_000), table.name)
            self._frames.append(self._session.createDataFrame(pa.Table.from_batches(batches, CELLS)))
        store = PartRows(task.table, columns)
        self._dealt.append((Dealt(store=store), store, checks, ids))
        return self._dealt[-1][0]

    def finish(self) -> None:
        """Read all tables: one job."""
        sets: list[IdSet] = []
        wanted: dict[int, list[tuple[int, str]]] = {}
        for number, (_, _, _, ids) in enumerate(self._dealt):
            for side, ids_of_side in ids.sets.items():
                if ids_of_side not in sets:
                    sets.append(ids_of_side)
                wanted.setdefault(sets.index(ids_of_side), []).append((number, side))
        dealt = reduce(lambda a, b: a.union(b), self._frames).repartition(self._n_parts, "part")
        pack = Pack(n_parts=self._n_parts, sets={number: tuple(tables) for number, tables in wanted.items()})
        self._packed = kept(mapped(dealt, pack))
        with released_on_error(self._packed):
            answers = list(told(self._packed))
            for reading in sorted((x for x in answers if isinstance(x, Reading)), key=lambda x: (x.table, x.place)):
                self._note(reading)
            size = 0
            for found in (x for x in answers if isinstance(x, Ids)):
                size += found.size
                for number, ids in found.sets.items():
                    sets[number].add(ids)
        self._n_tasks = sorted((size // LARGE, self._n_tasks, size // SMALL))[1]

    def _note(self, reading: Reading) -> None:
        _, store, checks, ids = self._dealt[reading.table]
        store.rows += reading.rows
        ids.floats |= reading.ids.floats
        for side, kind in reading.ids.kinds.items():
            ids.kinds[side] = "text" if "text" in (kind, ids.kinds.get(side)) else kind
        for role, check in reading.checks.items():
            if hasattr(check, "add"):
                checks[role].add(check)

    def join(self, join: Join) -> SparkBlocks:
        """The blocks of all that was read: one job."""
        with released_on_error(self._packed):
            blocks = SparkBlocks(self._packed.coalesce(max(1, min(self._n_tasks, self._n_parts))), join)
        self._packed.unpersist()
        self._blocks = blocks
        return blocks

    def close(self) -> None:
        """Free the memory of executors."""
        if self._packed is not None:
            self._packed.unpersist()
        if self._blocks is not None:
            self._blocks.close()


class SparkBlocks:
    """Joined blocks as a persisted frame with a row for each; every pass over them is one job."""

    def __init__(self, packed: Any, join: Join) -> None:
        _ = join.population.by_bucket  # found once, and not in every task
        self._frame = kept(mapped(packed, Joining(join=join)))
        with released_on_error(self._frame):
            self.facts = sum(cast("Iterable[JoinFacts]", told(self._frame)), JoinFacts())

    def __getstate__(self) -> dict[str, Any]:
        """Nothing goes to executors: what they work on are single blocks."""
        return {}

    def map(self, work: Callable[[Block], Result]) -> Iterator[Result]:
        """What `work` makes of each block, in their order."""
        for (result,) in told(mapped(self._frame, Working(work=work))):
            yield result

    def update(self, work: Callable[[Block], tuple[Block, Result]]) -> Iterator[Result]:
        """The same, where `work` gives the block anew, too, as later passes see it."""
        frame = kept(mapped(self._frame, Working(work=work, updates=True)))
        with released_on_error(frame):
            results = list(told(frame))
        self._frame.unpersist()
        self._frame = frame
        for (result,) in results:
            yield result

    def close(self) -> None:
        """Free the memory of executors."""
        self._frame.unpersist()


def on_spark(table: InputTable) -> bool:
    """Whether a table is a frame of Spark."""
    return table.frame is not None


def _cores(session: Any) -> int:
    """How many tasks run at once, as far as Spark says it."""
    try:
        return int(session.sparkContext.defaultParallelism)
    except Exception:  # noqa: BLE001 (Spark Connect has no context, and says so in several ways)
        return FEWEST // PER_CORE


def _quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"
