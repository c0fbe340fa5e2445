"""Arguments as the fields of a noun, so that nobody lists them twice."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any


def fields_of(kind: type[Any], given: Any) -> dict[str, Any]:
    """Those of the given values that are fields of a dataclass; given as a mapping, or as another dataclass."""
    values: Mapping[str, Any] = given if isinstance(given, Mapping) else _values(given)
    return {field.name: values[field.name] for field in fields(kind) if field.name in values}


def _values(noun: Any) -> dict[str, Any]:
    return {field.name: getattr(noun, field.name) for field in fields(noun)}
