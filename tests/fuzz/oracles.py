"""What an accepted file must hold: the rows that the csv module or Polars reads from it."""

from __future__ import annotations

import csv
import gzip
import io
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from openloop.core.feedback import Feedback


class FailureError(Exception):
    """A case that must not be: which count it is, and what happened."""

    def __init__(self, kind: str, what: str) -> None:
        super().__init__(what)
        self.kind = kind


ROLES = ("user", "item", "rating")


def difference(path: Path, data: bytes, found: Feedback) -> str | None:
    """How the rows of an accepted file differ from those that another reader finds; None where they do not."""
    if data[:2] == b"\x1f\x8b":
        data = gzip.decompress(data)
    rows = _typed(path, data) if {".parquet", ".ndjson", ".json"} & set(path.suffixes) else _delimited(data)
    if rows is None:
        return None
    order = np.argsort(found.row)
    own = zip(found.users.ids[found.user][order], found.items.ids[found.item][order], found.rating[order], strict=True)
    for at, (mine, theirs) in enumerate(zip(own, rows, strict=False)):
        if not (_same_id(mine[0], theirs[0]) and _same_id(mine[1], theirs[1]) and _same_rating(mine[2], theirs[2])):
            return f"row {at}: read {mine!r}, another reader {theirs!r}"
    return None if len(rows) == len(found) else f"{len(found)} rows read, another reader has {len(rows)}"


def _typed(path: Path, data: bytes) -> list[tuple[Any, ...]] | None:
    file = io.BytesIO(data.removeprefix(b"\xef\xbb\xbf"))
    if ".parquet" in path.suffixes:
        names = pl.read_parquet_schema(file)
        frame = pl.read_parquet(file, columns=[name for name in ROLES if name in names])
    elif data.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] == b"[":
        frame = pl.read_json(file, infer_schema_length=None)
    else:
        frame = pl.read_ndjson(file, infer_schema_length=None)
    return frame.select(ROLES).rows() if set(ROLES) <= set(frame.columns) else None


def _delimited(data: bytes) -> list[tuple[Any, ...]] | None:
    """The rows of text with the columns user, item and rating in its first line; others are not compared."""
    text = data.decode("utf-8-sig")
    first = text.lstrip("\r\n ").split("\n", 1)[0]
    separator = next((s for s in ("\t", "|", ",") if s in first), None)
    if separator is None or "::" in first:
        return None
    # Line ends stay as they are: the csv module takes \r for one only where it is not quoted.
    lines = (f"{line}\n" for line in text.removesuffix("\n").split("\n"))
    records = [r for r in csv.reader(lines, delimiter=separator) if any(field.strip() for field in r)]
    names = [field.strip() for field in records[0]]
    if any(names.count(role) != 1 for role in ROLES) or not {*names[:3]} & {*ROLES, "score"}:
        return None  # nothing says that this line is a header
    at = [names.index(role) for role in ROLES]
    return [tuple(record[i] for i in at) for record in records[1:]]


def _same_id(mine: Any, theirs: Any) -> bool:
    if isinstance(theirs, str):
        return str(mine).strip() == theirs.strip() or f"{mine}.0" == theirs.strip()
    return mine == theirs


def _same_rating(mine: Any, theirs: Any) -> bool:
    word = theirs.strip().lower() if isinstance(theirs, str) else theirs
    value = {"true": 1.0, "false": 0.0}.get(word) if isinstance(word, str) else float(word)
    return np.float32(float(word) if value is None else value) == mine
