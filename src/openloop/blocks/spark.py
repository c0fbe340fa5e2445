"""Blocks on Spark's executors: tables are dealt and joined there, and stay there; sums come to the driver.

The same code deals, joins and reduces as on one machine. Rows travel as Arrow data in binary cells: a row of a Spark
frame is a piece of a table, or a block.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import warnings
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import reduce
from typing import Any, TypeVar, cast

import pyarrow as pa
from pyspark import StorageLevel, cloudpickle
from pyspark.sql import functions

from openloop.blocks.block import Block
from openloop.blocks.dealing import Check, ReadIds
from openloop.blocks.joining import Dealt, Join, JoinFacts
from openloop.blocks.population import IdSet
from openloop.blocks.spark_tasks import CELLS, Deal, Failure, Ids, Joining, Pack, PartRows, Reading, Working
from openloop.blocks.store import BUCKETS
from openloop.data.columns import InputTable
from openloop.errors import InputError, MissingPackageError
from openloop.support.sizes import RESULT
from openloop.support.version import VERSION

Result = TypeVar("Result")

# Parts of the users: a power of two. Spark moves the rows of a part at once and 2 GiB at most, so there are many even
# on a small cluster; a task works on several, where they are small.
PER_CORE, FEWEST = 4, 32  # tasks of a core, so that all cores are busy; parts
SMALL, LARGE = 2**22, 2**27  # bytes of a task: with fewer, Spark takes longer to start it than the work takes
CELL_TYPES = "part int, table int, place int, rows binary, told binary"
UNABLE = re.compile(
    r"No module named '?([\w.]+)'?|PYTHON_VERSION_MISMATCH|Python in worker has different version"
    r"|PACKAGE_NOT_INSTALLED|UNSUPPORTED_PACKAGE_VERSION|Cannot run program"
)


class SparkDealer:
    """Has the tables of an evaluation read by executors; small tables from elsewhere are sent to them."""

    def __init__(self, session: Any) -> None:
        _check_workers(session)
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
            self._frames.append(_mapped(table.frame.select(*chosen), task))
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
        self._packed = _kept(_mapped(dealt, pack))
        with _released_on_error(self._packed):
            told = list(_told(self._packed))
            for reading in sorted((x for x in told if isinstance(x, Reading)), key=lambda x: (x.table, x.place)):
                self._note(reading)
            size = 0
            for found in (x for x in told if isinstance(x, Ids)):
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
        with _released_on_error(self._packed):
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
        self._frame = _kept(_mapped(packed, Joining(join=join)))
        with _released_on_error(self._frame):
            self.facts = sum(cast("Iterable[JoinFacts]", _told(self._frame)), JoinFacts())

    def __getstate__(self) -> dict[str, Any]:
        """Nothing goes to executors: what they work on are single blocks."""
        return {}

    def map(self, work: Callable[[Block], Result]) -> Iterator[Result]:
        """What `work` makes of each block, in their order."""
        for (result,) in _told(_mapped(self._frame, Working(work=work))):
            yield result

    def update(self, work: Callable[[Block], tuple[Block, Result]]) -> Iterator[Result]:
        """The same, where `work` gives the block anew, too, as later passes see it."""
        frame = _kept(_mapped(self._frame, Working(work=work, updates=True)))
        with _released_on_error(frame):
            results = list(_told(frame))
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


def _check_workers(session: Any) -> None:
    """Refuse a Python of this machine that cannot run openloop, before Spark tries it and prints what failed."""
    try:
        context = session.sparkContext
        program, is_local = context.pythonExec, context.master.startswith("local")
    except Exception:  # noqa: BLE001 (as above)
        return
    path = shutil.which(program)
    if not is_local or path == sys.executable:
        return
    if path is None:
        raise _unable(f"there is no program {program!r}")
    imports = "import sys, pyarrow, openloop; print(*sys.version_info[:2], sep='.')"
    tried = subprocess.run([path, "-c", imports], capture_output=True, text=True, check=False)  # noqa: S603 (Spark's)
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    if tried.returncode or tried.stdout.strip() != version:
        why = tried.stderr.strip().splitlines()[-1:] or [f"Python {tried.stdout.strip()} instead of {version}"]
        raise _unable(f"{path}: {why[0]}")


def _quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"


# -- tasks and their answers ---------------------------------------------------------------------------------


def _mapped(frame: Any, work: Any) -> Any:
    """A frame of what a task yields of each partition of another."""
    try:
        payload = cloudpickle.dumps(work)
    except Exception as error:
        raise InputError(
            f"evaluate: what executors need cannot be sent to them ({error}); give models and metrics that can be "
            "pickled, or scan the log with executors=False."
        ) from error
    version, types = VERSION, CELLS.names

    # Spark sends these functions as code, so that they can say what executors lack: they name nothing of openloop's.
    def installed() -> Any:
        from openloop.support.version import VERSION as INSTALLED

        if version != INSTALLED:
            raise ImportError(f"openloop {INSTALLED} instead of {version}", name="openloop")
        from openloop.blocks.spark_tasks import run

        return run

    def task(batches: Any) -> Iterator[Any]:
        import pickle

        import pyarrow as pa

        try:
            run = installed()
        except ImportError as error:
            values = (0, -1, 0, None, pickle.dumps(error))
            kinds = (pa.int32(), pa.int32(), pa.int32(), pa.binary(), pa.binary())
            columns = [pa.array([value], kind) for value, kind in zip(values, kinds, strict=True)]
            yield pa.RecordBatch.from_arrays(columns, types)
        else:
            yield from run(payload, batches)

    with _arrow_alone():
        return frame.mapInArrow(task, CELL_TYPES)


def _kept(frame: Any) -> Any:
    return frame.persist(StorageLevel.MEMORY_AND_DISK)


def _told(frame: Any) -> Iterator[Any]:
    """What tasks told, in the order of blocks: one job."""
    try:
        with _arrow_alone():
            table = frame.select("place", "told").where("told is not null").toArrow()
    except Exception as error:
        raise _in_words(error) from error
    table = table.sort_by("place")
    answers = [cloudpickle.loads(cell.as_buffer()) for cell in table.column("told")]
    for answer in answers:
        if isinstance(answer, ImportError):
            raise _unable(str(answer))
        if isinstance(answer, Failure):
            raise _unable(str(answer.error)) if isinstance(answer.error, ModuleNotFoundError) else answer.error
    yield from answers


def _in_words(error: Exception) -> Exception:
    """What Spark failed at, in one sentence where it is known."""
    text = str(error)
    found = UNABLE.search(text)
    if found is not None:
        error.__cause__ = error.__context__ = None
        return _unable(text[found.start() :].splitlines()[0])
    if RESULT in text:
        return InputError(f"evaluate: the sums of all users are more than the driver takes; raise {RESULT}.")
    return error


def _unable(why: str) -> MissingPackageError:
    return MissingPackageError(
        f"evaluate: Spark's executors cannot run openloop ({why}); give them Python {sys.version_info.major}."
        f"{sys.version_info.minor} with openloop {VERSION}: where they have the files of this machine, set "
        f"PYSPARK_PYTHON={sys.executable} before Spark starts; where they cannot have it, scan the log with "
        "executors=False."
    )


@contextmanager
def _released_on_error(frame: Any) -> Generator[None]:
    try:
        yield
    except BaseException:
        frame.unpersist()
        raise


@contextmanager
def _arrow_alone() -> Generator[None]:
    """Without PySpark's warning about the version of pandas, which blocks do not use."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)
        yield
