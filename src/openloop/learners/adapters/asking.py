"""Scores of pairs from foreign code: asked in blocks, by one thread at a time, with its answers checked."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from openloop.core.feedback import Array
from openloop.core.protocols import asking, on_host
from openloop.errors import PredictionError

BLOCK = 2**18  # pairs that are asked about at once

Pairs = Callable[[Array, Array], Any]  # users and items, pair by pair → a score of each

_LOCK = threading.RLock()  # a model may not be safe to ask from several threads


def answers(what: str, pairs: Pairs, user: Array, item: Array) -> Array:
    """The score of each pair (n,); what goes wrong is an error that begins with `what`."""
    found = [
        _block(what, pairs, user[start : start + BLOCK], item[start : start + BLOCK])
        for start in range(0, len(user), BLOCK)
    ]
    return np.concatenate(found) if found else np.empty(0)


def answered_grid(what: str, pairs: Pairs, users: Array, items: Array) -> Array:
    """The scores of all items for these users, (B, I)."""
    every = np.repeat(users, len(items)), np.tile(items, len(users))
    return answers(what, pairs, *every).reshape(len(users), len(items))


def asked(what: str, about: str, function: Callable[..., Any], *given: Array) -> Array:
    """What a function of others returns, as numbers."""
    with _LOCK, asking(what, about):
        found = on_host(function(*given))
        return found if found.dtype.kind == "f" else found.astype(np.float64)


def _block(what: str, pairs: Pairs, user: Array, item: Array) -> Array:
    found = asked(what, f"{len(user):,} pairs", pairs, user, item)
    if found.shape == (len(user), 1):
        return found[:, 0]
    if found.shape != (len(user),):
        raise PredictionError(
            f"{what}: gave shape {found.shape} for {len(user):,} users and as many items; return one score per pair."
        )
    return found
