"""Vectors as a Parquet table: a row per user and per item, with its id, its factors and its bias.

Columns are `user`, `item`, `factors` and, where there are such, `bias`. A user's row has no item, an item's row has no
user; the bias of a row with neither is the intercept. So ids of users and items keep types of their own.
"""

from __future__ import annotations

import io
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from openloop.core.feedback import Array
from openloop.errors import ColumnError, FormatError, InputError, UndefinedError, did_you_mean, listing, quoted
from openloop.support.atomic import FilePath

if TYPE_CHECKING:
    import polars as pl

PARQUET = (".parquet", ".pq")
SIDES = ("user", "item")
FACTORS = ("factors", "vector", "embedding", "features")  # the names of the column of vectors; the first is written
BIAS = "bias"
TELLING = ("user", "item", "bias", "intercept", "mean", "output")
EXACT = 2**53  # whole floats are read as ids up to here


def is_vector_table(path: FilePath) -> bool:
    """Whether a file is a Parquet table of vectors, and not of scores; one that cannot be read is neither."""
    import polars as pl

    file = Path(path).expanduser()
    if file.suffix.lower() not in PARQUET or not file.is_file():
        return False
    try:
        schema = pl.read_parquet_schema(_source(file))
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError):
        return False
    return any(isinstance(schema[name], pl.List | pl.Array) for name in FACTORS if name in schema)


def _source(file: Path) -> Path | io.BytesIO:
    """The path, or the bytes where the name is not UTF-8, which Polars does not take."""
    try:
        str(file).encode()
    except UnicodeEncodeError:
        return io.BytesIO(file.read_bytes())
    return file


def misnamed(names: Iterable[str], known: Iterable[str]) -> str | None:
    """The first unknown name that seems to be meant for vectors; others may be ignored."""
    return next((name for name in names if name not in known and any(word in name.lower() for word in TELLING)), None)


def read_table(file: Path) -> dict[str, Any]:
    """The parameters of `Factors` in a table of vectors."""
    rows = _rows(file)
    column = _factors_column(file, rows)
    is_user, is_item = (rows[side].is_not_null() for side in SIDES)
    if bool((is_user & is_item).any()):
        raise FormatError(f"{file}: some rows have a user and an item; a row of vectors has one of them.")
    found: dict[str, Any] = {}
    for side, own in (("user", is_user), ("item", is_item)):
        part = rows.filter(own)
        found[f"{side}s"] = _ids(file, part[side])
        found[f"{side}_factors"] = _matrix(file, part[column])
        if BIAS in rows.columns:
            found[f"{side}_bias"] = _numbers(file, part[BIAS])
    return found | _intercept(file, rows.filter(~is_user & ~is_item))


def _rows(file: Path) -> pl.DataFrame:
    import polars as pl

    try:
        rows = pl.read_parquet(_source(file), glob=False)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
        line = str(error).strip().split("\n")[0]
        raise FormatError(f"{file}: cut short or no Parquet file: {line}; write or fetch it again.") from error
    missing = [side for side in SIDES if side not in rows.columns]
    if missing:
        raise ColumnError(
            f"{file}: has no column {missing[0]!r}, but {listing(rows.columns)}; a table of vectors has user, item, "
            "factors and bias."
        )
    known = (*SIDES, *FACTORS, BIAS)
    if odd := misnamed(rows.columns, known):
        raise ColumnError(f"{file}: column {quoted(odd)} has a name that is not read.{did_you_mean(odd, known)}")
    return rows


def _factors_column(file: Path, rows: pl.DataFrame) -> str:
    import polars as pl

    found = [name for name in FACTORS if name in rows.columns]
    if len(found) != 1:
        raise ColumnError(f"{file}: needs one column of vectors, {listing(FACTORS)}, got {listing(found) or 'none'}.")
    if not isinstance(rows.schema[found[0]], pl.List | pl.Array):
        raise ColumnError(
            f"{file}: column {quoted(found[0])} must be lists of numbers, got {quoted(rows.schema[found[0]])}."
        )
    return found[0]


