"""`refuse_ragged`: refuses a record with another number of fields than the first line, and names its line."""

from __future__ import annotations

import io
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import BinaryIO

import numpy as np

from openloop.data.contents import Contents
from openloop.errors import FormatError, quoted
from openloop.support.wording import counted

BLOCK = 1 << 24  # bytes that are counted at a time
REMEDY = "repair that line or pass separator=."

UNIT = b"\x1f"  # replaces a separator of several bytes, which neither Polars nor the kernel takes


def refuse_ragged(path: Path, contents: Contents, separator: str, fields: int, remedy: str = REMEDY) -> None:
    """Raise an error that names the first record with more or fewer fields; `contents` are the file's bytes.

    Text divided by several bytes has no quoted fields.
    """
    from openloop.kernels.fields import NO_QUOTE, QUOTE, Place, find_ragged  # numba is slow to import

    divider = separator.encode()
    quote, unit = (QUOTE, divider) if len(divider) == 1 else (NO_QUOTE, UNIT)
    place = Place()
    for block in blocks(contents):
        data = np.frombuffer(block.replace(divider, unit), np.uint8)
        ragged, place = find_ragged(data, unit[0], quote, fields, place)
        if ragged:
            found = f"has {counted(place.fields, 'field')}, the first has {fields} (divided by {quoted(separator)})"
            raise FormatError(f"{path}: {line_at(contents, place.first, found)}; {remedy}")
    if place.quoted:
        found = "opens a quote that nothing closes"
        raise FormatError(f"{path}: {line_at(contents, place.first, found)}; {remedy}")


def line_at(contents: Contents, number: int, found: str) -> str:
    """The line's number, what was found, and the line."""
    with _opened(contents) as file:
        line = next(islice(file, number - 1, None)).decode(errors="replace").rstrip("\r\n")
    return f"line {number:,} {found}: {quoted(line)}"


def blocks(contents: Contents) -> Iterator[bytes]:
    """The bytes in blocks of whole lines, without the mark that some files begin with."""
    with _opened(contents) as file:
        if file.read(3) != b"\xef\xbb\xbf":
            file.seek(0)
        while block := file.read(BLOCK) + file.readline():
            yield block if block.endswith(b"\n") else block + b"\n"


def _opened(contents: Contents) -> BinaryIO:
    return io.BytesIO(contents) if isinstance(contents, bytes) else contents.open("rb")
