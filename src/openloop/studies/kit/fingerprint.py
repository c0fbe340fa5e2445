"""What a trial's numbers depend on beside its arrays and settings: the code that it runs, and the libraries.

Of a trial, the functions that it calls in studies, and the constants that they name, are digested as they are loaded,
so that words and comments beside them change nothing. All computing modules of openloop are digested whole.
"""

from __future__ import annotations

import hashlib
import platform
import sys
import sysconfig
from collections.abc import Callable, Mapping
from functools import cache, partial
from importlib import metadata
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

from openloop.errors import InputError

LIBRARIES = ("numpy", "scipy", "numba", "scikit-learn", "polars", "narwhals", "cornac", "torch")
PACKAGE = Path(__file__).parents[2]
# Of these only what a trial itself calls can change its numbers; of data sets it sees the arrays.
OTHER = ("cli", "reporting", "studies", "datasets")
INSTALLED = tuple(sysconfig.get_paths()[name] for name in ("stdlib", "purelib", "platlib"))
PLAIN = (type(None), type(...), bool, int, float, complex, str, bytes, np.generic, np.dtype)


def digest(text: str) -> str:
    """A short name for a text."""
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


@cache
def versions() -> tuple[str, ...]:
    """The versions of what computes; another one may round otherwise."""
    return (f"python {platform.python_version()}", *(f"{name} {_version(name)}" for name in LIBRARIES))


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "absent"


def _package() -> str:
    files = sorted(file for file in PACKAGE.rglob("*.py") if not set(OTHER) & set(file.relative_to(PACKAGE).parts))
    return digest("".join(file.read_text(encoding="utf-8") for file in files))


COMPUTING = _package()  # as this process loads it, not as it may be edited later


def code_digest(trial: Callable[..., Any]) -> str:
    """The code that a trial runs: its own functions with what they name, and every computing module of openloop."""
    found: dict[str, str] = {}
    _function(trial, found)
    return digest(COMPUTING + "".join(f"{name}={found[name]};" for name in sorted(found)))


def _function(function: Any, found: dict[str, str]) -> None:
    name = _name(function)
    if name in found:
        return
    found[name] = _code(function.__code__, found)
    found[f"{name}()"] = _constant([function.__defaults__, function.__kwdefaults__], found)
    names = _names(function.__code__)
    for used in sorted(names & set(function.__globals__)):
        found[f"{name}.{used}"] = _named(function.__globals__[used], names, found)


def _named(value: Any, names: set[str], found: dict[str, str]) -> str:
    """What a function names: of a module, that of its names which the function uses too; else the value itself."""
    if not isinstance(value, ModuleType):
        return _constant(value, found)
    used = sorted(names & set(vars(value))) if _own(value) else []
    return str([(name, _named(getattr(value, name), names, found)) for name in used])


def _callable(value: Any, found: dict[str, str]) -> str:
    """The name of a function or class; if it is the study's own, its code is found too: of a class, its methods."""
    if isinstance(value, partial):
        return _constant([value.func, value.args, value.keywords], found)
    module = getattr(value, "__module__", None) or ""
    if _own(sys.modules.get(module)):
        parts = vars(value).values() if isinstance(value, type) else [getattr(value, "__wrapped__", value)]
        for part in parts:
            inner = part.fget if isinstance(part, property) else getattr(part, "__func__", part)
            if isinstance(inner, FunctionType):
                _function(inner, found)
    return _name(value)


def _name(value: Any) -> str:
    module = getattr(value, "__module__", "")
    module = "__main__" if module == "__mp_main__" else module  # a script, in its own process and in a worker
    return f"{module}.{getattr(value, '__qualname__', type(value).__qualname__)}"


def _own(module: ModuleType | None) -> bool:
    """Whether a module is a study's: neither a computing module of openloop nor installed."""
    file = getattr(module, "__file__", None)
    if module is None or file is None:
        return module is not None and module.__name__ == "__main__"
    if PACKAGE in Path(file).parents:
        return Path(file).relative_to(PACKAGE).parts[0] == "studies"
    return not file.startswith(INSTALLED)


def _code(code: CodeType, found: dict[str, str]) -> str:
    """A function as it is loaded, without lines and file."""
    consts = [_code(c, found) if isinstance(c, CodeType) else _constant(c, found) for c in code.co_consts]
    shape = (code.co_argcount, code.co_kwonlyargcount, code.co_posonlyargcount, code.co_flags)
    return repr((code.co_code, consts, code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars, shape))


def _names(code: CodeType) -> set[str]:
    inner = (const for const in code.co_consts if isinstance(const, CodeType))
    return set(code.co_names).union(*(_names(part) for part in inner))


def _constant(value: Any, found: dict[str, str]) -> str:
    """A value as text that is the same in every process."""
    if isinstance(value, PLAIN):
        return repr(value)
    if isinstance(value, np.ndarray):
        return f"{value.dtype.str}{value.shape}{digest(value.tobytes().hex())}"
    if isinstance(value, Mapping):
        return str([(_constant(k, found), _constant(v, found)) for k, v in value.items()])  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, list | tuple):
        return str([_constant(part, found) for part in value])  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, frozenset | set):
        return str(sorted(_constant(part, found) for part in value))  # pyright: ignore[reportUnknownVariableType]
    if callable(value):
        return _callable(value, found)
    raise InputError(f"a trial may name plain constants, arrays and functions, got {value!r}; pass it as given.")
