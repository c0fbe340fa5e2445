"""What is checked of the model that the propensities come from, beside the estimates."""

from __future__ import annotations

from typing import Any

from openloop.core.feedback import Feedback

MANY_ROWS = 5_000_000  # so many hold out enough cells in two folds: each is a refit


def check_of(propensities: Any, wanted: Any, rng: Any) -> Any:
    """The check of a propensity model on the log `wanted`, or `wanted` itself where it is a check; else None.

    Bare numbers cannot be refitted, and False says that no check is wanted.
    """
    from openloop.propensity.checks.checking import Check

    if isinstance(wanted, Check):
        return wanted
    if not hasattr(propensities, "fit") or not isinstance(wanted, Feedback):
        return None
    from openloop import propensity

    return propensity.check(propensities, wanted, folds=check_folds_of(len(wanted)), rng=rng)


def check_folds_of(rows: int) -> int:
    """In how many folds a check holds out so many rows."""
    return 5 if rows < MANY_ROWS else 2


def benchmarks_of(propensities: Any, log: Any) -> tuple[str, ...]:
    """How far leaving out a part of the propensity model moves p, in words."""
    if not hasattr(propensities, "fit") or not isinstance(log, Feedback) or len(log) >= MANY_ROWS:
        return ()
    from openloop.propensity.checks.benchmarks import benchmarks

    return tuple(str(found) for found in benchmarks(propensities, log))
