"""Trials: pure functions of arrays and settings, computed in processes and kept by content.

A trial is kept in the file whose name is a digest of its arrays, its setting, the code that it runs and the versions
of the numerical libraries. So a run that was stopped goes on where it was, and its numbers are the same bytes. Which
code that is, `openloop.studies.kit.fingerprint` says. A file that is damaged counts as absent, and one that cannot be
written is a note: what is kept saves time, and decides nothing.
"""

from __future__ import annotations

import json
import math
import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt
from threadpoolctl import threadpool_limits

from openloop.core.feedback import Feedback, Vocabulary
from openloop.errors import InputError, OpenloopError
from openloop.studies.kit.fingerprint import code_digest, digest, versions
from openloop.studies.kit.kept_arrays import Given, Outcome, arrays_of, digest_of, keep, kept, remove_remains
from openloop.support.atomic import write_text
from openloop.support.leftovers import remove_leftovers, sweep
from openloop.support.system_errors import FULL

Setting = Mapping[str, Any]
Trial = Callable[..., Mapping[str, Any]]
Advance = Callable[[int, int], None]  # trials done, of how many

KINDS = ("given", "trials", "seconds")  # folders of the cache
ONE_THREAD: dict[str, str] = dict.fromkeys(("OMP_NUM_THREADS", "NUMBA_NUM_THREADS", "POLARS_MAX_THREADS"), "1")


@dataclass(frozen=True, slots=True)
class Spent:
    """On an item: its trials, how many were computed in this run, and the processor seconds of those `timed`.

    Seconds are kept with a trial, so they are known of trials that an earlier run computed.
    """

    trials: int
    computed: int
    timed: int
    seconds: float


class Trials:
    """Computes trials that are not kept yet, in `workers` processes of one thread each, and keeps them in `folder`.

    A context: its processes start with the first trial that is not kept, and end with the block and with this process,
    whatever ends it. With 0 workers trials run in this process, as a debugger wants it.
    """

    def __init__(self, folder: Path, workers: int) -> None:
        self.folder: Path = folder
        self.workers: int = workers
        self.notes: list[str] = []  # what could not be kept, and why
        self._asked: dict[Path, bool] = {}  # the files of an item's trials, and whether they were computed
        self._pool: ProcessPoolExecutor | None = None
        for kind in KINDS:
            try:
                (folder / kind).mkdir(parents=True, exist_ok=True)
            except OSError as error:
                if error.errno not in FULL:
                    raise InputError(
                        f"cache folder {str(folder)!r} cannot be made ({error.strerror}); pass another one."
                    ) from error
                self._note(error.strerror)
            sweep(folder / kind)
        remove_remains(folder / "trials")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self._pool is None:
            return
        pids = set(self._pool._processes) if kind else set[int]()  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
        for child in multiprocessing.active_children():
            if child.pid in pids:
                child.kill()
        self._pool.shutdown(cancel_futures=True)
        self._pool = None
        for folder in KINDS if kind else ():
            remove_leftovers(self.folder / folder)  # what these processes were writing

    def map(self, trial: Trial, given: Given, settings: Sequence[Setting], advance: Advance) -> list[Outcome]:
        """The outcomes of a trial with each setting, in their order."""
        name, code = digest_of(given), code_digest(trial)
        files = [self._file(trial, name, setting, code) for setting in settings]
        found = {file: outcome for file in dict.fromkeys(files) if (outcome := kept(file)) is not None}
        wanted = {file: setting for file, setting in zip(files, settings, strict=True) if file not in found}
        data = self._put(given, name) if wanted else given
        tasks = [Task(trial, data, setting, file, code) for file, setting in wanted.items()]
        advance(len(files) - len(wanted), len(files))
        for done, computed in enumerate(self._compute(tasks), len(files) - len(wanted) + 1):
            found[computed.file] = computed.outcome
            self._note(computed.problem)
            advance(done, len(files))
        self._asked |= {file: file in wanted or self._asked.get(file, False) for file in files}
        return [dict(found[file]) for file in files]

    def spent(self) -> Spent:
        """What was spent since this was last asked: on an item, of which a trial counts once."""
        asked, self._asked = self._asked, {}
        seconds = [known for file in asked if (known := _seconds(time_file(file))) is not None]
        return Spent(len(asked), sum(asked.values()), len(seconds), sum(seconds))

    def _note(self, problem: str | None) -> None:
        """That something could not be kept; each reason once."""
        note = f"cache folder {str(self.folder)!r}: not everything could be kept ({problem}), and is computed next time"
        if problem is not None and note not in self.notes:
            self.notes.append(note)

    def _compute(self, tasks: Sequence[Task]) -> Iterator[Computed]:
        if self.workers == 0:
            yield from map(compute, tasks)
        elif tasks:
            pool = self._processes()
            with _main_hidden(tasks[0].trial):
                futures = [pool.submit(compute, task) for task in tasks]
            for future in as_completed(futures):
                yield _outcome(future, tasks[0].trial)

    def _processes(self) -> ProcessPoolExecutor:
        if self._pool is None:
            # A fork would copy the locks of threads that do not live on in it.
            spawn = multiprocessing.get_context("spawn")
            self._pool = ProcessPoolExecutor(self.workers, spawn, initializer=_begin)
        return self._pool

    def _put(self, given: Given, name: str) -> Path | Given:
        """The file of these arrays, for all processes to read; the arrays where there can be none."""
        file = self.folder / "given" / f"{name}.npz"
        if kept(file) is not None:
            return file
        arrays = arrays_of(given, "given")
        problem = keep(file, arrays)
        self._note(problem)
        return file if problem is None else arrays

    def _file(self, trial: Trial, data: str, setting: Setting, code: str) -> Path:
        name = f"{trial.__module__}.{trial.__qualname__}"
        try:
            text = json.dumps([name, data, sorted(setting.items()), code, versions()])
        except TypeError as error:
            raise InputError(
                f"{name}: a setting must be numbers, text or lists of them, got {dict(setting)}."
            ) from error
        return self.folder / "trials" / f"{digest(text)}.npz"


