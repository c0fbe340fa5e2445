"""Copies of learners for a part of the rows: λ scaled to the part, and without threads and bars of their own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from openloop.errors import InputError, listing
from openloop.support.arguments import is_number


def for_rows(learner: Any, share: float, **setting: Any) -> Any:
    """A fresh copy for a share of the rows: λ·share where penalties are beside a sum over rows, in nested ones too."""
    from sklearn.base import clone

    fresh: Any = clone(learner)
    fresh.set_params(**setting)
    for each in _nested(fresh):
        whole = each.get_params(deep=False)
        scaled = {name: whole[name] * share for name in _penalties(each) if _is_penalty(whole[name])}
        each.set_params(**scaled)
    return fresh


def quiet(learner: Any) -> Any:
    """A fresh copy that learns on one thread and shows no bar, nor do those in it."""
    from sklearn.base import clone

    fresh: Any = clone(learner)
    for each in _nested(fresh):
        known = each.get_params(deep=False)
        each.set_params(**{name: value for name, value in (("threads", 1), ("progress", False)) if name in known})
    return fresh


def _nested(value: Any) -> list[Any]:
    """The learner and those among its parameters, alone or in lists and tuples."""
    if isinstance(value, list | tuple):
        return [each for part in value for each in _nested(part)]  # pyright: ignore[reportUnknownVariableType]
    if not hasattr(value, "get_params") or isinstance(value, type):
        return []
    return [value, *(each for part in value.get_params(deep=False).values() for each in _nested(part))]


def _penalties(learner: Any) -> Sequence[str]:
    """The learner's parameters that are λ beside a sum over rows."""
    named, known = getattr(learner, "penalties_beside_row_sum", ()), learner.get_params(deep=False)
    if isinstance(named, str) or not set(named) <= set(known):
        raise InputError(
            f"{type(learner).__name__}.penalties_beside_row_sum must be a tuple of its parameters "
            f"{listing(list(known))}, got {named!r}; name some of these."
        )
    return named


def _is_penalty(value: Any) -> bool:
    return is_number(value) and value > 0
