"""Files written whole or not at all, and results as JSON."""

from __future__ import annotations

import errno
import json
import math
import os
import stat
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from openloop.errors import InputError
from openloop.support.escaping import json_safe
from openloop.support.leftovers import hidden, sweep
from openloop.support.system_errors import FORBIDDEN, FULL, system_error

FilePath = str | os.PathLike[str]
UNABLE = (errno.EINVAL, errno.ENOTSUP, errno.EBADF)  # a file system that knows no such thing


@contextmanager
def replacing(path: FilePath) -> Generator[Path]:
    """Yield a temporary path beside `path`; rename it to `path` if the block succeeds, else remove it.

    The bytes are on the disk before the name is, so no crash leaves the name with other bytes. A file that is replaced
    keeps its mode.
    """
    target = Path(os.path.realpath(path))  # the file behind a link, not the link, is replaced
    if not target.parent.is_dir():
        raise InputError(f"output path {str(target)!r}: folder {str(target.parent)!r} does not exist; create it first.")
    if target.exists() and not target.is_file():
        what = "a folder; give a file name inside it" if target.is_dir() else "no ordinary file; give another path"
        raise InputError(f"output path {str(target)!r} is {what}.")
    sweep(target.parent)
    temporary = hidden(target)
    try:
        mode = _created(temporary, target)
        yield temporary
        _keep(temporary, mode)
        temporary.replace(target)
        _keep_names(target.parent)
    except Exception as error:
        refused = system_error(error)
        if refused is not None and _is_of(refused, temporary):
            raise OSError(refused.errno, refused.strerror, str(target)) from error  # by the name that the user knows
        raise
    finally:
        temporary.unlink(missing_ok=True)


def _created(temporary: Path, target: Path) -> int:
    """Make an empty file, and say which mode it is to have: that of the file that is there, or as `open` gives it."""
    old = stat.S_IMODE(target.stat().st_mode) if target.exists() else None
    try:
        handle = os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666 if old is None else 0o600)
    except OSError as error:
        if error.errno not in FORBIDDEN:
            raise
        msg = f"output path {str(target)!r}: cannot be written ({error.strerror}); give another path."
        raise InputError(msg) from error
    try:
        return stat.S_IMODE(os.fstat(handle).st_mode) if old is None else old
    finally:
        os.close(handle)


def _keep(temporary: Path, mode: int) -> None:
    """Put a file on the disk, with its mode."""
    with _opened(temporary) as handle:
        if stat.S_IMODE(os.fstat(handle).st_mode) != mode:  # a file system may refuse to change what need not be
            temporary.chmod(mode)
        os.fsync(handle)


def _keep_names(folder: Path) -> None:
    """Put the names in a folder on the disk, on systems that can."""
    if os.name != "posix":
        return
    with _opened(folder) as handle:
        try:
            os.fsync(handle)
        except OSError as error:
            if error.errno not in UNABLE:
                raise


@contextmanager
def _opened(path: Path) -> Generator[int]:
    handle = os.open(path, os.O_RDONLY if os.name == "posix" else os.O_RDWR)
    try:
        yield handle
    finally:
        os.close(handle)


def _is_of(error: OSError, temporary: Path) -> bool:
    """Whether a failure is one to write this file: it names it, or names none and says that no more can be written."""
    return str(error.filename) == str(temporary) or (error.filename is None and error.errno in FULL)


def write_text(path: FilePath, text: str) -> None:
    """Write `text` to `path` in one step; half a character, as a file's name may hold, is written as its escape."""
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8", errors="backslashreplace")


def json_text(content: Any, path: FilePath | None = None) -> str:
    """Plain values as JSON, written to `path` in one step when given; NaN and infinity, which it lacks, as null."""
    text = json_safe(json.dumps(finite(content), indent=2, ensure_ascii=False, allow_nan=False))
    if path is not None:
        write_text(path, text + "\n")
    return text


class Recorded:
    """A result that is plain values, its `records`, and as such JSON."""

    __slots__ = ()

    def records(self) -> dict[str, Any]:
        """Everything as plain values."""
        return asdict(self)  # pyright: ignore[reportArgumentType]

    def to_json(self, path: FilePath | None = None) -> str:
        """The records as JSON; written to `path` in one step when given."""
        return json_text(self.records(), path)


def finite(value: Any) -> Any:
    """JSON has no NaN or infinity: they become null."""
    if isinstance(value, dict):
        return {str(k): finite(v) for k, v in value.items()}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    if isinstance(value, list | tuple):
        return [finite(v) for v in value]  # pyright: ignore[reportUnknownVariableType]
    return None if isinstance(value, float) and not math.isfinite(value) else value
