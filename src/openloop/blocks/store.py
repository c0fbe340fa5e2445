"""Rows dealt to 256 buckets by a hash of their user, in memory or, beyond a budget of bytes, on disk."""

from __future__ import annotations

import io
import math
import os
import shutil
import tempfile
from collections.abc import Generator, Hashable
from contextlib import ExitStack, contextmanager
from threading import Lock
from typing import IO, Any

import numpy as np
import numpy.typing as npt
import polars as pl

from openloop.errors import InputError
from openloop.kernels.compiling import fixed
from openloop.kernels.hashing import buckets_of_integers, buckets_of_text, sort_by_bucket
from openloop.support.memory import free_memory, total_memory
from openloop.support.sizes import written
from openloop.support.system_errors import FULL, system_error

BUCKETS = 256
BLOCK_ROWS = 100_000  # of a block on average, or fewer
GROUP = 16  # buckets of a batch that share memory, which is free again when all of them are released
UNKNOWN_MEMORY = 2**33  # bytes that are assumed where the system does not say


def bucket_of(ids: pl.Series) -> npt.NDArray[np.uint8]:
    """The bucket of each id, of Int64 or String: by its value alone, where "7" is 7; null has one, too."""
    if ids.dtype != pl.String:
        return buckets_of_integers(*fixed(ids.fill_null(0).to_numpy()))
    array = ids.rechunk().to_arrow(compat_level=pl.CompatLevel.oldest())
    _, offsets, data = array.buffers()
    ends = np.frombuffer(offsets, np.int64)[array.offset : array.offset + len(array) + 1]
    return buckets_of_text(np.frombuffer(data or b"", np.uint8), ends)


def bounds(rows: npt.NDArray[np.int64], target: int = BLOCK_ROWS) -> list[tuple[int, int]]:
    """Blocks as ranges of buckets: as few as give each at most `target` rows on average, a power of two up to 256."""
    blocks = 1
    while blocks < BUCKETS and rows.sum() > target * blocks:
        blocks *= 2
    width = BUCKETS // blocks
    return [(first, first + width) for first in range(0, BUCKETS, width)]


class Budget:
    """Bytes that all stores and shelves of one evaluation hold in memory together: by default half of what is free.

    Whoever made it closes it, and with it all that was spent from it.
    """

    def __init__(self, size: float | None = None) -> None:
        self._free = _half_of_free_memory() if size is None else size
        self._lock = Lock()
        self._closing = ExitStack()

    def spend_on(self, holder: Store | Shelf) -> None:
        """Note who holds frames, to be closed at the end."""
        self._closing.callback(holder.close)

    def close(self) -> None:
        """Close all stores and shelves."""
        self._closing.close()

    def reserve(self, size: float) -> bool:
        """Whether so many bytes are within the budget, which then has fewer."""
        with self._lock:
            fits = size <= self._free
            self._free -= size if fits else 0
            return fits

    def release(self, size: float) -> None:
        """Give reserved bytes back."""
        with self._lock:
            self._free += size


def _half_of_free_memory() -> float:
    free = min(free_memory(), total_memory() or math.inf)
    return (UNKNOWN_MEMORY if math.isinf(free) else free) / 2


# -- on disk ---------------------------------------------------------------------------------------------------

Place = tuple[int, int]  # the first byte of a frame in the file, and how many it has


class _File:
    """Frames one after another in a temporary file that has no name: it goes with the process, however that ends."""

    def __init__(self) -> None:
        self._file: IO[bytes] | None = None  # made when it is needed: there may be no folder for it
        self._lock = Lock()

    def write(self, frame: pl.DataFrame) -> Place:
        """Append a frame: in Arrow's format, and not packed, which costs more than it saves."""
        buffer = io.BytesIO()
        frame.write_ipc_stream(buffer)
        data, folder = buffer.getbuffer(), tempfile.gettempdir()
        with self._lock, _naming(folder):
            _refuse_full_disk(folder, len(data))
            file = self._file = self._file or tempfile.TemporaryFile(buffering=0)  # noqa: SIM115 (open until `close`)
            start = file.seek(0, os.SEEK_END)
            rest = data
            while rest:  # the system writes 2 GiB at a time
                rest = rest[file.write(rest) :]
        return start, len(data)

    def read(self, place: Place) -> pl.DataFrame:
        """The frame at a place; nothing else is read."""
        start, size = place
        with self._lock:
            file: Any = self._file
            file.seek(start)
            parts = [file.read(size)]
            while (rest := size - sum(map(len, parts))) and parts[-1]:
                parts.append(file.read(rest))
        return pl.read_ipc_stream(b"".join(parts))

    def close(self) -> None:
        """Remove the file."""
        if self._file is not None:
            self._file.close()


def _refuse_full_disk(folder: str, size: int) -> None:
    free = shutil.disk_usage(folder).free
    if size > free:
        raise InputError(
            f"temporary folder {folder!r}: rows beyond the memory budget need {written(size)} there, and "
            f"{written(free)} are free; free some space, or set $TMPDIR to a folder on a larger disk."
        )


