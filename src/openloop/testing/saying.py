"""How a contract check fails: an AssertionError that says what is violated."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

RTOL, ATOL = 1e-5, 1e-6  # scores are often of single precision


def require(holds: bool, message: str) -> None:  # noqa: FBT001, the condition is what it is about
    """Raise the message as an AssertionError unless the condition holds."""
    if not holds:
        raise AssertionError(message)


def check_same(name: str, what: str, wanted: Any, found: Any, when: str) -> None:
    """Refuse values that differ from those wanted; `when` completes the sentence."""
    a, b = np.asarray(wanted, np.float64), np.asarray(found, np.float64)
    if a.shape == b.shape and np.allclose(a, b, rtol=RTOL, atol=ATOL):
        return
    gap = float(np.abs(a - b).max()) if a.shape == b.shape else math.nan
    raise AssertionError(f"{name}: {what} differ by up to {gap:.3g} when {when}.")
