"""Typed columns of large comma-separated files, read or left where they are; what they lack is refused."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl

from openloop.errors import ColumnError, FormatError, listing

Types = Mapping[str, Any]  # column and its Polars type


def scan(path: Path, types: Types) -> pl.LazyFrame:
    """All columns of a file with a header, those of `types` so typed; one that it lacks is an error."""
    names = _names(path)
    missing = [name for name in types if name not in names]
    if missing:
        msg = f"{path}: must have a column {listing(missing)}, has {listing(names)}; fetch the file again."
        raise ColumnError(msg)
    return pl.scan_csv(path, schema_overrides=dict(types), glob=False)


def columns(path: Path, types: Types) -> pl.DataFrame:
    """These columns of a file with a header, in memory."""
    try:
        return scan(path, types).select(list(types)).collect()
    except pl.exceptions.PolarsError as error:
        raise unreadable(path, error) from error


def unreadable(path: Path, error: Exception) -> FormatError:
    """The error for a file whose fields are not what they should be."""
    said = str(error).splitlines()[0] if str(error) else type(error).__name__
    return FormatError(f"{path}: must hold numbers in the columns of its format ({said}); fetch the file again.")


def _names(path: Path) -> list[str]:
    try:
        return pl.scan_csv(path, infer_schema=False, glob=False).collect_schema().names()
    except pl.exceptions.PolarsError as error:
        raise unreadable(path, error) from error
