"""What an argument may be: whole numbers, numbers, levels and seeds."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from openloop.errors import InputError

DIGITS = 10  # of 2³¹


def is_whole(value: Any) -> bool:
    """Whether it is an integer, and no boolean."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def is_count(text: str) -> bool:
    """Whether a text writes a whole number from 1 on that 32 signed bits hold."""
    return text.isascii() and text.isdigit() and len(text) <= DIGITS and 1 <= int(text) < 2**31


def are_counts(given: Any) -> bool:
    """Whether it is two whole numbers above 0."""
    try:
        first, second = (operator.index(value) for value in given)
    except (TypeError, ValueError):
        return False
    return first > 0 and second > 0


def is_number(value: Any) -> bool:
    """Whether it is a real number, and no boolean."""
    return is_whole(value) or isinstance(value, float | np.floating)


def generator(name: str, rng: Any) -> np.random.Generator:
    """The generator of a seed, or the one given; `name` is whose argument it is."""
    if isinstance(rng, np.random.Generator):
        return rng
    if is_whole(rng) and rng >= 0:
        return np.random.default_rng(rng)
    raise InputError(f"{name}: rng must be a seed (an integer from 0) or a numpy Generator, got {rng!r}; pass rng=0.")


def check_level(name: str, level: float) -> None:
    """Refuse a level that is none; `name` is whose argument it is."""
    if not 0 < level < 1:
        raise InputError(f"{name}: level must lie strictly between 0 and 1, got {level}.")
