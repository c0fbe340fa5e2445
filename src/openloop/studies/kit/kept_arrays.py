"""Arrays in files that carry a digest of themselves: one that is damaged, or another's, counts as absent."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from openloop.errors import InputError
from openloop.support.atomic import replacing
from openloop.support.leftovers import OURS

Given = Mapping[str, npt.NDArray[Any]]
Outcome = dict[str, npt.NDArray[Any]]

DIGEST = "sha-256"  # the name of the array that has it; no outcome of Python code has a dash in its name
A_DAY = 86_400.0  # seconds


def arrays_of(values: Mapping[str, Any], name: str) -> Outcome:
    """What can be kept: arrays of numbers or text; `name` is whose they are."""
    found = {key: np.asarray(value) for key, value in values.items()}
    for key, array in found.items():
        if array.dtype.hasobject:
            raise InputError(f"{name}: {key} must be numbers or text, got an array of objects.")
        if key == DIGEST:
            raise InputError(f"{name}: {key!r} is what the digest of a file is called; give it another name.")
    return found


def keep(file: Path, arrays: Given) -> str | None:
    """Write arrays in one step; why that could not be done, as where the disk is full, and None where it was."""
    try:
        with replacing(file) as temporary, temporary.open("wb") as out:
            np.savez(out, **arrays, **{DIGEST: _digest(file, arrays)})  # pyright: ignore[reportArgumentType]
    except OSError as error:
        return error.strerror or str(error)
    except InputError as error:  # no file could be made
        return str(error)
    return None


def kept(file: Path) -> Outcome | None:
    """The arrays in a file; None where there is none, or where a bit of it is not what was written."""
    try:
        with file.open("rb") as opened, np.load(opened, allow_pickle=False) as held:
            found: Outcome = {name: held[name] for name in held.files}
    except Exception:  # noqa: BLE001, a header that was hit can raise anything
        return None
    said = found.pop(DIGEST, None)
    return found if said is not None and str(said) == str(_digest(file, found)) else None


def digest_of(given: Given) -> str:
    """A digest of arrays and their names, in any order."""
    found = hashlib.sha256()
    for name in sorted(given):
        values = np.ascontiguousarray(given[name])
        found.update(f"{name} {values.dtype.str} {given[name].shape};".encode())
        found.update(values.tobytes())
    return found.hexdigest()[:32]


def _digest(file: Path, arrays: Given) -> npt.NDArray[np.str_]:
    """Of the arrays and of the file that they belong into."""
    return np.array(hashlib.sha256(f"{file.name} {digest_of(arrays)}".encode()).hexdigest())


def remove_remains(folder: Path) -> None:
    """Delete what was left half-written, also on another host, unless it is so young that it may still be written.

    Only files with the mark of openloop go.
    """
    for file in folder.glob(".*.npz.*"):
        with suppress(OSError):  # another run may have deleted it
            if OURS.fullmatch(file.name) and file.is_file() and time.time() - file.lstat().st_mtime > A_DAY:
                file.unlink()
