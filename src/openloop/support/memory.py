"""Memory that this process may have: the machine's, or what a control group or `ulimit` leaves of it."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import NamedTuple

ROOT = Path("/")
# Files of a control group of version 1 or 2: limits, what is used, and the pages in that which can be dropped.
V1 = (("memory.limit_in_bytes",), "memory.usage_in_bytes", "total_inactive_file")
V2 = (("memory.max", "memory.high"), "memory.current", "inactive_file")
ULIMITS = {"RLIMIT_AS": 0, "RLIMIT_DATA": 5}  # the field of /proc/self/statm that counts against each, in pages


class Limit(NamedTuple):
    """Bytes that may be used, and those that are."""

    most: float
    used: float


def total_memory(root: Path = ROOT) -> int | None:
    """All memory that this process may have; None where the system does not say."""
    found = [limit.most for limit in limits(root)]
    try:
        found.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, OSError, ValueError):
        found.append(math.inf)
    return None if math.isinf(min(found)) else int(min(found))


def free_memory(root: Path = ROOT) -> float:
    """Memory that this process may still take, files that the system can drop included; infinity where unknown."""
    return min([_available(root), *(max(0.0, limit.most - limit.used) for limit in limits(root))])


def limits(root: Path = ROOT) -> list[Limit]:
    """The limits of every control group that this process is in, and of `ulimit -v` and `-d`."""
    return [*_control_groups(root), *_ulimits(root)]


def _available(root: Path) -> float:
    for line in _lines(root / "proc/meminfo"):
        name, _, rest = line.partition(":")
        if name == "MemAvailable":
            return _number(rest.split()[0]) * 1024
    return math.inf


# -- control groups ----------------------------------------------------------------------------------------------------


def _control_groups(root: Path) -> Iterator[Limit]:
    """A line of /proc/self/cgroup is ID:CONTROLLERS:PATH, without controllers in version 2."""
    mounted = root / "sys/fs/cgroup"
    for line in _lines(root / "proc/self/cgroup"):
        _, controllers, path = (*line.split(":", 2), "", "")[:3]
        if controllers == "":
            yield from _nested(mounted, path, *V2)
        elif "memory" in controllers.split(","):
            yield from _nested(mounted / "memory", path, *V1)


def _nested(mounted: Path, path: str, names: tuple[str, ...], used: str, dropped: str) -> Iterator[Limit]:
    """A group and its enclosing groups, each with its limits; a container sees its group as the outermost."""
    inner = PurePosixPath(path.lstrip("/") or ".")
    for group in dict.fromkeys([inner, *inner.parents]):
        held = _value(mounted / group / used)
        cached = _value(mounted / group / "memory.stat", dropped)
        for name in names:
            most = _value(mounted / group / name)
            if most is not None:
                yield Limit(most, max(0.0, (held or 0.0) - (cached or 0.0)))


def _value(file: Path, name: str | None = None) -> float | None:
    """The number in a file, or the one beside a name in it; None where there is none, as "max" is."""
    for line in _lines(file):
        words = line.split()
        if words and (name is None or words[0] == name):
            found = _number(words[-1])
            return None if math.isinf(found) else found
    return None


# -- ulimit ------------------------------------------------------------------------------------------------------------


def _ulimits(root: Path) -> Iterator[Limit]:
    try:
        import resource
    except ImportError:  # Windows has none
        return
    pages = (*_lines(root / "proc/self/statm"), "")[0].split()
    for name, field in ULIMITS.items():
        most, _ = resource.getrlimit(getattr(resource, name))
        if most != resource.RLIM_INFINITY:
            used = _number(pages[field]) * os.sysconf("SC_PAGE_SIZE") if len(pages) > field else 0.0
            yield Limit(float(most), used)


def _lines(file: Path) -> list[str]:
    try:
        return file.read_text(encoding="ascii").splitlines()
    except (OSError, UnicodeDecodeError):
        return []


def _number(text: str) -> float:
    return float(text) if text.isdecimal() else math.inf
