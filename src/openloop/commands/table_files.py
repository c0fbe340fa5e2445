"""Tables to files: formats by extension, a table written back with one more column, rows in blocks."""

from __future__ import annotations

import stat
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO

import numpy as np
import polars as pl

from openloop.core.feedback import Feedback, Floats
from openloop.core.vocabulary import Int64s
from openloop.data import values
from openloop.data.columns import Column, InputTable, names_a
from openloop.data.delimited import FOUND, TextForm
from openloop.data.encoding import find
from openloop.data.formats import open_file
from openloop.errors import ColumnError, FormatError, InputError, listing, quoted
from openloop.support.atomic import FilePath, replacing
from openloop.support.leftovers import work_folder

WRITERS: dict[str, Callable[[pl.DataFrame, IO[bytes], bool], None]] = {  # the last says: from the beginning
    ".csv": lambda rows, file, first: rows.write_csv(file, include_header=first),
    ".tsv": lambda rows, file, first: rows.write_csv(file, include_header=first, separator="\t"),
    ".parquet": lambda rows, file, _first: rows.write_parquet(file),
    ".pq": lambda rows, file, _first: rows.write_parquet(file),
    ".jsonl": lambda rows, file, _first: rows.write_ndjson(file),
    ".ndjson": lambda rows, file, _first: rows.write_ndjson(file),
}
TEXT, JSON, PARQUET = (".csv", ".tsv"), (".jsonl", ".ndjson"), (".parquet", ".pq")
PART = 2**20  # rows in a part of a Parquet file
FORMULA = "^[=+\\-@\t\r\n＝＋－＠]"  # what a field begins with that a spreadsheet computes


def suffix(path: FilePath) -> str:
    """The extension of a file to write, which says its format."""
    return Path(path).suffix.lower()


def write(path: FilePath, rows: pl.DataFrame, *, safe_csv: bool = False) -> None:
    """Write a table whole or not at all."""
    write_blocks(path, [rows], safe_csv=safe_csv)


def write_blocks(path: FilePath, blocks: Iterable[pl.DataFrame], *, safe_csv: bool = False) -> None:
    """Write blocks of rows one after another, holding one at a time; the file appears whole or not at all.

    With `safe_csv` no field of a text file is a formula.
    """
    blocks = map(without_formulas, blocks) if safe_csv else blocks
    with replacing(path) as temporary:
        if suffix(path) in PARQUET:
            _write_parts(temporary, suffix(path), _gathered(blocks))
            return
        with temporary.open("wb") as file:
            for number, block in enumerate(blocks):
                WRITERS[suffix(path)](block, file, number == 0)


def without_formulas(rows: pl.DataFrame) -> pl.DataFrame:
    """A quote before text, and before a column's name, that a spreadsheet would compute; numbers stay as they are."""
    names = pl.Series(rows.columns, dtype=pl.String)
    quoted = {old: new for old, new in zip(rows.columns, _quoted(names), strict=True) if old != new}
    if taken := [new for new in quoted.values() if new in rows.columns]:
        raise ColumnError(f"--safe-csv: two columns would be called {listing(taken)}; rename one of each.")
    return rows.with_columns(_quoted(column) for column in rows.select(pl.col(pl.String)).iter_columns()).rename(quoted)


def _quoted(fields: pl.Series) -> pl.Series:
    formula = fields.str.contains(FORMULA) & fields.cast(pl.Float64, strict=False).is_null()
    return pl.select(pl.when(formula).then(pl.lit("'") + fields).otherwise(fields).alias(fields.name)).to_series()


def _gathered(blocks: Iterable[pl.DataFrame]) -> Iterator[pl.DataFrame]:
    """The same rows in fewer blocks."""
    held: list[pl.DataFrame] = []
    for block in blocks:
        held.append(block)
        if sum(map(len, held)) >= PART:
            yield pl.concat(held)
            held = []
    if held:
        yield pl.concat(held)


def _write_parts(target: Path, kind: str, blocks: Iterable[pl.DataFrame]) -> None:
    """Polars adds no rows to a Parquet file, so blocks become files that are then read as one."""
    with work_folder(target.with_name(".parts")) as folder:
        parts: list[Path] = []
        for number, block in enumerate(blocks):
            parts.append(folder / f"{number:08}{kind}")
            with parts[-1].open("wb") as file:
                WRITERS[kind](block, file, True)
        if len(parts) == 1:
            parts[0].chmod(stat.S_IMODE(target.stat().st_mode))  # what was private is so at every moment
            parts[0].replace(target)
        else:
            pl.scan_parquet(parts, glob=False).sink_parquet(target)


def log_line(path: FilePath, log: Feedback) -> str:
    """What was read, in one line."""
    share = len(log) / (log.n_users * log.n_items)
    grid = f"{log.n_users:,} users × {log.n_items:,} items ({share:.2%} of the cells)"
    return f"read {path}: {len(log):,} rows of {grid}"


