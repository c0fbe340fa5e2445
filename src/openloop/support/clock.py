"""The clock of results: dates and durations. $SOURCE_DATE_EPOCH fixes both."""

from __future__ import annotations

import os
import time
from datetime import UTC, datetime

from openloop.errors import InputError, quoted

VARIABLE = "SOURCE_DATE_EPOCH"
LAST = 253_402_300_799  # of the year 9999


def fixed() -> int | None:
    """The seconds since 1970 that the clock is fixed at; None where it runs."""
    given = os.environ.get(VARIABLE, "")
    if given == "":
        return None
    if not (given.isascii() and given.isdecimal() and len(given) <= 12 and int(given) <= LAST):
        raise InputError(f"${VARIABLE} must be whole seconds since 1970, got {quoted(given)}; unset it, or set it so.")
    return int(given)


def today() -> str:
    """The date and time of a result, in UTC, to the second."""
    at = fixed()
    found = datetime.now(UTC) if at is None else datetime.fromtimestamp(at, UTC)
    return found.isoformat(timespec="seconds")


def start() -> float:
    """When work begins."""
    return time.perf_counter()


def seconds_since(began: float) -> float:
    """How long work took since its `start`; 0 where the clock is fixed."""
    return time.perf_counter() - began if fixed() is None else 0.0
