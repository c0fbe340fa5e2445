"""Arguments as the fields of a noun, listed once; without numpy, which slows `--help`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from inspect import signature
from typing import Any


def fields_of(kind: type[Any], given: Any) -> dict[str, Any]:
    """Those of the given values that are fields of a dataclass; given as a mapping, or as another dataclass."""
    if not isinstance(given, Mapping):
        given = {field.name: getattr(given, field.name) for field in fields(given)}
    return {field.name: given[field.name] for field in fields(kind) if field.name in given}


def fields_named(kind: type[Any]) -> list[str]:
    """The names of a dataclass's fields."""
    return [field.name for field in fields(kind)]


def changed(function: Callable[..., Any], given: Mapping[str, Any]) -> list[str]:
    """The keywords of a function whose values are not its defaults."""
    known = {name: p.default for name, p in signature(function).parameters.items() if p.kind is p.KEYWORD_ONLY}
    return [name for name, default in known.items() if not _same(given[name], default)]


def _same(value: Any, default: Any) -> bool:
    """Whether a value is a default; an array is none, and is not compared with one."""
    return value is default or (type(value) is type(default) and bool(value == default))