def _matrix(file: Path, column: pl.Series) -> Array:
    """Lists of one length as a table of numbers, (rows, K)."""
    import polars as pl

    lists = column.cast(pl.List(column.dtype.inner))  # pyright: ignore[reportAttributeAccessIssue], it is nested
    lengths = lists.list.len().unique()
    if lists.null_count() or len(lengths) > 1:
        some = listing(sorted(lengths.drop_nulls().to_list()))
        raise FormatError(
            f"{file}: {quoted(column.name)} must have one length, got {some}; {lists.null_count():,} are null."
        )
    K = int(lengths[0]) if len(lengths) else 0
    flat = lists.explode() if K else pl.Series(column.name, [], pl.Float64)
    return _numbers(file, flat).reshape(len(column), K)


def _numbers(file: Path, column: pl.Series) -> Array:
    if not column.dtype.is_numeric():
        raise ColumnError(f"{file}: column {quoted(column.name)} must hold numbers, got {quoted(column.dtype)}.")
    if column.null_count():
        raise FormatError(f"{file}: {column.null_count():,} values of {quoted(column.name)} are missing; fill them in.")
    return column.to_numpy()


def _ids(file: Path, column: pl.Series) -> Array:
    """Integers or text; whole floats are integers that a table with gaps could not hold."""
    import polars as pl

    if column.dtype.is_float():
        whole = column.cast(pl.Int64, strict=False)
        if not bool(((whole == column) & (column.abs() <= EXACT)).all()):
            raise FormatError(
                f"{file}: {column.name} ids must be integers or text, got {quoted(column.dtype)}; cast them."
            )
        return whole.to_numpy()
    if column.dtype.is_integer():
        return column.to_numpy()
    return column.cast(pl.String).to_numpy().astype(object)


def _intercept(file: Path, rows: pl.DataFrame) -> dict[str, Any]:
    """The bias of the row that is neither a user's nor an item's."""
    if len(rows) == 0:
        return {}
    if len(rows) > 1 or BIAS not in rows.columns:
        raise FormatError(
            f"{file}: {len(rows):,} rows have neither user nor item; one may, whose bias is the intercept."
        )
    return {"intercept": float(_numbers(file, rows[BIAS])[0])}


# -- writing -------------------------------------------------------------------------------------------------


def write_table(file: Path, vectors: dict[str, Any]) -> None:
    """Write a table of vectors; an intercept of 0 has no row."""
    import polars as pl

    if "output" in vectors:
        raise UndefinedError(
            "to_vectors: predictions are a function of the scores, which a Parquet table cannot say; write .npz or "
            ".safetensors."
        )
    try:
        parts = [_side(side, vectors) for side in SIDES]
    except UnicodeEncodeError as error:
        raise InputError(f"to_vectors: an id is no Unicode text ({error.reason}); write .safetensors.") from error
    if vectors["intercept"]:
        parts.append(pl.DataFrame({BIAS: [float(vectors["intercept"])]}))
    with file.open("wb") as opened:  # names need not be UTF-8
        pl.concat(parts, how="diagonal_relaxed").select(*SIDES, FACTORS[0], BIAS).write_parquet(opened)


def _side(side: str, vectors: dict[str, Any]) -> pl.DataFrame:
    import polars as pl

    values = np.asarray(vectors[f"{side}_factors"])  # (n, K)
    kind = pl.List(pl.Series(np.empty(0, values.dtype)).dtype)
    lists = pl.Series(values).cast(kind) if values.size else pl.Series([[]] * len(values), dtype=kind)
    ids = np.asarray(vectors[f"{side}s"]).tolist()
    return pl.DataFrame({side: ids, FACTORS[0]: lists, BIAS: vectors[f"{side}_bias"]})
