"""The bytes of a file: found, unpacked, and recognised when they cannot be read."""

from __future__ import annotations

import gzip
import os
import re
import zlib
from pathlib import Path

from openloop.errors import FormatError, InputError, did_you_mean

SAMPLE = 1 << 16

# A file's bytes, or its path where they can be read from there.
Contents = Path | bytes

_GZIP = b"\x1f\x8b"
_MAGIC = {b"PAR1": "Parquet", _GZIP: "gzip", b"PK\x03\x04": "zip", b"ARROW1": "Arrow"}


def existing(path: Path) -> Path:
    """The path of a file that is there and not empty."""
    if path.is_dir():
        msg = f"{path}: is a folder; give one file, or read it with polars.scan_parquet and pass that frame."
        raise InputError(msg)
    if not path.exists():
        raise InputError(f"{path}: no such file.{_near(path)}")
    if path.stat().st_size == 0:
        raise FormatError(f"{path}: the file is empty (0 bytes); write or fetch it again.")
    return path


def _near(path: Path) -> str:
    folder = path.parent
    if not folder.is_dir():
        return f" Folder {str(folder)!r} does not exist."
    return did_you_mean(path.name, sorted(p.name for p in folder.iterdir()))


def unpacked(path: Path) -> Contents:
    """The path itself, or the bytes where the file is compressed."""
    zipped = head_of(path, 2) == _GZIP
    if path.suffix.lower() == ".gz" and not zipped:
        raise FormatError(f"{path}: is named .gz and is no gzip file; rename it or fetch it again.")
    if not zipped:
        return path
    try:
        return gzip.decompress(path.read_bytes())
    except (EOFError, OSError, zlib.error) as error:
        raise unreadable(path, str(error)) from error


def blanked(contents: Contents, skip: int, comment: str | None) -> Contents:
    """The bytes with blank lines for the first `skip` and for those that begin with `comment`.

    So lines keep their numbers. The path itself where there is nothing to blank.
    """
    if not skip and comment is None:
        return contents
    data = whole(contents).removeprefix(b"\xef\xbb\xbf")
    *first, rest = data.split(b"\n", skip)
    if comment is not None:
        rest = re.sub(rb"(?m)^" + re.escape(comment.encode()) + rb"[^\n]*", b"", rest)
    return b"\n" * len(first) + (rest if len(first) == skip else b"")


def whole(contents: Contents) -> bytes:
    """All bytes."""
    return contents if isinstance(contents, bytes) else contents.read_bytes()


def head_of(contents: Contents, size: int = SAMPLE) -> bytes:
    """The first bytes."""
    if isinstance(contents, bytes):
        return contents[:size]
    with contents.open("rb") as handle:
        return handle.read(size)


def tail_of(contents: Contents, size: int = SAMPLE) -> bytes:
    """The last bytes."""
    if isinstance(contents, bytes):
        return contents[-size:]
    with contents.open("rb") as handle:
        handle.seek(-min(size, contents.stat().st_size), os.SEEK_END)
        return handle.read()


def unreadable(path: Path, reason: str) -> FormatError:
    """The error of a file that is not what its name says, or not all of it."""
    head = head_of(path, 8)
    name = next((name for magic, name in _MAGIC.items() if head.startswith(magic)), None)
    found = f" (its first bytes are those of a {name} file)" if name else ""
    line = reason.strip().split("\n")[0]
    return FormatError(f"{path}: cut short or of another format{found}: {line}; write or fetch it again.")
