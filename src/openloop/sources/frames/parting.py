"""Frames of Polars joined by ranges of users: all rows are put on disk, and those of a range read at a time.

Joins and windows pair rows of one user, so what is made of each range is, taken together, what is made of all rows.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import count, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import narwhals as nw

from openloop.errors import InputError
from openloop.support.frames import collected, rows
from openloop.support.leftovers import work_folder
from openloop.support.progress import Step, silent
from openloop.support.sizes import written
from openloop.support.system_errors import FULL, system_error

if TYPE_CHECKING:
    import polars as pl

PART = 6_000_000  # rows of all tables in a range of users, which are joined in memory
RUN = 4_000_000  # rows that are sorted at a time
GROUP, JOINED = 2**15, 2**18  # rows per group of a file, which states the range of its users: in a run, and joined
LEAST = 4  # bytes for each row of a table; about 12 where ids and numbers have 64 bits
NAME = "openloop-rows"


@dataclass(frozen=True, slots=True)
class Division:
    """How rows are divided by their users: here not at all, and an engine joins them by one plan."""

    def pieces(self, frame: Any, user: str = "u") -> list[Any]:
        """The rows of each range of users; windows that the frame has were taken over all its rows."""
        del user
        return [frame]

    def each(self, make: Callable[..., Any], *frames: Any) -> Any:
        """What is made of the rows of each range of users, as one frame."""
        return make(*frames)


WHOLE = Division()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class UserParts(Division):
    """Ranges of users, small enough for memory: what is joined within one is put on disk."""

    home: Path
    cuts: Sequence[Any]  # the first user of every range but the first
    step: Step = silent
    numbers: Iterator[int] = field(default_factory=count)  # of the frames that are made

    def pieces(self, frame: Any, user: str = "u") -> list[Any]:
        """The rows of each range of users; those without a user are in the first."""
        own = nw.col(user)
        ends = [(own >= low) & (own < high) for low, high in pairwise(self.cuts)]
        ranges = [(own < self.cuts[0]) | own.is_null(), *ends, own >= self.cuts[-1]]
        return [frame.filter(one) for one in ranges]

    def each(self, make: Callable[..., Any], *frames: Any) -> Any:
        """What is made of the rows of each range of users, on disk."""
        import polars as pl

        folder = self.home / f"joined{next(self.numbers)}"
        folder.mkdir()
        files = [folder / f"{at}.parquet" for at in range(len(self.cuts) + 1)]
        for at, own in enumerate(zip(*map(self.pieces, frames), strict=True)):
            self.step(f"joining, part {at + 1:,} of {len(files):,}", 1.0)
            joined = collected(make(*own)).to_native()
            with _writing(folder):
                joined.write_parquet(files[at], row_group_size=JOINED)
        return nw.from_native(pl.scan_parquet(files, glob=False))


def by_user(
    frames: Sequence[pl.LazyFrame], until: ExitStack, step: Step = silent, user: str = "user"
) -> tuple[list[pl.LazyFrame], Division]:
    """Frames whose rows may be too many for memory, put on disk until `until` closes, and ranges of their users.

    The folder is this process's: if it is killed, the next one removes it.
    """
    size, place = sum(map(rows, frames)), Path(tempfile.gettempdir())
    if size <= PART:
        return list(frames), WHOLE
    _check_space(place, size)
    home = until.enter_context(work_folder(place / NAME))
    counts: list[pl.DataFrame] = []
    shelved: list[pl.LazyFrame] = []
    for at, frame in enumerate(frames):
        step(f"sorting rows by user, table {at + 1} of {len(frames)}", at / len(frames))
        table, users = _put(frame, user, home / f"rows{at}")
        shelved.append(table)
        counts.append(users)
    cuts = _cuts(_added(counts))
    return shelved, UserParts(home=home, cuts=cuts, step=step) if cuts else WHOLE


def _check_space(place: Path, size: int) -> None:
    """Refuse a disk that is certain to be full before all rows are there."""
    least, free = LEAST * size, shutil.disk_usage(place).free
    if least > free:
        raise InputError(
            f"temporary folder {str(place)!r}: {size:,} rows take at least {written(least)} there, and {written(free)} "
            "are free; free some space, or set $TMPDIR to a folder on a larger disk."
        )


def _put(frame: pl.LazyFrame, user: str, folder: Path) -> tuple[pl.LazyFrame, pl.DataFrame]:
    """The rows on disk in runs, each sorted by user: few rows are read beside those of a range of users; and counts."""
    import polars as pl

    folder.mkdir()
    given, files = folder / "given.parquet", list[Path]()
    users = pl.DataFrame(schema={"user": frame.collect_schema()[user], "rows": pl.Int64})
    with _writing(folder):
        frame.sink_parquet(given, compression="lz4", row_group_size=RUN // 16)
        source = pl.scan_parquet(given, glob=False)
        for at, first in enumerate(range(0, max(rows(source), 1), RUN)):
            run = source.slice(first, RUN).collect().sort(user)
            users = _added([users, run.group_by(pl.col(user).alias("user")).agg(rows=pl.len().cast(pl.Int64))])
            files.append(folder / f"{at}.parquet")
            run.write_parquet(files[-1], row_group_size=GROUP)
    given.unlink()
    return pl.scan_parquet(files, glob=False), users


def _added(counts: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """Counts of rows by user, added."""
    import polars as pl

    return pl.concat(counts).group_by("user").agg(pl.col("rows").sum())


def _cuts(users: pl.DataFrame) -> list[Any]:
    """The first user of every range but the first: ranges have about `PART` rows, or one user's."""
    known = users.drop_nulls("user").sort("user")
    part = (known["rows"].cum_sum() - known["rows"]) // PART
    return known.filter((part != part.shift(1)).fill_null(value=False))["user"].to_list()


@contextmanager
def _writing(folder: Path) -> Generator[None]:
    """A disk that is full is an error of this folder, which the library that writes there may not name."""
    try:
        yield
    except Exception as error:
        refused = system_error(error)
        if refused is not None and refused.errno in FULL:
            raise OSError(refused.errno, refused.strerror, str(folder.parent)) from error
        raise
