"""Files written whole or not at all, and results as JSON."""

from __future__ import annotations

import json
import math
import os
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from openloop.errors import InputError

FilePath = str | os.PathLike[str]


@contextmanager
def replacing(path: FilePath) -> Generator[Path]:
    """Yield a temporary path beside `path`; rename it to `path` if the block succeeds, else remove it."""
    target = Path(os.path.realpath(path))  # the file behind a link, not the link, is replaced
    if not target.parent.is_dir():
        raise InputError(f"output path {str(target)!r}: folder {str(target.parent)!r} does not exist; create it first.")
    if target.exists() and not target.is_file():
        what = "a folder; give a file name inside it" if target.is_dir() else "no ordinary file; give another path"
        raise InputError(f"output path {str(target)!r} is {what}.")
    try:
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    except OSError as error:
        msg = f"output path {str(target)!r}: cannot be written ({error.strerror}); give another path."
        raise InputError(msg) from error
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        temporary.chmod(0o666 & ~_umask())
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)


def write_text(path: FilePath, text: str) -> None:
    """Write `text` to `path` in one step."""
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8", errors="backslashreplace")


def json_text(content: Any, path: FilePath | None = None) -> str:
    """Plain values as JSON, written to `path` in one step when given; NaN and infinity, which it lacks, as null."""
    text = json.dumps(finite(content), indent=2, ensure_ascii=False, allow_nan=False)
    text = text.encode(errors="backslashreplace").decode()  # names of files need not be UTF-8
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


def _umask() -> int:
    mask = os.umask(0)  # the only way to read it is to set it
    os.umask(mask)
    return mask
