"""JSON files from elsewhere: read with limits, and refused in one line that says where and why."""

from __future__ import annotations

import json
import math
import os
import stat
from pathlib import Path
from typing import Any, NoReturn

from openloop.errors import FormatError, InputError, quoted
from openloop.support.atomic import FilePath
from openloop.support.sizes import written

MOST_BYTES = 2**28  # 256 MiB; an audit of 40 models, all pairs compared, has 5
MOST_DIGITS = 400  # of a number: float64 ends at 309


def read_json(path: FilePath, again: str) -> Any:
    """The plain values of a JSON file; `again` says how such a file is made."""
    try:
        text = _bytes(Path(path), again).decode("utf-8-sig")
        return json.loads(text, parse_constant=_refuse, parse_int=_whole, parse_float=_number)
    except UnicodeDecodeError as error:
        raise FormatError(f"{path}: JSON must be UTF-8, and byte {error.start:,} is not; {again}.") from error
    except json.JSONDecodeError as error:
        where = f"line {error.lineno:,}, column {error.colno:,}"
        raise FormatError(f"{path}: must be JSON, got {error.msg} at {where}; {again}.") from error
    except RecursionError as error:
        raise FormatError(f"{path}: JSON is nested deeper than any result; {again}.") from error
    except _NumberError as error:
        raise FormatError(f"{path}: numbers must be finite float64, got {error}; {again}.") from error


def _bytes(path: Path, again: str) -> bytes:
    """The content of an ordinary file that is not too large."""
    with open(path, "rb", opener=_unblocked) as file:
        found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode):
            raise InputError(f"{path}: must be an ordinary file, got a device or a pipe; save it first, then name it.")
        if found.st_size > MOST_BYTES:
            raise InputError(
                f"{path}: a result has at most {written(MOST_BYTES)}, got {written(found.st_size)}; {again}."
            )
        return file.read(MOST_BYTES + 1)


def _unblocked(name: str, flags: int) -> int:
    """Opened without waiting for a pipe's other end."""
    return os.open(name, flags | getattr(os, "O_NONBLOCK", 0))


class _NumberError(ValueError):
    """A number that float64 does not hold."""


def _refuse(name: str) -> NoReturn:
    raise _NumberError(name)


def _whole(text: str) -> int:
    if len(text) > MOST_DIGITS or not -(2**63) <= (found := int(text)) < 2**64:
        raise _NumberError(quoted(text))
    return found


def _number(text: str) -> float:
    if len(text) > MOST_DIGITS or not math.isfinite(found := float(text)):
        raise _NumberError(quoted(text))
    return found
