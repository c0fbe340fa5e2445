"""Frames at the door: opened on their engine, their columns chosen, their ids of one type."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import narwhals as nw

from openloop.data.columns import Column
from openloop.errors import InputError, quoted
from openloop.sources.rules import SIDES, id_columns
from openloop.support.frames import is_frame, lazy

PAIR = ("u", "i")


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineTable:
    """A frame on its engine, under the name that errors give it, and which of its columns are user and item."""

    name: str
    frame: Any
    columns: tuple[str, ...]
    ids: tuple[str, ...] = ()
    note: str = ""

    @property
    def id_types(self) -> tuple[Any, ...]:
        """The types of the ids."""
        schema = self.frame.collect_schema()
        return tuple(schema[column] for column in self.ids)

    def keys(self, types: Sequence[Any]) -> list[Any]:
        """The ids as u and i, cast to these types where they are given."""
        return [
            (nw.col(column) if kind is None else nw.col(column).cast(kind)).alias(key)
            for column, kind, key in zip(self.ids, types, PAIR, strict=True)
        ]


def opened(what: str, native: Any) -> EngineTable:
    """A lazy frame where the engine has them; pyarrow, which lacks windows, becomes Polars."""
    if not is_frame(native):
        raise InputError(
            f"evaluate: {what} is a {type(native).__name__}, not a dataframe; with a frame as the log all else is "
            "frames of its engine, or read the log with ol.read."
        )
    frame = lazy(native)
    return EngineTable(name=what, frame=frame, columns=tuple(frame.collect_schema().names()))


def beside(what: str, native: Any, log: EngineTable, named: Mapping[str, Column]) -> EngineTable:
    """Another frame, of the log's engine and with ids of the log's kinds; its columns may be called as the log's."""
    table = opened(what, native)
    if table.frame.implementation != log.frame.implementation:
        raise InputError(
            f"{what} is in {table.frame.implementation}, the log in {log.frame.implementation}; bring both into one."
        )
    chosen = id_columns(table, named)
    table = replace(table, ids=tuple(chosen[side] for side in SIDES))
    kinds, known = (tuple("integers" if t.is_integer() else "text" for t in x.id_types) for x in (table, log))
    for side, own, theirs in zip(SIDES, kinds, known, strict=True):
        if own != theirs:
            raise InputError(f"{what}: its {side} ids are {own}, the log's {theirs}; cast one side.")
    return table


def common_types(tables: Sequence[EngineTable]) -> tuple[Any, ...]:
    """What user and item ids are cast to: nothing where all tables agree, else 64-bit integers or text."""
    for table in tables:
        for column, kind in zip(table.ids, table.id_types, strict=True):
            if kind == nw.Object:  # cast to text, 1 and "1" would become one id
                raise InputError(
                    f"evaluate: {table.name}: ids in column {quoted(column)} are Python objects of several types; cast "
                    "them to integers or text."
                )
    found: list[Any] = []
    for types in zip(*(table.id_types for table in tables), strict=True):
        kinds = set(types)
        plain = len(kinds) == 1 and all(kind.is_integer() or kind == nw.String for kind in kinds)
        found.append(None if plain else nw.Int64() if all(k.is_integer() for k in kinds) else nw.String())
    return tuple(found)


def log_columns(models: Mapping[str, Any]) -> list[str]:
    """The columns of the log that models are."""
    given = [m.values() if isinstance(m, Mapping) else (m,) for m in models.values() if isinstance(m, str | Mapping)]
    return [column for columns in given for column in columns]
