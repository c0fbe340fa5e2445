"""Frames at the door: opened on their engine, their columns named, their ids of one type."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import narwhals as nw

from openloop.errors import ColumnError, InputError, did_you_mean
from openloop.sources.predictions import ITEM, USER


def opened(what: str, native: Any) -> Any:
    """A lazy frame where the engine has them; pyarrow, which lacks windows, becomes Polars."""
    try:
        frame: Any = nw.from_native(native)
    except TypeError as error:
        raise InputError(
            f"evaluate: {what} is a {type(native).__name__}, not a dataframe; with a frame as the log all else is "
            "frames of its engine, or read the log with ol.read."
        ) from error
    if frame.implementation.is_pyarrow():
        import polars as pl

        frame = nw.from_native(pl.DataFrame(native))
    return frame.lazy() if frame.implementation.is_polars() else frame


def named(what: str, given: str | None, columns: Sequence[str], options: tuple[str, ...]) -> str:
    """The column that was named, or the first of the obvious names."""
    if given is not None and given in columns:
        return given
    if given is None:
        found = next((option for option in options if option in columns), None)
        if found is not None:
            return found
    wanted = given or options[0]
    raise ColumnError(f"{what}: there is no column {wanted!r}.{did_you_mean(wanted, columns)}")


def id_kinds(table: Any, *columns: str) -> tuple[str, ...]:
    """Whether the ids of each column are integers or text."""
    schema = table.collect_schema()
    return tuple("integers" if schema[column].is_integer() else "text" for column in columns)


def tables_of(model: Any) -> Sequence[Any]:
    """The frames of a model that is one or two of them."""
    return model if isinstance(model, list | tuple) else [model]  # pyright: ignore[reportUnknownVariableType]


def log_columns(models: Mapping[str, Any]) -> list[str]:
    """The columns of the log that models are."""
    given = [m.values() if isinstance(m, Mapping) else (m,) for m in models.values() if isinstance(m, str | Mapping)]
    return [column for columns in given for column in columns]


def id_types(log: Any, names: Mapping[str, str], models: Mapping[str, Any], exclude: Any) -> tuple[Any, ...]:
    """What user and item ids are cast to: nothing where all frames agree, else 64-bit integers or text."""
    schemas = [log.collect_schema()]
    given = [(f"model {name!r}", frame) for name, model in models.items() for frame in tables_of(model)]
    for what, frame in (*given, ("exclude", exclude)):
        if frame is not None and not isinstance(frame, str | Mapping):
            schemas.append(opened(what, frame).collect_schema())
    types: list[Any] = []
    for key, options in (("u", USER), ("i", ITEM)):
        found = [next((s[c] for c in (names[key], *options) if c in s), None) for s in schemas]
        kinds = {kind for kind in found if kind is not None}
        plain = len(kinds) == 1 and all(kind.is_integer() or kind == nw.String for kind in kinds)
        types.append(None if plain else nw.Int64() if all(k.is_integer() for k in kinds) else nw.String())
    return tuple(types)
