"""Jobs of Spark: tasks are sent to executors, and what they tell comes back; or why executors cannot do them."""

from __future__ import annotations

import pickle
import re
import shutil
import subprocess
import sys
import warnings
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import Any

from pyspark import StorageLevel, cloudpickle

from openloop.blocks.spark_tasks import CELLS, Failure
from openloop.errors import InputError, MissingPackageError
from openloop.support.sizes import RESULT
from openloop.support.version import VERSION

CELL_TYPES = "part int, table int, place int, rows binary, told binary"
UNABLE = re.compile(
    r"No module named '?([\w.]+)'?|PYTHON_VERSION_MISMATCH|Python in worker has different version"
    r"|PACKAGE_NOT_INSTALLED|UNSUPPORTED_PACKAGE_VERSION|Cannot run program"
)
PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"


def mapped(frame: Any, work: Any) -> Any:
    """A frame of what a task yields of each partition of another."""
    try:
        payload = cloudpickle.dumps(work)
    except Exception as error:
        raise InputError(
            f"evaluate: what executors need cannot be sent to them ({error}); give models and metrics that can be "
            "pickled, or scan the log with executors=False."
        ) from error
    version, types = VERSION, CELLS.names

    # Spark sends this function as code, so that it can say what executors lack: it names nothing of openloop's.
    def task(batches: Any) -> Iterator[Any]:

        import pyarrow as pa

        run, error = None, None
        try:
            from openloop.support.version import VERSION as INSTALLED

            if version != INSTALLED:
                error = ImportError(f"openloop {INSTALLED} instead of {version}")
            else:
                from openloop.blocks.spark_tasks import run
        except ImportError as missing:
            error = missing
        if run is not None:
            yield from run(payload, batches)
            return
        for _ in batches:  # a worker that leaves rows unread ends, and the next one takes a second to start
            pass
        values = (0, -1, 0, None, pickle.dumps(error))
        kinds = (pa.int32(), pa.int32(), pa.int32(), pa.binary(), pa.binary())
        columns = [pa.array([value], kind) for value, kind in zip(values, kinds, strict=True)]
        yield pa.RecordBatch.from_arrays(columns, types)

    with _arrow_alone():
        return frame.mapInArrow(task, CELL_TYPES)


def kept(frame: Any) -> Any:
    """The frame, whose rows executors keep once they are made."""
    return frame.persist(StorageLevel.MEMORY_AND_DISK)


def told(frame: Any) -> Iterator[Any]:
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
        f"evaluate: Spark's executors cannot run openloop ({why}); give them Python {PYTHON} with "
        f"openloop {VERSION}: where they have the files of this machine, set "
        f"PYSPARK_PYTHON={sys.executable} before Spark starts; where they cannot have it, scan the log with "
        "executors=False."
    )


@contextmanager
def released_on_error(frame: Any) -> Generator[None]:
    """Have executors keep a frame no longer if something goes wrong."""
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


def check_workers(session: Any) -> None:
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
    if tried.returncode or tried.stdout.strip() != PYTHON:
        why = tried.stderr.strip().splitlines()[-1:] or [f"Python {tried.stdout.strip()} instead of {PYTHON}"]
        raise _unable(f"{path}: {why[0]}")
