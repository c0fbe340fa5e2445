"""Ids to codes: the vocabulary of a column, and the place of each row's id in it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

import narwhals as nw
import numpy as np
import numpy.typing as npt
import polars as pl

from openloop.core.feedback import Ints, Vocabulary
from openloop.core.vocabulary import Int64s
from openloop.data.columns import InputTable
from openloop.data.frames import listed
from openloop.data.values import ids
from openloop.errors import EmptyError, InputError, UnknownIdError, listing, quoted
from openloop.support.memory import total_memory
from openloop.support.wording import rows_at

Unknown = Literal["error", "drop"]

MOST_IDS = 2**31 - 1  # codes have 32 signed bits
ROOM = 32  # bytes of memory for each id: the id itself, and a few numbers of its user or item


def vocabulary(given: Any, what: str) -> Vocabulary | None:
    """The vocabulary that n (ids 0 … n-1), a list, an array or a Series gives; None stays None."""
    if given is None or isinstance(given, Vocabulary):
        return given
    if isinstance(given, int | np.integer) and not isinstance(given, bool):
        if given < 1:
            raise EmptyError(f"{what}={given}: must be at least 1; give their number, or all ids.")
        _refuse_too_many(int(given), what)
        return Vocabulary.range(int(given))
    if isinstance(given, str | bytes | bool) or not isinstance(given, Iterable):
        raise InputError(f"{what}={quoted(given)}: give the number of ids, or a list of all of them.")
    column = _as_series(given)
    if len(column) == 0:
        raise EmptyError(f"{what}=: the list of ids is empty; give all ids of the population.")
    return encode(ids(column, f"{what}="), f"{what}=")[0]


def _refuse_too_many(n: int, what: str) -> None:
    """Codes have 32 bits, and each id needs a few numbers in memory."""
    room = total_memory()
    most = MOST_IDS if room is None else min(MOST_IDS, room // ROOM)
    if n > most:
        raise InputError(
            f"{what}={quoted(n)}: are more than the {most:,} that fit here; give their number, or a list of ids."
        )


def _as_series(given: Any) -> pl.Series:
    if isinstance(given, np.ndarray) and given.dtype.kind in "iufb":
        return pl.Series(given)
    series = nw.from_native(given, allow_series=True, series_only=True, pass_through=True)
    if isinstance(series, nw.Series) and series.dtype != nw.Object:
        return series.to_polars()
    return listed(given.tolist() if hasattr(given, "tolist") else given)


def _as_ids(column: pl.Series) -> npt.NDArray[Any]:
    if column.dtype == pl.Int64:
        return column.to_numpy()
    array = np.empty(len(column), object)
    array[:] = column.to_list()
    return array


def coded(
    table: InputTable, column: pl.Series, role: str, known: Vocabulary | None, unknown: Unknown
) -> tuple[Vocabulary, Ints]:
    """The vocabulary of a table's users or items, and the code of each row, -1 where it is to be dropped."""
    what = f"{table.name}: {role} column {quoted(column.name)}"
    as_text = known is not None and known.ids.dtype.kind != "i"
    checked = ids(column, what, text=table.text, keep_text=as_text)
    if known is None:
        return encode(checked, what)
    codes = find(checked, known, text=table.text)
    if unknown == "error":
        refuse_unknown(checked, codes, known, what)
    return known, codes


def encode(column: pl.Series, what: str = "ids") -> tuple[Vocabulary, Ints]:
    """The sorted ids of a column, and the code of each row; `what` is what errors call the column."""
    if column.dtype == pl.Int64:
        return _encode_integers(column.to_numpy())
    found = column.unique().sort()
    refuse_nul(found, column, what)
    return Vocabulary(_as_ids(found)), _find_text(column, found)


def refuse_nul(found: pl.Series, column: pl.Series, what: str) -> None:
    """Refuse text with a NUL: other programs end it there, and half of a surrogate pair in JSON is read as one."""
    strange = found.filter(found.str.contains("\0", literal=True))
    if len(strange):
        rows = column.is_in(strange.implode()).arg_true().to_list()
        raise InputError(
            f"{what}: {len(strange):,} of {len(found):,} ids hold a NUL character or half of a surrogate pair, as "
            f"{listing(strange.head(3).to_list())}, in {rows_at(rows)}; repair those ids."
        )


def _encode_integers(values: Int64s) -> tuple[Vocabulary, Ints]:
    low, high = int(values.min()), int(values.max())
    if not _dense(low, high, len(values)):
        found = Vocabulary(pl.Series(values).unique().sort().to_numpy())
        return found, _find_integers(values, found)
    offset = values - low
    seen = np.zeros(high - low + 1, bool)
    seen[offset] = True
    code = np.cumsum(seen, dtype=np.int32) - np.int32(1)
    return Vocabulary(np.flatnonzero(seen) + low), code[offset]


def find(column: pl.Series, known: Vocabulary, *, text: bool = False) -> Ints:
    """The code of each row in a vocabulary, -1 where it is not there.

    With `text` the column comes from a file without types, and is compared with the ids as they are written.
    """
    numbers = known.ids.dtype.kind == "i"
    if column.dtype == pl.Int64 and numbers:
        return _find_integers(column.to_numpy(), known)
    if column.dtype == pl.String and (text or not numbers):
        return _find_text(column, pl.Series(known.ids.tolist()).cast(pl.String))
    return np.full(len(column), -1, np.int32)


def _find_text(column: pl.Series, known: pl.Series) -> Ints:
    codes = column.cast(pl.Enum(known), strict=False).to_physical().cast(pl.Int32)
    return codes.fill_null(-1).to_numpy()


def _find_integers(values: Int64s, known: Vocabulary) -> Ints:
    dense = _dense(int(known.ids[0]), int(known.ids[-1]), len(values))
    return known.looked_up(values) if dense else _find_sparse(values, known.ids)


def _find_sparse(values: Int64s, known: Int64s) -> Ints:
    codes = np.arange(len(known), dtype=np.int32)
    found = pl.Series(values).replace_strict(pl.Series(known), pl.Series(codes), default=-1)
    return found.cast(pl.Int32).to_numpy()


def _dense(low: int, high: int, rows: int) -> bool:
    """A table of the whole range costs no more than a few columns of the log."""
    return high - low < 4 * rows + 1_000_000


def refuse_unknown(column: pl.Series, codes: Ints, known: Vocabulary, what: str) -> None:
    """Raise if a row's id is not in the vocabulary, saying how many, which, and in which rows."""
    rows = np.flatnonzero(codes < 0)
    if len(rows) == 0:
        return
    strange = column.gather(rows).unique(maintain_order=True)
    first, last = known.ids[[0, -1]].tolist()
    remedy = "pass unknown='drop' to leave those rows out, or a vocabulary that has them"
    if isinstance(first, int) != (column.dtype == pl.Int64):
        remedy = "one side holds integers and the other text, so cast one of them"
    raise UnknownIdError(
        f"{what}: {len(strange):,} ids in {len(rows):,} of {len(column):,} rows are not in the vocabulary "
        f"{quoted(first)} … {quoted(last)}: {listing(strange.to_list())}, in {rows_at(rows.tolist())}; {remedy}."
    )
