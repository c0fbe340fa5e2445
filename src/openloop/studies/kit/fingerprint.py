"""What a trial's numbers depend on beside its arrays and settings: the code that it runs, and the libraries.

Of a trial, the functions that it calls in studies, and the constants that they name, are digested as they are loaded,
so that words and comments beside them change nothing. Of openloop, the modules that these functions name are digested
whole, with all that they import, but for modules that only say, ask, read or write.
"""

from __future__ import annotations

import ast
import hashlib
import platform
import sys
import sysconfig
from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial
from importlib import metadata
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

from openloop.errors import InputError

LIBRARIES = ("numpy", "scipy", "numba", "scikit-learn", "polars", "narwhals", "cornac", "torch")
PACKAGE = Path(__file__).parents[2]
# Modules whose text changes no number: of data sets a trial sees the arrays, of studies its own functions.
COMPUTE_NOTHING = (
    "cli", "commands", "reporting", "studies", "testing", "errors", "data.datasets", "learners.model_files",
    "support.atomic", "support.lazy", "support.progress", "support.version", "support.wording",
    "support.forking", "support.leftovers", "support.system_errors", "kernels.caching",
)  # fmt: skip
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


# -- modules of openloop -------------------------------------------------------------------------------------


def _module_name(file: Path) -> str:
    return ".".join(("openloop", *file.relative_to(PACKAGE).with_suffix("").parts)).removesuffix(".__init__")


def _computing() -> dict[str, str]:
    """The text of every module that may compute, by its name."""
    aside = tuple(f"openloop.{name}." for name in COMPUTE_NOTHING)
    texts = {_module_name(file): file.read_text(encoding="utf-8") for file in PACKAGE.rglob("*.py")}
    return {name: text for name, text in texts.items() if not f"{name}.".startswith(aside)}


TEXTS = _computing()  # as this process loads them, not as they may be edited later


@cache
def _imports(module: str) -> frozenset[str]:
    """The computing modules that a module imports, at its top or inside a function."""
    nodes = ast.walk(ast.parse(TEXTS[module]))
    found = (name for node in nodes if isinstance(node, ast.Import | ast.ImportFrom) for name in _imported(node))
    return frozenset(name for name in found if name in TEXTS)


def _imported(node: ast.Import | ast.ImportFrom) -> Iterator[str]:
    """The modules that a statement names: those inside a package, or the one that defines the names."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
        return
    inside = [f"{node.module}.{alias.name}" for alias in node.names]
    yield from inside
    if not all(name in TEXTS for name in inside):
        yield str(node.module)


def _reached(modules: set[str]) -> set[str]:
    """These modules and all that they import."""
    found, ahead = set[str](), modules & set(TEXTS)
    while ahead:
        found |= ahead
        ahead = set[str]().union(*map(_imports, ahead)) - found
    return found


# -- functions of a study ------------------------------------------------------------------------------------


def code_digest(trial: Callable[..., Any]) -> str:
    """The code that a trial runs: its own functions with what they name, and the modules of openloop they reach."""
    found: dict[str, str] = {}
    _function(trial, found)
    for module in _reached({name.removeprefix("module ") for name in found}):
        found[f"module {module}"] = digest(TEXTS[module])
    return digest("".join(f"{name}={found[name]};" for name in sorted(found)))


def _function(function: Any, found: dict[str, str]) -> None:
    name = _name(function)
    if name in found:
        return
    found[name] = _code(function.__code__, found)
    found[f"{name}()"] = _constant([function.__defaults__, function.__kwdefaults__], found)
    names = _names(function.__code__)
    for used in sorted(names & set(function.__globals__)):
        found[f"{name}.{used}"] = _named(function.__globals__[used], names, found)
    for module in names:  # what it imports itself
        _uses(module, names, found)


def _named(value: Any, names: set[str], found: dict[str, str]) -> str:
    """What a function names: of a module, that of its names which the function uses too; else the value itself."""
    if not isinstance(value, ModuleType):
        return _constant(value, found)
    _uses(value.__name__, names, found)
    used = sorted(names & set(vars(value))) if _own(value) else []
    return str([(name, _named(getattr(value, name), names, found)) for name in used])


def _uses(module: str, names: set[str], found: dict[str, str]) -> None:
    """Note a module of openloop: of a package only those of its modules that are named, if nothing else of it is."""
    public = names & set(dir(sys.modules.get(module)))
    inside = {name for name in public if f"{module}.{name}" in TEXTS}
    used = {f"{module}.{name}" for name in inside} | ({module} if public - inside or not inside else set[str]())
    found.update({f"module {name}": "" for name in used & set(TEXTS)})


def _callable(value: Any, found: dict[str, str]) -> str:
    """The name of a function or class; if it is the study's own, its code is found too: of a class, its methods."""
    if isinstance(value, partial):
        return _constant([value.func, value.args, value.keywords], found)
    module = getattr(value, "__module__", None) or ""
    _uses(module, set(), found)
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
