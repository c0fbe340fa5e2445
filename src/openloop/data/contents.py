"""The bytes of a file: found, unpacked, and recognised when they cannot be read."""

from __future__ import annotations

import gzip
import io
import os
import re
import zlib
from pathlib import Path

from openloop.errors import FormatError, InputError, did_you_mean, quoted
from openloop.support.memory import total_memory
from openloop.support.sizes import written
from openloop.support.wording import cut

SAMPLE = 1 << 16
LONGEST = 1 << 24  # bytes of a first line
BLOCK = 1 << 20  # bytes that are unpacked at a time

# Text of numbers is rarely packed to less than a tenth; what is packed to a thousandth is zeros or blanks.
DENSEST = 200
HARMLESS = 1 << 26  # bytes that a file of any size may unpack to

# A file's bytes, or its path where they can be read from there.
Contents = Path | bytes

_GZIP = b"\x1f\x8b"
_MAGIC = {b"PAR1": "Parquet", _GZIP: "gzip", b"PK\x03\x04": "zip", b"ARROW1": "Arrow"}


def existing(path: Path) -> Path:
    """The path of a file that is there and not empty."""
    try:
        size = path.stat().st_size if path.exists() else -1
    except OSError as error:  # as where a name is too long
        raise InputError(f"{quoted(str(path))}: cannot be read ({error.strerror}); check its name.") from error
    if path.is_dir():
        msg = f"{path}: is a folder; give one file, or read it with polars.scan_parquet and pass that frame."
        raise InputError(msg)
    if size < 0:
        raise InputError(f"{path}: no such file.{_near(path)}")
    if not path.is_file():
        raise InputError(f"{path}: must be an ordinary file, got a device or a pipe; save it first, then name it.")
    if size == 0:
        raise FormatError(f"{path}: the file is empty (0 bytes); write or fetch it again.")
    return path


def _near(path: Path) -> str:
    folder = path.parent
    if not folder.is_dir():
        return f" Folder {quoted(str(folder))} does not exist."
    return did_you_mean(path.name, sorted(p.name for p in folder.iterdir()))


def unpacked(path: Path) -> Contents:
    """The path itself, or the bytes where the file is compressed, or Polars does not take its name."""
    zipped = head_of(path, 2) == _GZIP
    if path.suffix.lower() == ".gz" and not zipped:
        raise FormatError(f"{path}: is named .gz but is not a gzip file; rename it or fetch it again.")
    if not zipped:
        return path if is_text(str(path)) else path.read_bytes()
    try:
        return _inflated(path)
    except (EOFError, OSError, zlib.error) as error:
        raise unreadable(path, str(error)) from error


def is_text(name: str) -> bool:
    """Whether a name is UTF-8, as names of files need not be."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _inflated(path: Path) -> bytes:
    """The unpacked bytes, no more of which are made than is allowed."""
    size, room = path.stat().st_size, total_memory()
    packed = max(HARMLESS, DENSEST * size)
    most = packed if room is None else min(packed, room // 2)
    found = io.BytesIO()
    with gzip.open(path) as file:
        while block := file.read(BLOCK):
            if found.tell() + len(block) > most:
                rule = f"{DENSEST} times its size" if most == packed else "half the memory here"
                raise FormatError(
                    f"{path}: unpacks to more than {written(most)}, which is {rule}; if it is a log all the same, "
                    "unpack it by hand and give that file."
                )
            found.write(block)
    return found.getvalue()


def blanked(contents: Contents, skip: int, comment: str | None) -> Contents:
    """The bytes with blank lines for the first `skip` and for those that begin with `comment`.

    So lines keep their numbers. The path itself where there is nothing to blank.
    """
    if not skip and comment is None:
        return contents
    data = whole(contents).removeprefix(b"\xef\xbb\xbf")
    *first, rest = data.split(b"\n", min(skip, len(data) + 1))
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


def first_lines(contents: Contents) -> bytes:
    """The first bytes, and at least the first line."""
    head = head_of(contents)
    return head if b"\n" in head or len(head) < SAMPLE else head_of(contents, LONGEST)


def unreadable(path: Path, reason: str, remedy: str = "write or fetch it again") -> FormatError:
    """The error of a file that is not what its name says, or not all of it."""
    head = head_of(path, 8)
    name = next((name for magic, name in _MAGIC.items() if head.startswith(magic)), None)
    found = f" (its first bytes are those of a {name} file)" if name else ""
    return cut_short(str(path), reason, remedy, found)


def cut_short(name: str, reason: str, remedy: str = "write or fetch it again", found: str = "") -> FormatError:
    """The error of a file that another library could not read; `found`: what it is instead."""
    line = cut(reason.strip().split("\n")[0])
    return FormatError(f"{name}: cut short or of another format{found}: {line}; {remedy}.")
