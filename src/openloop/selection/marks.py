"""What results depend on, as text that is the same in every process: values, arrays, learners, their code."""

from __future__ import annotations

import hashlib
import inspect
import sys
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any, cast

import numpy as np

from openloop.core.feedback import Array, Feedback
from openloop.errors import InputError

ASIDE = ("row", "input_rows", "dropped", "notes")  # of a log: how it was read
LIBRARY = ("openloop", "sklearn", "builtins")  # whose code is known by a version


def digest(text: str) -> str:
    """A short name for a text."""
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=20).hexdigest()


def mark(value: Any, what: str) -> str:
    """A value as text: equal texts, equal values. `what` names it where it has no such text."""
    if value is None or isinstance(value, bool | int | float | str):
        return repr(value)
    if isinstance(value, np.ndarray | np.generic):
        return _array(np.asarray(value), what)
    if isinstance(value, list | tuple):
        parts = (mark(part, f"{what}[{at}]") for at, part in enumerate(cast("list[Any]", value)))
        return f"{type(value).__name__}[{', '.join(parts)}]"
    if isinstance(value, Mapping):
        given = cast("Mapping[Any, Any]", value)
        parts = (f"{key!r}: {mark(given[key], f'{what}.{key}')}" for key in sorted(given, key=repr))
        return f"{{{', '.join(parts)}}}"
    if isinstance(value, np.random.Generator):
        return f"Generator{mark(value.bit_generator.state, what)}"
    return _object(value, what)


def log_mark(log: Feedback) -> str:
    """All of a log that a fit or an estimate may use."""
    return mark({f.name: getattr(log, f.name) for f in fields(log) if f.name not in ASIDE}, "log")


def _object(value: Any, what: str) -> str:
    if hasattr(value, "get_params") and not isinstance(value, type):
        return f"{_class(type(value))}{mark(value.get_params(deep=False), type(value).__name__)}"
    if is_dataclass(value) and not isinstance(value, type):
        return f"{_class(type(value))}{mark({f.name: getattr(value, f.name) for f in fields(value)}, what)}"
    if not isinstance(value, type) and hasattr(value, "columns") and hasattr(value, "to_numpy"):  # a table
        return f"table{mark([list(map(str, value.columns)), value.to_numpy()], what)}"
    raise InputError(
        f"select: checkpoint= must recognise {what} in a later call, and cannot recognise a {type(value).__name__}; "
        "give numbers, text, arrays or learners, or leave checkpoint= out."
    )


def _array(values: Array, what: str) -> str:
    if values.dtype.hasobject:
        return f"object{values.shape}{digest(mark(values.tolist(), what))}"
    content = hashlib.blake2b(np.ascontiguousarray(values).tobytes(), digest_size=20).hexdigest()
    return f"{values.dtype.str}{values.shape}{content}"


@cache
def _class(kind: type) -> str:
    """A class by its name, and by the text of the modules that define it where these have no version of ours."""
    modules = {base.__module__ for base in kind.__mro__} - set(LIBRARY)
    others = sorted(name for name in modules if name.partition(".")[0] not in LIBRARY)
    return f"{kind.__module__}.{kind.__qualname__}{[digest(_text(name, kind)) for name in others]}"


def _text(module: str, kind: type) -> str:
    try:
        return inspect.getsource(sys.modules[module])
    except (OSError, TypeError, KeyError) as error:
        raise InputError(
            f"select: checkpoint= must see whether the code of {kind.__name__} has changed, and {module} is not a "
            "file; define the learner in a file, or leave checkpoint= out."
        ) from error
