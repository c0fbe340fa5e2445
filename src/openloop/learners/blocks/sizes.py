"""Sizes: memory as it is given, "4 GiB", and told, that of this machine, and the parts that fits are cut into."""

from __future__ import annotations

import os
import re
from typing import Any

from openloop.errors import InputError
from openloop.support.arguments import is_whole

# On Spark.
SPARK_ROWS = 1_000_000  # or more in a block: a task costs Spark a tenth of a second of its own
ON_DRIVER = 512 * 2**20  # sums of all blocks together that the driver adds itself; above, executors do
AT_ONCE = 256 * 2**20  # sums that an executor then adds at a time

# From disk.
BATCH = 4_000_000  # rows that are dealt to blocks at a time
ROW_BYTES, USER_BYTES = 64, 64  # what a row takes while it is dealt and sorted, and a user's id while it is looked up

UNITS = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}
WRITTEN = re.compile(r"\s*(\d+(?:\.\d*)?)\s*([kmgt]?)(?:i?b)?\s*", re.IGNORECASE)


def bytes_of(name: str, value: Any) -> int:
    """The bytes that a number, or a text such as "4 GiB", "512m" or "1g", means; `name` is whose value it is."""
    if is_whole(value) and value > 0:
        return int(value)
    found = WRITTEN.fullmatch(value) if isinstance(value, str) else None
    if found is None or float(found[1]) <= 0:
        raise InputError(f'{name} must be a number of bytes or a text such as "4 GiB", got {value!r}.')
    return int(float(found[1]) * UNITS[found[2].lower()])


def told(size: float) -> str:
    """1.5 GiB, 12 MiB."""
    unit = "GiB" if size >= 2**30 else "MiB"
    return f"{size / UNITS[unit[0].lower()]:.3g} {unit}"


def physical() -> int:
    """The memory of this machine."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def piece_count(items: int, whole: int, on_driver: int, at_once: int) -> int:
    """Into how many ranges of items sums of `whole` bytes are cut to be added on executors; 1: the driver adds them."""
    return 1 if whole <= on_driver else min(items, -(-whole // at_once))
