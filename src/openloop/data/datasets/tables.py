"""Typed columns of large comma-separated files, read or left in the file; missing fields are refused."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from openloop.data.contents import unpacked
from openloop.data.datasets import lines
from openloop.data.ragged import refuse_ragged
from openloop.errors import ColumnError, FormatError, listing

Types = Mapping[str, Any]  # column and its Polars type


def scan(path: Path, types: Types) -> pl.LazyFrame:
    """All columns of a file with a header, those of `types` so typed; every line has a field for each."""
    found = names(path)
    missing = [name for name in types if name not in found]
    if missing:
        raise ColumnError(f"{path}: must have a column {listing(missing)}, has {listing(found)}; {lines.AGAIN}")
    refuse_ragged(path, unpacked(path), ",", len(found), lines.AGAIN)
    return pl.scan_csv(path, schema_overrides=dict(types), glob=False)


def columns(path: Path, types: Types, *, gaps: Sequence[str] = ()) -> pl.DataFrame:
    """These columns of a file with a header, in memory; empty fields are for the columns `gaps` only."""
    try:
        rows = scan(path, types).select(list(types)).collect()
    except pl.exceptions.PolarsError as error:
        raise unreadable(path, types, error, gaps=gaps) from error
    if any(rows[name].null_count() for name in types if name not in gaps):
        raise unreadable(path, types, gaps=gaps)
    if rows.height == 0:
        raise FormatError(f"{path}: must hold rows below its header, and has none; {lines.AGAIN}")
    return rows


def unreadable(path: Path, types: Types, error: Exception | None = None, *, gaps: Sequence[str] = ()) -> FormatError:
    """The error for a file whose fields are not what they should be; names the first such line where there is one."""
    kinds = {name: int if kind.is_integer() else float for name, kind in types.items() if name not in gaps}
    try:
        lines.refuse_first(path, kinds, separator=",", header=True, error=error)
    except FormatError as found:
        return found
    return FormatError(f"{path}: must hold numbers in the columns {listing(list(types))}; {lines.AGAIN}")


def names(path: Path) -> list[str]:
    """The header of a file."""
    try:
        return pl.scan_csv(path, infer_schema=False, glob=False).collect_schema().names()
    except pl.exceptions.PolarsError as error:
        msg = f"{path}: must hold numbers below a header of text, and is empty or of another format; {lines.AGAIN}"
        raise FormatError(msg) from error
