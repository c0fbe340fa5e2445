"""Writing files whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from openloop.errors import InputError


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Generator[Path]:
    """Yield a temporary path beside `path`; rename it to `path` if the block succeeds, else remove it."""
    target = Path(os.path.realpath(path))  # the file behind a link, not the link, is replaced
    if not target.parent.is_dir():
        msg = f"output path {str(target)!r}: folder {str(target.parent)!r} does not exist; create it first."
        raise InputError(msg)
    if target.exists() and not target.is_file():
        what = "a folder; give a file name inside it" if target.is_dir() else "no ordinary file; give another path"
        msg = f"output path {str(target)!r} is {what}."
        raise InputError(msg)
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        temporary.chmod(0o666 & ~_umask())
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write `text` to `path` in one step."""
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def _umask() -> int:
    mask = os.umask(0)  # the only way to read it is to set it
    os.umask(mask)
    return mask
