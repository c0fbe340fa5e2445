"""Plain values as dataclasses: each is checked against its field's annotation; null is NaN for a number."""

from __future__ import annotations

import math
import types
from collections.abc import Callable
from dataclasses import MISSING, Field, fields
from functools import cache
from typing import Any, Literal, NoReturn, TypeVar, Union, get_args, get_origin, get_type_hints

from openloop.errors import FormatError, InputError, quoted

T = TypeVar("T", bool, int, float, str, dict[str, Any], list[Any])

SCALARS: dict[Any, tuple[str, tuple[type, ...]]] = {
    bool: ("true or false", (bool,)), int: ("a whole number", (int,)), float: ("a number", (int, float)),
    str: ("text", (str,)), dict: ("an object", (dict,)), list: ("a list", (list,)),
}  # fmt: skip
INFINITE = {"infinite": math.inf, "-infinite": -math.inf}  # words for the numbers that JSON lacks


def fitting(kind: type[T], value: Any, where: str) -> Any:
    """The value as one of a simple kind; `where` begins a message, as "audit.json: level"."""
    told, kinds = SCALARS[kind]
    if not isinstance(value, kinds) or (isinstance(value, bool) and kind is not bool):
        refuse(where, f"must be {told}", value)
    return value


def refuse(where: str, rule: str, value: Any) -> NoReturn:
    """Raise an error about a value; of an object or a list it gives only the size."""
    sizes = {dict: "an object with {:,} keys", list: "a list of {:,}"}
    got = sizes[type(value)].format(len(value)) if type(value) in sizes else "null" if value is None else quoted(value)
    raise FormatError(f"{where} {rule}, got {got}; write the file again.")


def part(record: Any, name: str, where: str) -> tuple[Any, str]:
    """What a key of an object holds, and where that is."""
    fitting(dict, record, where)
    if name not in record:
        raise FormatError(f"{where} lacks the key {name!r}; write the file again.")
    return record[name], below(where, name)


def below(where: str, name: str) -> str:
    """The place of a key: "audit.json: verdict.level"."""
    return f"{where}{'' if where.endswith(' ') else '.'}{name[:60]}"


def built(kind: Any, value: Any, where: str) -> Any:
    """The value as `kind`: a dataclass, a tuple, a dict, a choice or a simple value; keys that it lacks are ignored."""
    if kind is Any:
        simple = value is None or isinstance(value, bool | int | float | str)
        return value if simple else refuse(where, "must be a single value", value)
    if kind is float and value is None:
        return math.nan  # JSON has no other way to say it
    if kind is float:
        return INFINITE[value] if isinstance(value, str) and value in INFINITE else fitting(float, value, where)
    if kind in SCALARS:
        return fitting(kind, value, where)
    return _MAKERS.get(get_origin(kind), _dataclass)(kind, value, where)


def _union(kind: Any, value: Any, where: str) -> Any:
    (inner,) = (k for k in get_args(kind) if k is not type(None))
    return None if value is None else built(inner, value, where)


def _literal(kind: Any, value: Any, where: str) -> Any:
    choices = get_args(kind)
    return value if value in choices else refuse(where, f"must be {' or '.join(map(repr, choices))}", value)


def _tuple(kind: Any, value: Any, where: str) -> Any:
    items, kinds = fitting(list, value, where), get_args(kind)
    if kinds[-1] is ...:
        kinds = (kinds[0],) * len(items)
    if len(kinds) != len(items):
        refuse(where, f"must have {len(kinds)} values", value)
    return tuple(built(k, item, f"{where}[{n}]") for n, (k, item) in enumerate(zip(kinds, items, strict=True)))


def _dict(kind: Any, value: Any, where: str) -> Any:
    key, inner = get_args(kind)
    held = fitting(dict, value, where).items()
    return {_key(key, name, where): built(inner, item, below(where, name)) for name, item in held}


def _key(kind: Any, name: str, where: str) -> Any:
    if kind is str:
        return name
    try:
        return kind(name)
    except ValueError:
        refuse(where, "must have numbers as keys", name)


def _dataclass(kind: Any, value: Any, where: str) -> Any:
    held = fitting(dict, value, where)
    found = {
        f.name: built(hint, *part(held, f.name, where)) for f, hint in _hints(kind) if f.name in held or _needed(f)
    }
    try:
        return kind(**found)
    except InputError as error:  # what its constructor refuses
        raise FormatError(f"{where}: {error}") from error


def _needed(f: Field[Any]) -> bool:
    return f.default is MISSING and f.default_factory is MISSING


@cache
def _hints(kind: type) -> tuple[tuple[Field[Any], Any], ...]:
    hints = get_type_hints(kind)
    return tuple((f, hints[f.name]) for f in fields(kind) if f.init)


_MAKERS: dict[Any, Callable[[Any, Any, str], Any]] = {
    Union: _union, types.UnionType: _union, Literal: _literal, tuple: _tuple, dict: _dict,
}  # fmt: skip
