"""How much of a log is held out, and where time cuts it: the latest rows, or those from a date on."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any

import numpy as np
import numpy.typing as npt

from openloop.data.values import EPOCH
from openloop.errors import EmptyError, InputError, quoted
from openloop.support.arguments import is_whole
from openloop.support.wording import counted, percent

Test = float | str | date
Times = npt.NDArray[Any]
Mask = npt.NDArray[np.bool_]

# Largest times of logs of this century, and how many of them make a second.
UNITS = ((1e11, 1), (1e14, 1_000), (1e17, 1_000_000), (np.inf, 1_000_000_000))


def count_of(test: float, n: int, noun: str) -> int:
    """How many of n are held out: `test` itself, or that fraction of n."""
    whole = is_whole(test)
    if isinstance(test, bool) or not (test > 0 and (whole or test < 1)):
        raise InputError(f"test={test}: give a fraction between 0 and 1, or a whole number of {noun}.")
    m = int(test) if whole else round(test * n)
    if not 0 < m < n:
        empty = "test" if m == 0 else "train"
        msg = f"split: test={test} of {n:,} {noun} leaves none for {empty}; each part needs one: change test."
        raise EmptyError(msg)
    return m


def cut(time: Times, test: Test) -> Mask:
    """The rows of the test part: the latest `test` of them, a fraction or a number, or those from a date on.

    Rows as late as the latest of train stay there, so no time is on both sides.
    """
    if isinstance(test, str | date):
        return _from_date(time, test)
    n = len(time)
    m = count_of(test, n, "rows")
    return time > np.partition(time, n - m - 1)[n - m - 1]


def cut_note(time: Times, held: Mask) -> str:
    """The cut in words."""
    if not held.any():
        return ""
    share = percent(float(held.mean()))
    return (
        f"split by time: train has the rows before {in_words(time, time[held].min())}, test the "
        f"{counted(int(held.sum()), 'row')} from then on, {share}; models must have been trained on rows before it"
    )


def _from_date(time: Times, test: str | date) -> Mask:
    day = _parsed(test)
    per_second = _per_second(time)
    if per_second is None:
        raise InputError(
            f"test={quoted(str(test))}: a date divides times that count from 1970, and these go from {time.min():g} to "
            f"{time.max():g}; give a fraction of the rows."
        )
    held = time >= day.timestamp() * per_second
    if held.all() or not held.any():
        part = "train" if held.all() else "test"
        span = f"from {in_words(time, time.min())} to {in_words(time, time.max())}"
        raise EmptyError(
            f"split: test={quoted(str(test))} leaves no row for {part}: the log goes {span}; choose a date there."
        )
    return held


def _parsed(test: str | date) -> datetime:
    """The moment that a date begins, in UTC where it names no zone."""
    if not isinstance(test, str):
        found = test if isinstance(test, datetime) else datetime(test.year, test.month, test.day)  # noqa: DTZ001
    else:
        try:
            found = datetime.fromisoformat(test)
        except ValueError as error:
            known = "a fraction between 0 and 1, a whole number of rows, or a date as 2024-03-01"
            raise InputError(f"test={quoted(test)}: give {known}.") from error
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)


def _per_second(time: Times) -> int | None:
    """How many of the unit of these times make a second, by their size; None where they do not count from 1970."""
    largest = float(np.max(time))
    return None if largest < EPOCH else next(per_second for limit, per_second in UNITS if largest < limit)


def in_words(time: Times, moment: Any) -> str:
    """A moment as date and time in UTC, or as the number that it is."""
    per_second = _per_second(time)
    if per_second is None:
        return f"{moment:g}"
    return datetime.fromtimestamp(float(moment) / per_second, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