def pairs_of(table: InputTable, chosen: Mapping[str, str], log: Feedback) -> Int64s:
    """The position in a log of the pair of each row of its input, -1 where the log has no such pair."""
    if log.input_rows == len(log):
        found = np.empty(len(log), np.int64)
        found[log.row] = np.arange(len(log))
        return found
    rows = table.fetch([chosen["user"], chosen["item"]])
    user, item = (
        find(values.ids(rows[chosen[role]], role, text=table.text, keep_text=ids.ids.dtype.kind != "i"), ids)
        for role, ids in (("user", log.users), ("item", log.items))
    )
    cell = user.astype(np.int64) * log.n_items + item
    at = np.minimum(np.searchsorted(log.cell, cell), len(log) - 1)
    return np.where(log.cell[at] == cell, at, -1)


def in_input_order(found: Floats, pair: Int64s) -> Floats:
    """Values of the pairs of a log for each row of its input, NaN for a row that was left out."""
    return np.where(pair >= 0, found[pair], np.nan)


# -- a table that comes back ---------------------------------------------------------------------------------


def open_to_extend(path: FilePath, roles: Mapping[str, Column], column: str, form: TextForm = FOUND) -> InputTable:
    """The table in a file, to which a column can be added; `roles` name the columns of user, item …"""
    table = open_file(path, roles, form)
    twice = sorted({name for name in table.columns if table.columns.count(name) > 1})
    if twice:
        raise ColumnError(f"{table.name}: several columns are named {listing(twice)}; rename all but one of each.")
    if column in table.columns:
        raise ColumnError(
            f"{table.name}: has a column {column!r} already; name the new one with --column NAME, or drop it."
        )
    _refuse_other_roles(table.name, table.columns, roles)
    return table


def open_list(path: FilePath, role: str, named: Column = None) -> InputTable:
    """A table, or a list of one id per line, whose first line may be a header: `named`, or an obvious name."""
    table = open_file(path, {role: named}, undivided=True)
    if len(table.columns) > 1 or not table.text:
        return table
    first = open_file(path, {}, TextForm(separator=",", header=True)).columns[0]
    return open_file(path, {}, TextForm(separator=",", header=first in {named, "id"} or names_a(role, first)))


def holdable(table: InputTable, rows: pl.DataFrame, kind: str) -> pl.DataFrame:
    """Rows of a table in types that a file of this extension can hold."""
    if kind in TEXT:
        _refuse_types(table.name, rows, kind, ".parquet or .jsonl", nested=False)
    elif kind in JSON:
        _refuse_types(table.name, rows, kind, ".parquet", nested=True)
    return rows.select(_typed(c) for c in rows.iter_columns()) if table.text and kind not in TEXT else rows


def _refuse_other_roles(name: str, columns: Sequence[str], roles: Mapping[str, Column]) -> None:
    """Without a header columns are named by position: the file written would call items users."""
    for role, at in roles.items():
        if at is False:  # there is no such column
            continue
        called = columns[at] if isinstance(at, int) and 0 <= at < len(columns) else role
        if called != role and called in roles:
            raise ColumnError(
                f"{name}: column {at} is given as --{role}, but is called {quoted(called)} here, and would be so in "
                "--out; give the file a header with names of its own."
            )


def _refuse_types(name: str, rows: pl.DataFrame, kind: str, other: str, *, nested: bool) -> None:
    for column in rows.iter_columns():
        if isinstance(column.dtype, pl.Binary | pl.Object) or (column.dtype.is_nested() and not nested):
            held = f"cannot hold column {quoted(column.name)}, {quoted(column.dtype)}"
            raise FormatError(f"{name}: a {kind} file {held}; write {other}, or drop the column.")


def _typed(fields: pl.Series) -> pl.Series:
    """The numbers that these fields write, if writing the numbers gives the same fields; so "007" stays text."""
    for dtype in (pl.Int64, pl.Float64):
        numbers = fields.cast(dtype, strict=False)
        if numbers.cast(pl.String).equals(fields, null_equal=True):
            return numbers
    return fields


# -- refusals ------------------------------------------------------------------------------------------------


def check_extension(out: FilePath, known: Iterable[str] = WRITERS, *, safe_csv: bool = False) -> None:
    """Refuse a file to write whose extension says no format, or with `safe_csv` none of delimited text."""
    names = list(known)
    if suffix(out) not in names:
        one_of = f"not one of {listing(names, limit=len(names))}" if len(names) > 1 else f"not {names[0]!r}"
        raise FormatError(f"--out {str(out)!r}: extension {suffix(out)!r} is {one_of}; rename it.")
    if safe_csv and suffix(out) not in TEXT:
        raise InputError(f"--safe-csv: is for {' and '.join(TEXT)} files, and --out is {str(out)!r}; leave it out.")


def refuse_overwriting(outputs: Iterable[FilePath], inputs: Iterable[FilePath]) -> None:
    """Refuse a file to write that is one of those to read, or that is to be written twice."""
    taken = {_real(path): f"is also read ({path})" for path in inputs}
    for path in outputs:
        if _real(path) in taken:
            raise InputError(f"{path}: would be overwritten, and {taken[_real(path)]}; write to another file.")
        taken[_real(path)] = f"is also written ({path})"


def _real(path: FilePath) -> object:
    """What two names of one file have in common."""
    file = Path(path).expanduser()
    if not file.exists():
        return str(file.resolve())
    found = file.stat()
    return found.st_dev, found.st_ino
