"""The columns of a log to be read: a table whose rows are fetched later, and logs without ratings."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from openloop.support.columns import PAIR, REQUIRED, Column, Header, alike, choose, named, names_a, near, plain, shared

if TYPE_CHECKING:
    import polars as pl

__all__ = [
    "HEADERLESS", "PAIR", "REQUIRED", "Column", "Header", "InputTable",
    "alike", "choose", "choose_log", "in_one", "named", "names_a", "shared", "stream", "surely_ratings",
]  # fmt: skip

HEADERLESS = ("user", "item", "rating", "time")
SURE = frozenset({"rating", "ratings", "stars", "star"})


@dataclass(frozen=True, slots=True)
class InputTable:
    """A source whose columns are known and whose rows are not yet read.

    `batches(columns, size)` reads the named columns and no other, once and in the source's order, in pieces of about
    `size` rows or, with None, in one; a source without rows has one piece, too. `fetch` is that one piece, and `scan`
    the same without reading, where rows can stay in a file.
    `text` says that fields carry no type (delimited files), `note` how the names were found, for errors about columns,
    and `remark` what of that a reader should know in any case.
    """

    name: str
    columns: Sequence[str]
    batches: Callable[[Sequence[str], int | None], Iterator[pl.DataFrame]]
    text: bool = False
    note: str = ""
    remark: str = ""
    headed: bool = True  # names are the table's own, not made up by position
    scan: Callable[[Sequence[str]], pl.LazyFrame] | None = None
    frame: Any = None  # of Spark, whose rows executors can read

    def fetch(self, columns: Sequence[str]) -> pl.DataFrame:
        """All rows of the named columns."""
        return next(self.batches(columns, None))


def stream(frame: pl.LazyFrame, size: int | None) -> Iterator[pl.DataFrame]:
    """The rows of a query that runs once, in pieces of `size` rows or, with None, in one; at least one piece."""
    if size is None:
        yield frame.collect()
        return
    is_empty = True
    for batch in frame.collect_batches(chunk_size=size):
        is_empty = False
        yield batch
    if is_empty:
        yield frame.head(0).collect()


def in_one(pieces: Iterator[pl.DataFrame], size: int | None) -> Iterator[pl.DataFrame]:
    """The pieces or, where no size is wanted, one of all their rows; their numeric types may differ."""
    import polars as pl

    return iter([pl.concat(pieces, how="vertical_relaxed")]) if size is None else pieces


def choose_log(table: Header, asked: Mapping[str, Column]) -> dict[str, str]:
    """The columns of a log, as `choose` finds them; without one of ratings every row is a positive.

    `rating=False` says that there is none. A column that looks like one of ratings is not passed over.
    """
    given = {role: column for role, column in asked.items() if role != "rating" or column is not False}
    found = choose(table, given, required=PAIR)
    free = [c for c in table.columns if c not in found.values()]
    if asked.get("rating") is False or not (near(free, "rating") or any(names_a("rating", c) for c in free)):
        return found
    return choose(table, given)


def surely_ratings(table: InputTable, column: str) -> bool:
    """Whether the table itself calls the column so, and not by a word that may be of anything, as value is."""
    return table.headed and plain(column) in SURE
