"""The ids of a model's rows, in their order, from what keeps them: arrays, mappings, vocabularies."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import numpy as np

from openloop.core.feedback import Array, Vocabulary
from openloop.errors import InputError, listing
from openloop.learners.model_files.packing import as_array


def row_ids(side: str, given: Any) -> Array | None:
    """One id per row; None where none were given. `side` is "users" or "items", the keyword that errors name.

    Beside arrays, lists and columns these are read: a mapping from id to position (LightFM, Cornac), a Vocabulary, an
    IdMap of RecTools, a vocabulary of LensKit, and a fitted LabelEncoder.
    """
    if given is None:
        return None
    if isinstance(given, Mapping):
        return _mapped(side, cast("Mapping[Any, Any]", given))
    ids: Any = _kept(given)
    if isinstance(ids, str) or not (hasattr(ids, "__len__") or hasattr(ids, "__array__")):
        raise InputError(
            f"wrap: {side} must be the ids of the rows, in their order, or a mapping from id to position, got "
            f"{type(given).__name__} {given!r:.60}; pass a list of ids."
        )
    if isinstance(ids, list | tuple) and len({isinstance(v, str) for v in ids}) > 1:  # NumPy would make text of both
        raise InputError(f"wrap: {side} has text and numbers, {listing(list(ids[:3]))} …; cast them to one type.")
    return as_array(ids)


def _kept(given: Any) -> Any:
    """What an object that maps ids to rows keeps of them, in order of row; any other object is itself."""
    if isinstance(given, Vocabulary):
        return given.ids
    if callable(getattr(given, "ids", None)) and hasattr(given, "number"):  # LensKit's Vocabulary
        return given.ids()
    for name in ("external_ids", "classes_"):  # RecTools' IdMap; scikit-learn's LabelEncoder
        if hasattr(given, name):
            return getattr(given, name)
    return given


def _mapped(side: str, given: Mapping[Any, Any]) -> Array:
    """The ids of a mapping {id: position} or {position: id}; one that may be either is refused."""
    ids, places = list(given), list(given.values())
    forward, backward = _are_positions(places), _are_positions(ids)
    if forward and backward and ids != places:
        raise InputError(
            f"wrap: {side} maps whole numbers to whole numbers, {listing(ids[:3])} … to {listing(places[:3])} …, "
            "and does not say which are ids and which positions; pass a list of ids in the order of the rows."
        )
    if not (forward or backward):
        raise InputError(
            f"wrap: {side} maps {len(ids):,} ids, and its values are not the positions 0 … {len(ids) - 1:,}, each "
            f"once, but like {listing(places[:3])}; pass a list of ids in the order of the rows."
        )
    values, order = (ids, places) if forward else (places, ids)
    ordered = np.empty(len(values), object)
    ordered[np.array(order, np.int64)] = values
    return np.asarray(ordered.tolist()) if all(not isinstance(v, str) for v in values) else ordered


def _are_positions(values: list[Any]) -> bool:
    whole = all(isinstance(v, int | np.integer) and not isinstance(v, bool) for v in values)
    return whole and bool(np.array_equal(np.sort(np.array(values, np.int64)), np.arange(len(values))))
