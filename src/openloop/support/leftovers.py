"""Temporary files and folders named after the process that made them; later processes remove leftovers.

A name ends in `.HOST-PID-START-RANDOM.openloop`. A process that was killed leaves such a name behind, and the next one
that writes into the same folder removes it: if it is of this host, and no process has that number, or one that
started at another time. What it cannot tell stays, and so does every other name.
"""

from __future__ import annotations

import hashlib
import os
import platform
import re
import secrets
import shutil
from collections.abc import Generator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

OURS = re.compile(r".+\.([0-9a-f]{8})-([0-9]+)-([0-9]+)-[0-9a-f]{8}\.openloop", re.DOTALL)
LONGEST = 180  # bytes of a name that leave room for its mark: file systems take 255


def hidden(target: Path) -> Path:
    """A name beside `target` that nothing has yet: hidden, and marked as this process's."""
    name = target.name
    if len(os.fsencode(name)) > LONGEST:
        name = hashlib.blake2b(os.fsencode(name), digest_size=16).hexdigest()
    return target.with_name(marked(f".{name}"))


def marked(name: str) -> str:
    """A name with the mark of this process at its end."""
    return f"{name}.{_host()}-{os.getpid()}-{_start(os.getpid())}-{secrets.token_hex(4)}.openloop"


@contextmanager
def work_folder(place: Path) -> Generator[Path]:
    """A new folder of the name `place`, marked as this process's, that goes with the block."""
    sweep(place.parent)
    folder = place.with_name(marked(place.name))
    try:
        folder.mkdir(mode=0o700)
        yield folder
    finally:
        clear(folder)


def clear(folder: Path) -> None:
    """Remove a folder. A signal that ends the process meanwhile is raised when all of it is gone."""
    try:
        shutil.rmtree(folder, ignore_errors=True)
    except KeyboardInterrupt:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def sweep(folder: Path) -> None:
    """Remove what processes that are gone left in a folder; looked for once in the life of a process."""
    _swept(str(folder), os.getpid())


@cache
def _swept(folder: str, _process: int) -> None:
    remove_leftovers(Path(folder))


def remove_leftovers(folder: Path) -> None:
    """Remove what processes that are gone left in a folder; what cannot be removed is left to the next one."""
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if left_behind(entry.name):
                _remove(entry)


def left_behind(name: str) -> bool:
    """Whether a name is marked as that of a process of this host, and the process is gone."""
    found = OURS.fullmatch(name)
    return found is not None and found[1] == _host() and not _runs(int(found[2]), int(found[3]))


def _remove(entry: os.DirEntry[str]) -> None:
    if entry.is_dir(follow_symlinks=False):
        shutil.rmtree(entry.path, ignore_errors=True)
    else:
        with suppress(OSError):
            Path(entry.path).unlink()


# -- processes -----------------------------------------------------------------------------------------------


@cache
def _host() -> str:
    """The machine, and on Linux the numbering of its processes: containers have their own."""
    known = [platform.node()]
    with suppress(OSError):
        known.append(Path("/etc/machine-id").read_text(encoding="utf-8"))
    with suppress(OSError):
        known.append(str(Path("/proc/self/ns/pid").readlink()))
    return hashlib.blake2b("\n".join(known).encode(errors="surrogateescape"), digest_size=4).hexdigest()


def _runs(pid: int, start: int) -> bool:
    """Whether the process of this number that began at this time runs; where that is unknown, it does."""
    if os.name != "posix":
        return True
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:  # of another user
        pass
    now = _start(pid)
    return now in (start, 0) or start == 0


def _start(pid: int) -> int:
    """When a process began, in ticks since the machine did; -1 for one that ended and was not waited for, 0 unknown."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()  # a program's name may hold blanks
        return -1 if fields[0] in (b"Z", b"X") else int(fields[19])
    except (OSError, IndexError, ValueError):
        return 0
