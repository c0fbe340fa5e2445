"""Log files as tables: delimited text, Parquet and JSON lines, chosen by extension."""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl

from openloop.data.columns import Column, InputTable, in_one, stream
from openloop.data.contents import existing, unpacked, unreadable
from openloop.data.delimited import FOUND, TextForm, open_text
from openloop.data.frames import open_frame
from openloop.data.json_files import refuse_mixed, scan_json
from openloop.errors import FormatError, InputError, listing, quoted
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
    """The table in a file, in a folder or list of files, or in a dataframe of any engine."""
    if isinstance(source, str | os.PathLike):
        path = Path(source).expanduser()
        return _open_files(str(path), _files(path), asked, form) if path.is_dir() else open_file(path, asked, form)
    if isinstance(source, list | tuple) and source and all(isinstance(path, str | os.PathLike) for path in source):
        return _open_files(f"{len(source)} files", [Path(path) for path in source], asked, form)
    form.refuse("a dataframe")
    return open_frame(source)


def _files(folder: Path) -> list[Path]:
    """The files of a folder by name, without those that other programs keep there for themselves, as _SUCCESS is."""
    files = sorted(path for path in folder.iterdir() if not path.name.startswith((".", "_")))
    if not files:
        raise InputError(f"{folder}: is a folder without files; name the one that holds the log.")
    return files


def _open_files(name: str, files: Sequence[Path], asked: Mapping[str, Column], form: TextForm) -> InputTable:
    """The tables of files one after another; each is opened when its turn comes, and must be like the first."""
    first = open_file(files[0], asked, form)

    def pieces(columns: Sequence[str], size: int | None) -> Iterator[pl.DataFrame]:
        schema = None
        for file in files:
            table = first if file is files[0] else open_file(file, asked, form)
            _refuse_unlike(table, first)
            for piece in table.batches(columns, size):
                schema = schema or piece.schema
                _refuse_other_types(table, piece.schema, first, schema)
                yield piece

    def batches(columns: Sequence[str], size: int | None) -> Iterator[pl.DataFrame]:
        return in_one(pieces(columns, size), size)

    return replace(first, name=name, batches=batches, scan=None)


def _refuse_unlike(table: InputTable, first: InputTable) -> None:
    if (set(table.columns), table.text) != (set(first.columns), first.text):
        raise InputError(
            f"{table.name}: has columns {listing(table.columns)}, and {first.name} has {listing(first.columns)}; "
            "files of one log need one format and the same columns."
        )


def _refuse_other_types(table: InputTable, types: pl.Schema, first: InputTable, expected: pl.Schema) -> None:
    """Numbers of two types are read as numbers; nothing else may differ."""
    for column, dtype in types.items():
        pair = (dtype, expected[column])
        if dtype != expected[column] and pl.Null not in pair and not all(one.is_numeric() for one in pair):
            raise InputError(
                f"{table.name}: column {quoted(column)} is {dtype}, and in {first.name} it is {expected[column]}; "
                "files of one log need the same types."
            )


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
