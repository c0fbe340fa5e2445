"""Sizes of memory: parsed ("4 GiB"), written in words, and limited by a Spark driver."""

from __future__ import annotations

import re
from typing import Any

from openloop.errors import InputError
from openloop.support.arguments import is_whole

UNITS = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40, "p": 2**50}
GIVEN = re.compile(r"\s*(\d+(?:\.\d*)?)\s*([kmgtp]?)(?:i?b)?\s*", re.IGNORECASE)
RESULT = "spark.driver.maxResultSize"


def bytes_of(name: str, value: Any) -> int:
    """The bytes that a number, or a text such as "4 GiB", "512m" or "1g", means; `name` is whose value it is."""
    if is_whole(value) and value > 0:
        return int(value)
    found = GIVEN.fullmatch(value) if isinstance(value, str) else None
    if found is None or float(found[1]) <= 0:
        raise InputError(f'{name} must be a number of bytes or a text such as "4 GiB", got {value!r}.')
    return int(float(found[1]) * UNITS[found[2].lower()])


def written(size: float) -> str:
    """1.5 GiB, 12 MiB, 3 KiB."""
    unit = "GiB" if size >= 2**30 else "MiB" if size >= 2**20 else "KiB"
    return f"{size / UNITS[unit[0].lower()]:.3g} {unit}"


def driver_limit(session: Any) -> int | None:
    """How many bytes a result may have that comes to the driver of a Spark session; None: as many as there are."""
    given = str(session.conf.get(RESULT, "1g") or "1g")
    return None if given.strip().rstrip("bBkKmMgGtTpP") == "0" else bytes_of(RESULT, given)
