"""JSON lines and arrays of records as lazy tables; a column that mixes text, numbers and booleans is refused.

Polars converts such a mixture to text, or true to 1: "2" and 2, or true and 1, would become the same id. Nor is a
record read that has a column twice.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import polars as pl

from openloop.data.contents import Contents, head_of, unpacked, unreadable, whole
from openloop.data.ragged import blocks
from openloop.errors import FormatError, OpenloopError, quoted
from openloop.support.wording import joined

KINDS: dict[str, Any] = {  # true is also an int
    "booleans": bool, "numbers": int | float, "text": str, "lists": list, "objects": dict,
}  # fmt: skip
MARK = b"\xef\xbb\xbf"
OTHER = r"^(?:true|false|-?[0-9][-+.eE0-9]*|[\[{].*)$"  # what Polars makes of another value beside text


def scan_json(path: Path) -> pl.LazyFrame:
    """The records of a file, one in each line or all in an array."""
    contents = _unmarked(unpacked(path))
    # All records decide the types: a rating of 4.5 may follow a million whole ones.
    if isinstance(contents, Path) and not _is_array(contents) and not set("*?[") & set(str(path)):
        return pl.scan_ndjson(contents, infer_schema_length=None)
    if _is_array(contents):
        return pl.read_json(io.BytesIO(whole(contents)), infer_schema_length=None).lazy()
    return pl.scan_ndjson(io.BytesIO(whole(contents)), infer_schema_length=None)


def _unmarked(contents: Contents) -> Contents:
    return whole(contents).removeprefix(MARK) if head_of(contents, 3) == MARK else contents


def _is_array(contents: Contents) -> bool:
    return head_of(contents).lstrip()[:1] == b"["


# -- columns of one kind -------------------------------------------------------------------------------------


def refuse_mixed(path: Path, frame: pl.LazyFrame, columns: Sequence[str]) -> None:
    """Refuse columns in which some values are text or booleans and others are not, as null may be, or that repeat.

    Where a record has a key twice Polars takes the first value, and other readers the last.
    """
    names = list(dict.fromkeys(columns))
    rows, odd, absent = _facts(frame, names)
    contents = _unmarked(unpacked(path))
    counts, mixed = dict.fromkeys(names, 0), set[str]()
    for block in blocks(contents):
        for name in names:
            counts[name] += _keys(block, name)
            if name in odd and name not in mixed and _beside(frame.collect_schema()[name], name).search(block):
                mixed.add(name)
    repeated = {name for name in names if counts[name] > rows or (absent[name] and counts[name])}
    if mixed or repeated:
        with _reading(path):
            _refuse_kinds(path, _records(contents, array=_is_array(contents)), names)


def _facts(frame: pl.LazyFrame, names: Sequence[str]) -> tuple[int, set[str], dict[str, int]]:
    """The records; the columns whose values look as Polars writes those of another kind; how many each column lacks.

    Most files are passed over here.
    """
    schema = frame.collect_schema()
    odd = [_odd(pl.col(name), schema[name]).any().alias(f"odd {k}") for k, name in enumerate(names)]
    absent = [pl.col(name).null_count().alias(f"absent {k}") for k, name in enumerate(names)]
    rows, *found = frame.select(pl.len().alias("rows"), *odd, *absent).collect(engine="streaming").row(0)
    lacking = dict(zip(names, found[len(names) :], strict=True))
    return rows, {name for name, it in zip(names, found, strict=False) if it}, lacking


def _odd(column: pl.Expr, dtype: pl.DataType) -> pl.Expr:
    if dtype == pl.String:
        return column.str.contains(OTHER)
    return (column == 0) | (column == 1) if dtype.is_numeric() else pl.lit(value=False)


def _keys(block: bytes, name: str) -> int:
    """How often a name is there, at most; a key that is written with an escape counts as every name."""
    found = block.count(json.dumps(name, ensure_ascii=False).encode(errors="replace"))
    return found + (len(_escaped(name).findall(block)) if b"\\" in block else 0)


@cache
def _escaped(name: str) -> re.Pattern[bytes]:
    """A key with an escape that may be of this name; only escapes of ASCII are of one that is plain."""
    plain = name.isascii() and name.isprintable() and not set(name) & set('"\\')
    return re.compile((rb"\\(?:u00[2-7]|/)" if plain else rb"\\") + rb'[^"]*"\s*:')


@cache
def _beside(dtype: pl.DataType, name: str) -> re.Pattern[bytes]:
    """A key with a value that is not text, in a column of text, or that is true or false, in one of numbers."""
    value = rb'(?!["\sn])' if dtype == pl.String else rb"(?:true|false)"
    key = re.escape(json.dumps(name, ensure_ascii=False).encode(errors="replace"))
    return re.compile(rb"(?:" + key + rb"|" + _escaped(name).pattern.removesuffix(rb"\s*:") + rb")\s*:\s*" + value)


def _records(contents: Contents, *, array: bool) -> Iterable[dict[str, Any]]:
    if array:
        return json.loads(whole(contents), object_pairs_hook=_Record)
    lines = (line for block in blocks(contents) for line in block.splitlines())
    return (json.loads(line, object_pairs_hook=_Record) for line in lines if line.strip())


class _Record(dict[str, Any]):
    """An object of JSON; `twice` are the keys that it has more than once."""

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        super().__init__(pairs)
        names = [name for name, _ in pairs] if len(self) < len(pairs) else []
        self.twice = {name for name in names if names.count(name) > 1}


@contextmanager
def _reading(path: Path) -> Generator[None]:
    """What Python does not read as Polars does is refused."""
    try:
        yield
    except (ValueError, RecursionError, AttributeError) as error:
        if isinstance(error, OpenloopError):
            raise
        raise unreadable(path, str(error)) from error


def _refuse_kinds(path: Path, records: Iterable[Any], columns: Sequence[str]) -> None:
    found: dict[str, dict[str, int]] = {name: {} for name in columns}
    for number, record in enumerate(records, 1):
        for name in columns:
            if record.twice and name in record.twice:
                raise FormatError(f"{path}: row {number:,} has {quoted(name)} more than once; keep one of each.")
            if (kind := _kind(record.get(name))) is not None:
                found[name].setdefault(kind, number)
    for name, kinds in found.items():
        if len(kinds) > 1:
            told = joined([f"{kind} (row {first:,})" for kind, first in kinds.items()])
            raise FormatError(f"{path}: column {quoted(name)} mixes {told}; make all its values one kind.")


def _kind(value: Any) -> str | None:
    """What a value is, in words; None for what decides nothing."""
    return next((word for word, kind in KINDS.items() if isinstance(value, kind)), None)