def columns(log: Feedback) -> dict[str, npt.NDArray[Any]]:
    """The arrays of a log that trials are given."""
    return {"user": log.user, "item": log.item, "rating": log.rating, "shape": np.array([log.n_users, log.n_items])}


def feedback(given: Given, rows: npt.NDArray[np.int64] | None = None) -> Feedback:
    """The log of its `columns`, or these rows of it, with codes for labels."""
    (U, I), keep = given["shape"].tolist(), slice(None) if rows is None else rows
    return Feedback(
        user=given["user"][keep], item=given["item"][keep], rating=given["rating"][keep],
        users=Vocabulary.range(U), items=Vocabulary.range(I),
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Task:
    """A trial to compute: what it is given, its setting, the file for its outcome, and the code that it should run."""

    trial: Trial
    data: Path | Given
    setting: Setting
    file: Path
    code: str


class Computed(NamedTuple):
    """A trial's file, its outcome, and why it was not kept there, if so."""

    file: Path
    outcome: Outcome
    problem: str | None


def compute(task: Task) -> Computed:
    """Compute a trial on one thread, and keep it."""
    if code_digest(task.trial) != task.code:
        raise OpenloopError(
            f"{task.trial.__qualname__}: its code was changed while the run went on; run again: what is done is kept."
        )
    with threadpool_limits(1):
        began = time.process_time()
        outcome = task.trial(_given(task.data), **task.setting)
    spent = time.process_time() - began
    arrays = arrays_of(outcome, task.trial.__qualname__)
    with suppress(OSError, InputError):  # then its time is not known
        write_text(time_file(task.file), f"{spent:.3f}")
    return Computed(task.file, arrays, keep(task.file, arrays))


def time_file(file: Path) -> Path:
    """Where the processor seconds of a trial are kept: apart from its outcome, which is the same bytes again."""
    return file.parents[1] / "seconds" / file.with_suffix(".txt").name


def _seconds(file: Path) -> float | None:
    """The seconds in a file, None where there are none."""
    try:
        found = float(file.read_text("utf-8"))
    except (OSError, ValueError):
        return None
    return found if found >= 0 and math.isfinite(found) else None


def _given(data: Path | Given) -> Given:
    held = data if isinstance(data, Mapping) else _from_file(data)
    for values in held.values():
        values.flags.writeable = False  # trials share them
    return held


@lru_cache(maxsize=4)
def _from_file(data: Path) -> Given:
    found = kept(data)
    if found is None:
        raise OpenloopError(f"{data}: was damaged or deleted while the run went on; run again: what is done is kept.")
    return found


# -- processes -----------------------------------------------------------------------------------------------


@contextmanager
def _main_hidden(trial: Trial) -> Generator[None]:
    """Workers that start now do not run the caller's script again, unless the trial is defined there."""
    main = sys.modules["__main__"]
    if trial.__module__ != "__main__":
        sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main


def _begin() -> None:
    os.environ.update(ONE_THREAD)  # for libraries that are loaded later
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)  # the parent hears it, and ends this process
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _outcome(future: Future[Computed], trial: Trial) -> Computed:
    with suppress(BrokenProcessPool):
        return future.result()
    raise OpenloopError(
        f"{trial.__qualname__}: a worker process was killed, perhaps for lack of memory; run again with fewer workers: "
        "what is done is kept."
    )