@contextmanager
def _naming(folder: str) -> Generator[None]:
    """A disk that is full is an error of this folder, which the library that writes there may not name."""
    try:
        yield
    except Exception as error:
        refused = system_error(error)
        if refused is not None and refused.errno in FULL:
            raise OSError(refused.errno, refused.strerror, folder) from error
        raise


# -- frames by key, and rows by bucket ---------------------------------------------------------------------------


class Shelf:
    """Frames by key: in memory as long as the budget has room, else on disk. Threads may share it."""

    def __init__(self, budget: Budget) -> None:
        self._budget, self._file = budget, _File()
        budget.spend_on(self)
        self._frames: dict[Hashable, pl.DataFrame] = {}
        self._places: dict[Hashable, Place] = {}

    def put(self, key: Hashable, frame: pl.DataFrame) -> None:
        """Keep a frame, in the place of an earlier one of this key."""
        self._remove(key)
        if self._budget.reserve(_size(frame)):
            self._frames[key] = frame
        else:
            self._places[key] = self._file.write(frame)

    def get(self, key: Hashable) -> pl.DataFrame:
        """The frame of a key."""
        return self._file.read(self._places[key]) if key in self._places else self._frames[key]

    def pop(self, key: Hashable) -> pl.DataFrame:
        """The frame of a key, which is no longer kept."""
        frame = self.get(key)
        self._remove(key)
        return frame

    def close(self) -> None:
        """Keep nothing."""
        for key in list(self._frames):
            self._remove(key)
        self._places.clear()
        self._file.close()

    def _remove(self, key: Hashable) -> None:
        self._places.pop(key, None)
        if (frame := self._frames.pop(key, None)) is not None:
            self._budget.release(_size(frame))


class Store:
    """Rows of batches by the bucket of their user: in memory until the budget is exceeded, then all of them on disk.

    `rows` counts those of each bucket. One thread adds; then any may read.
    """

    def __init__(self, budget: Budget) -> None:
        self.rows = np.zeros(BUCKETS, np.int64)
        self._budget, self._file = budget, _File()
        budget.spend_on(self)
        self._reserved = np.zeros(BUCKETS, np.int64)  # bytes
        self._pieces: list[list[pl.DataFrame]] = [[] for _ in range(BUCKETS)]  # in memory, added after those on disk
        self._places: list[list[Place]] = [[] for _ in range(BUCKETS)]
        self._empty = pl.DataFrame()

    def add(self, batch: pl.DataFrame, buckets: npt.NDArray[np.uint8] | None = None) -> None:
        """Deal rows by their column "user", Int64 or String, or to the `buckets` that are given."""
        order, starts = sort_by_bucket(bucket_of(batch["user"]) if buckets is None else buckets, BUCKETS)
        sizes = np.zeros(BUCKETS, np.int64)
        for group in range(0, BUCKETS, GROUP):
            first = starts[group]
            rows = _compact(batch[pl.Series(order[first : starts[group + GROUP]])])
            row_size = _size(rows) / max(rows.height, 1)
            for bucket in range(group, group + GROUP):
                piece = rows[int(starts[bucket] - first) : int(starts[bucket + 1] - first)]
                if piece.height:
                    self._pieces[bucket].append(piece)
                    sizes[bucket] = row_size * piece.height
        self.rows += np.diff(starts)
        self._empty = batch.clear()
        if self._budget.reserve(int(sizes.sum())):
            self._reserved += sizes
        else:
            self._spill()

    def finish(self) -> None:
        """All rows are there; if some are on disk, then all: other stores need the memory to spill large pieces."""
        if any(self._places):
            self._spill()

    def frame(self, first: int, last: int) -> pl.DataFrame:
        """The rows of the buckets first … last - 1, bucket after bucket, in each as they were added."""
        pieces: list[pl.DataFrame] = []
        for bucket in range(first, last):
            pieces += [self._file.read(place) for place in self._places[bucket]]
            pieces += self._pieces[bucket]
        return pl.concat(pieces or [self._empty], how="vertical_relaxed", rechunk=True)

    def release(self, first: int, last: int) -> None:
        """Keep the rows of these buckets no longer."""
        for bucket in range(first, last):
            self._places[bucket] = []
            self._free(bucket)

    def close(self) -> None:
        """Keep nothing."""
        self.release(0, BUCKETS)
        self._file.close()

    def _spill(self) -> None:
        for bucket, pieces in enumerate(self._pieces):
            if pieces:
                self._places[bucket].append(self._file.write(pl.concat(pieces, how="vertical_relaxed")))
                self._free(bucket)

    def _free(self, bucket: int) -> None:
        self._pieces[bucket] = []
        self._budget.release(int(self._reserved[bucket]))
        self._reserved[bucket] = 0


def _size(frame: pl.DataFrame) -> float:
    """Bytes of a frame: Polars counts those of text without the views of 16 bytes that lead to it."""
    return frame.estimated_size() + 16 * frame.select(pl.col(pl.String)).width * frame.height


def _compact(frame: pl.DataFrame) -> pl.DataFrame:
    """The same rows with text of their own: Polars shares it with the frame that they were taken from."""
    if pl.String not in frame.dtypes:
        return frame
    text = frame.select(pl.col(pl.String)).to_arrow(compat_level=pl.CompatLevel.oldest())
    return frame.with_columns(pl.DataFrame(text).get_columns())
