"""Delimited files of data sets: read as a log, or refused with the first line of another form."""

from __future__ import annotations

import csv
import gzip
import re
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from openloop.core.feedback import Feedback
from openloop.data.reading import read
from openloop.errors import ColumnError, FormatError, InputError, RatingError, listing, quoted

Kind = type[int] | type[float] | type[str]
Kinds = Mapping[str, Kind]  # field, and what its text must be
Numbered = tuple[int, list[str] | None]  # a line and its fields, None where it is not text

AGAIN = "fetch the file again."
BETWEEN = {"\t": "tabs", "::": "'::'", ",": "commas"}
NOUNS: Mapping[Kind, str] = {int: "a whole number", float: "a number", str: "text"}
# Remarks of `read` on its arguments and on rows, which are not lines, do not help with a published file.
ASIDE = re.compile(r" \((?:it was read as|its first line was taken).*$|,? in rows? .*$")


def log(path: Path, kinds: Kinds, *, separator: str, header: bool, **options: Any) -> Feedback:
    """The log in a file whose fields are user, item, rating and, where there is a fourth, time."""
    roles = ("user", "item", "rating", "time")[: len(kinds)]
    columns = dict(zip(roles, kinds if header else range(len(kinds)), strict=True))
    try:
        found = read(path, separator=separator, header=header, **columns, **options)
    except InputError as error:
        if ": cut short: " not in str(error):
            refuse_first(path, kinds, separator=separator, header=header, error=error)
        raise restated(error, path) from error
    whole = [kinds[name] is int for name in list(kinds)[:2]]
    if any(asked and ids.ids.dtype.kind != "i" for asked, ids in zip(whole, (found.users, found.items), strict=True)):
        refuse_first(path, kinds, separator=separator, header=header)
    return found


def restated(error: InputError, path: Path | str) -> InputError:
    """An error of `read` as one of the file: what is wrong with it, and to fetch it again."""
    message = str(error).removeprefix(f"{path}: ").removeprefix("source: ").split("; ")[0]
    return type(error)(f"{path}: {ASIDE.sub('', message).rstrip('.')}; {AGAIN}")


def refuse_first(
    path: Path, kinds: Kinds, *, separator: str, header: bool, before: int = 0, error: Exception | None = None
) -> None:
    """Raise an error that names the first line, after `before`, that is not of the form; none if all are."""
    lines = _fields(path, separator, before)
    first = next(lines, None) if header else None
    names = list(kinds) if first is None or first[1] is None else [name.strip() for name in first[1]]
    if lacking := [name for name in kinds if name not in names]:
        msg = f"{path}: line {before + 1} must name the columns {listing(lacking)}, and names {listing(names)}; {AGAIN}"
        raise ColumnError(msg) from error
    for number, fields in lines:
        if wrong := _wrong(fields, names, kinds, separator):
            divided = fields is not None and len(fields) == len(names)
            kind = RatingError if divided and isinstance(error, RatingError) else FormatError
            raise kind(f"{path}: line {number:,} {wrong}; {AGAIN}") from error


def _wrong(fields: list[str] | None, names: list[str], kinds: Kinds, separator: str) -> str:
    """What is wrong with a line, empty where nothing is."""
    if fields is None:
        return "is not UTF-8 text"
    if len(fields) != len(names):
        between = BETWEEN.get(separator, repr(separator))
        return f"must have {len(names)} fields divided by {between} ({', '.join(names[:6])}), and has {len(fields)}"
    for name, field in zip(names, fields, strict=True):
        if name in kinds and not _parses(kinds[name], field.strip()):
            return f"must have {NOUNS[kinds[name]]} as {name}, and has {quoted(field.strip())}"
    return ""


def _parses(kind: Kind, field: str) -> bool:
    try:
        kind(field)
    except ValueError:
        return False
    return field != ""


def _fields(path: Path, separator: str, before: int) -> Iterator[Numbered]:
    """Number and fields of each line that is not blank; as far as the file can be unpacked."""
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            for number, line in enumerate(file, 1):
                if number > before and line.strip():
                    yield number, _divided(line, separator)
    except (EOFError, OSError, zlib.error):  # its reader has raised it already
        return


def _divided(line: bytes, separator: str) -> list[str] | None:
    try:
        text = line.decode("utf-8-sig").rstrip("\r\n")
    except UnicodeDecodeError:
        return None
    return text.split(separator) if separator != "," else next(csv.reader([text]), [])
