"""Public docstrings: every example runs, and every public name has its parameters, its result and an example."""

from __future__ import annotations

import ast
import dataclasses
import doctest
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import openloop as ol
import openloop.testing
from openloop.audits.answers import Verdict
from openloop.audits.contrasts import Contrast
from openloop.core.weights import Diagnostics
from openloop.estimators.resampling import Bootstrap

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "openloop"

# -- examples ------------------------------------------------------------------------------------------------


def examples() -> list[doctest.DocTest]:
    """The examples of each docstring. They are read from the source: listing them imports no module."""
    return list(read_examples())


def read_examples() -> Iterator[doctest.DocTest]:
    parser = doctest.DocTestParser()
    for module in sorted(PACKAGE.rglob("*.py")):
        source = module.read_text(encoding="utf-8")
        if ">>> " not in source:
            continue
        path = ".".join(module.relative_to(PACKAGE).with_suffix("").parts)
        for name, node in definitions(ast.parse(source), path):
            if text := ast.get_docstring(node):
                line = node.body[0].lineno - 1
                if (found := parser.get_doctest(text, {}, name, str(module), line)).examples:
                    yield found


def definitions(tree: ast.AST, path: str) -> Iterator[tuple[str, Any]]:
    if isinstance(tree, ast.Module | ast.ClassDef | ast.FunctionDef):
        yield path, tree
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            yield from definitions(node, f"{path}.{node.name}")


def run(example: doctest.DocTest) -> str:
    """What differs when an example runs; `ol` and `np` are imported, as the API reference says."""
    report: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE, verbose=False)
    example.globs.update(ol=ol, np=np)
    runner.run(example, out=report.append)
    return "".join(report)


@pytest.mark.parametrize("example", examples(), ids=lambda example: example.name)
def test_an_example_prints_what_its_docstring_says(example, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run(example) == ""


# -- sections ------------------------------------------------------------------------------------------------

SECTION = re.compile(r"^(Args|Attributes|Returns|Yields|Raises|Examples):$\n((?:^(?: .*)?$\n?)*)", re.MULTILINE)
ENTRY = re.compile(r"^    \**(\w+)(?: \([^)]*\))?: ", re.MULTILINE)


def public() -> Iterator[tuple[str, Any]]:
    """Every public function and class with its path: those of `openloop`, and of its public modules."""
    for name in ol.__all__:
        yield from within(f"ol.{name}", getattr(ol, name))
    yield from within("openloop.testing", openloop.testing)
    yield from ((found.__name__, found) for found in (Verdict, Contrast, Diagnostics, Bootstrap))  # parts of results


def within(path: str, found: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(found, ModuleType):
        own = [name for name, value in vars(found).items() if of(value) == found.__name__ and name[0] != "_"]
        for name in getattr(found, "__all__", own):
            yield from within(f"{path}.{name}", getattr(found, name))
    elif callable(found):
        yield path, found


def of(value: Any) -> str:
    return getattr(value, "__module__", "") if inspect.isroutine(value) or inspect.isclass(value) else ""


def sections(text: str) -> dict[str, str]:
    """The sections of a docstring in Google's style, by heading."""
    return dict(SECTION.findall(text + "\n"))


def entries(section: str) -> set[str]:
    return set(ENTRY.findall(section))


def parameters(found: Any) -> list[str]:
    if dataclasses.is_dataclass(found):
        return [f.name for f in dataclasses.fields(found) if f.init and not f.name.startswith("_")]
    if inspect.isclass(found) and found.__init__ is object.__init__:
        return []
    return [name for name in inspect.signature(found).parameters if name not in ("self", "cls")]


def gaps(found: Any) -> list[str]:
    """What the docstring of a public function or class lacks; an exception needs no more than its line."""
    text = inspect.getdoc(found) or ""
    if inspect.isclass(found) and issubclass(found, Exception):
        return [] if text else ["docstring"]
    parts = sections(text)
    named = entries(parts.get("Args", "") + parts.get("Attributes", ""))
    missing = [f"Args: {name}" for name in parameters(found) if name not in named]
    if not inspect.isclass(found) and returns(found) and not {"Returns", "Yields"} & set(parts):
        missing.append("Returns")
    if ">>> " not in parts.get("Examples", ""):
        missing.append("Examples")
    return missing + [gap for gap in method_gaps(found) if inspect.isclass(found)]


def returns(function: Any) -> bool:
    return function.__annotations__.get("return", "None") not in ("None", None)


def method_gaps(owner: Any) -> Iterator[str]:
    """A method and a property need a line, which names each parameter as `name` where it has no Args."""
    for name in dir(owner):
        method = inspect.getattr_static(owner, name)
        function = getattr(method, "__func__", None) or getattr(method, "fget", None) or getattr(method, "func", method)
        if name.startswith("_") or not inspect.isfunction(function) or not of(function).startswith("openloop"):
            continue
        if not (text := inspect.getdoc(function) or ""):
            yield f"{name}: docstring"
            continue
        named = entries(sections(text).get("Args", "")) | set(re.findall(r"`(\w+)", text))
        yield from (f"{name}: {each}" for each in parameters(function) if each not in named)


@pytest.fixture(scope="module")
def lacking():
    """The gaps of each public name that has some, by package."""
    found: dict[str, dict[str, list[str]]] = {}
    for path, each in public():
        if missing := gaps(each):
            found.setdefault(each.__module__.split(".")[1], {})[path] = missing
    return found


def test_every_public_name_has_its_parameters_its_result_and_an_example(lacking):
    assert lacking == {}
