"""`refuse_strange`: refuses NUL bytes and stray carriage returns in delimited text, and names the line."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from openloop.data.contents import Contents, unreadable
from openloop.data.ragged import blocks, line_at
from openloop.errors import FormatError

NUL = b"\0"
BARE = re.compile(rb"\r(?![\r\n])")  # \r\r\n ends a line, as some programs write it
MARKS = {b"\xff\xfe": "UTF-16", b"\xfe\xff": "UTF-16", b"\xff\xfe\0\0": "UTF-32", b"\0\0\xfe\xff": "UTF-32"}

TO_UTF8 = "convert it to UTF-8, as iconv does"
TO_LINES = "end lines in line feeds, as dos2unix -c mac does"


def refuse_encoding(path: Path, head: bytes) -> None:
    """Refuse a file that begins as text of another encoding does, or that has NUL bytes near its beginning."""
    wide = [name for mark, name in MARKS.items() if head.startswith(mark)]
    zeros = head.count(NUL)
    if wide or zeros > len(head) // 4:  # of UTF-16 text about half the bytes are zero
        raise unreadable(path, f"it is {wide[-1] if wide else 'UTF-16'} text, not UTF-8", TO_UTF8)
    if zeros:
        raise unreadable(path, "it holds NUL bytes, so it is not UTF-8 text", "repair it, or fetch it again")


def refuse_strange(path: Path, contents: Contents, separator: str) -> None:
    """Raise an error that names the first line with a NUL byte, or with a carriage return outside of quotes."""
    bare = False
    for at, block in enumerate(blocks(contents)):
        if NUL in block:
            before = sum(other.count(b"\n") for other in islice(blocks(contents), at))
            number = before + block.count(b"\n", 0, block.index(NUL)) + 1
            raise FormatError(f"{path}: {line_at(contents, number, 'holds a NUL byte')}; repair it, or fetch it again.")
        # Counting is many times faster than the pattern, which nearly no file needs.
        bare = bare or (block.count(b"\r") != block.count(b"\r\n") and BARE.search(block) is not None)
    if bare and (number := _unquoted(contents, separator)):
        found = "has a carriage return that ends no line"
        raise FormatError(f"{path}: {line_at(contents, number, found)}; {TO_LINES}.")


def _unquoted(contents: Contents, separator: str) -> int:
    """The first line with a carriage return in it, 0 where each is in a quoted field."""
    if len(separator.encode()) > 1:  # such text has no quotes
        return next(number for number, line in enumerate(_lines(contents), 1) if BARE.search(line))
    reader = csv.reader((line.decode(errors="replace") for line in _lines(contents)), delimiter=separator)
    try:
        for _ in reader:
            pass
    except csv.Error:
        return reader.line_num
    return 0


def _lines(contents: Contents) -> Iterator[bytes]:
    for block in blocks(contents):
        yield from (line + b"\n" for line in block.removesuffix(b"\n").split(b"\n"))
