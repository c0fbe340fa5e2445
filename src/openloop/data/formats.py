"""Log files as tables: delimited text, Parquet and JSON lines, chosen by extension."""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import polars as pl

from openloop.data.columns import Column, InputTable, stream
from openloop.data.contents import existing, unpacked, unreadable
from openloop.data.delimited import FOUND, TextForm, open_text
from openloop.data.frames import open_frame
from openloop.data.json_files import refuse_mixed, scan_json
from openloop.errors import FormatError, listing, quoted
from openloop.support.forking import forks

TEXT = frozenset({".csv", ".tsv", ".tab", ".psv", ".txt", ".dat", ".data"})
PARQUET = frozenset({".parquet", ".pq"})
JSON = frozenset({".ndjson", ".jsonl", ".json"})

# What is refused before the columns of a file are read.
Check = Callable[[Path, pl.LazyFrame, Sequence[str]], None]

# Damaged Parquet pages can make Polars panic, which is not among its errors.
BROKEN = (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError)


def open_file(
    path: str | os.PathLike[str], asked: Mapping[str, Column], form: TextForm = FOUND, *, undivided: bool = False
) -> InputTable:
    """The table in a file, of the format its extension says; `asked` helps to see whether it has a header.

    With `undivided` text that no separator divides is one column.
    """
    forks.refuse()
    file = existing(Path(path).expanduser())
    kind = _kind(file, form.separator)
    if kind == "text":
        return open_text(file, asked, form, undivided=undivided)
    form.refuse(f"{file}, a {kind} file")
    return _open_typed(file, *((_scan_parquet, _nothing_to_check) if kind == "Parquet" else (scan_json, refuse_mixed)))


def open_source(source: Any, asked: Mapping[str, Column], form: TextForm = FOUND) -> InputTable:
    """The table in a file, or in a dataframe of any engine."""
    if isinstance(source, str | os.PathLike):
        return open_file(source, asked, form)
    form.refuse("a dataframe")
    return open_frame(source)


def is_text(path: str | os.PathLike[str]) -> bool:
    """Whether the name of a file says that it is delimited text."""
    suffixes = [s.lower() for s in Path(path).suffixes if s.lower() != ".gz"]
    return bool(suffixes) and suffixes[-1] in TEXT


def _kind(path: Path, separator: str | None) -> str:
    suffixes = [s.lower() for s in path.suffixes if s.lower() != ".gz"]
    suffix = suffixes[-1] if suffixes else ""
    if suffix in PARQUET:
        return "Parquet"
    if suffix in JSON:
        return "JSON"
    if suffix in TEXT or separator is not None:
        return "text"
    known = listing(sorted(TEXT | PARQUET | JSON), limit=20)
    raise FormatError(
        f"{path}: extension {quoted(suffix)} is not one of {known} (each also with .gz); "
        "for delimited text of another name pass separator=."
    )


def _open_typed(path: Path, scan: Callable[[Path], pl.LazyFrame], check: Check) -> InputTable:
    with _read_from(path):
        frame = scan(path)
        names = frame.collect_schema().names()

    def batches(columns: Sequence[str], size: int | None) -> Iterator[pl.DataFrame]:
        with _read_from(path):
            yield from stream(scanned(columns), size)

    def scanned(columns: Sequence[str]) -> pl.LazyFrame:
        with _read_from(path):
            check(path, frame, columns)
        return frame.select(columns)

    return InputTable(str(path), names, batches, scan=scanned)


@contextmanager
def _read_from(path: Path) -> Generator[None]:
    """What Polars says of a file that it cannot read is an error of that file."""
    try:
        yield
    except BROKEN as error:
        raise unreadable(path, str(error)) from error


def _nothing_to_check(path: Path, frame: pl.LazyFrame, columns: Sequence[str]) -> None:
    """Parquet says the type of each column."""


def _scan_parquet(path: Path) -> pl.LazyFrame:
    contents = unpacked(path)
    if isinstance(contents, bytes):
        return pl.scan_parquet(io.BytesIO(contents))
    return pl.scan_parquet(contents, glob=False)
