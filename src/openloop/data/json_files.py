"""JSON lines and arrays of records as lazy tables; a column that mixes text, numbers and booleans is refused.

Polars converts such a mixture to text, or true to 1: "2" and 2, or true and 1, would become the same id.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from openloop.data.contents import Contents, head_of, unpacked, whole
from openloop.errors import FormatError, quoted
from openloop.support.wording import joined

KINDS: dict[str, Any] = {"booleans": bool, "numbers": int | float, "text": str}  # true is also an int
MARK = b"\xef\xbb\xbf"
SCALAR = r"^(?:true|false|-?[0-9][-+.eE0-9]*)$"  # what Polars makes of a number or a boolean beside text


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
    """Refuse columns in which some values are text or booleans and others are not, as null may be."""
    looks = [name for name in dict.fromkeys(columns) if _may_be_mixed(frame, name)]
    if not looks:
        return
    contents = _unmarked(unpacked(path))
    data = whole(contents)
    mixed = [name for name in looks if _beside(frame.collect_schema()[name], name).search(data)]
    if mixed:
        _refuse_kinds(path, _records(data, array=_is_array(contents)), mixed)


def _may_be_mixed(frame: pl.LazyFrame, name: str) -> bool:
    """Whether values look as Polars writes those of another kind: most files are passed over here."""
    column, dtype = pl.col(name), frame.collect_schema()[name]
    if dtype == pl.String:
        odd = column.str.contains(SCALAR)
    elif dtype.is_numeric():
        odd = (column == 0) | (column == 1)
    else:
        return False
    return bool(frame.select(odd.any()).collect(engine="streaming").item())


def _beside(dtype: pl.DataType, name: str) -> re.Pattern[bytes]:
    """A key with a value that is not text, in a column of text, or that is true or false, in one of numbers."""
    value = rb'(?!["\sn])' if dtype == pl.String else rb"(?:true|false)"
    return re.compile(rb'"' + re.escape(json.dumps(name)[1:-1].encode()) + rb'"\s*:\s*' + value)


def _records(data: bytes, *, array: bool) -> Iterable[Any]:
    return json.loads(data) if array else (json.loads(line) for line in data.splitlines() if line.strip())


def _refuse_kinds(path: Path, records: Iterable[Any], columns: Sequence[str]) -> None:
    found: dict[str, dict[str, int]] = {name: {} for name in columns}
    for number, record in enumerate(records):
        for name in columns:
            if (kind := _kind(record.get(name))) is not None:
                found[name].setdefault(kind, number)
    for name, kinds in found.items():
        if len(kinds) > 1:
            told = joined([f"{kind} (row {first})" for kind, first in kinds.items()])
            raise FormatError(f"{path}: column {quoted(name)} mixes {told}; make all its values one kind.")


def _kind(value: Any) -> str | None:
    """What a value is, in words; None for what decides nothing."""
    return next((word for word, kind in KINDS.items() if isinstance(value, kind)), None)
