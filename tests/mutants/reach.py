"""A pytest plugin: which functions of the package each test calls, or which tests to run in which order.

Functions that numba compiles are not marked: a test reaches them through the functions that name them.
"""

from __future__ import annotations

import ast
import builtins
import json
import marshal
import os
import time
from collections.abc import Iterator
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType

import hypothesis
import pytest

REACH, ORDER, REPORT = (os.environ.get(f"MUTANTS_{name}", "") for name in ("REACH", "ORDER", "REPORT"))
Defined = ast.FunctionDef | ast.AsyncFunctionDef


def functions(tree: ast.AST, name: str) -> Iterator[tuple[str, Defined]]:
    """The functions of a module and of its classes, by names such as `openloop.core.weights:Weights.cut`."""
    for node in ast.iter_child_nodes(tree):
        inner = f"{name}{'.' if isinstance(tree, ast.ClassDef) else ':'}{getattr(node, 'name', '')}"
        if isinstance(node, Defined):
            yield inner, node
        else:
            yield from functions(node, inner if isinstance(node, ast.ClassDef) else name)


def is_compiled(function: Defined) -> bool:
    decorators = " ".join(map(ast.unparse, function.decorator_list))
    return any(name in decorators for name in ("njit", "inlined", "compiled"))


def other_names(tree: ast.Module) -> dict[str, str]:
    """The functions that are compiled under another name, as in `_mix = njit(mix)`, by that name."""
    found = {}
    for node in tree.body:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call(args=[ast.Name(id=function)])):
                found[name] = function
            case _:
                pass
    return found


# -- which functions tests call --------------------------------------------------------------------------------

called: set[str] = set()
usual = SourceFileLoader.get_code


def marked(tree: ast.Module, name: str, file: Path, compiled: set[str]) -> CodeType:
    """A module in which each function adds its name to `called`, in the lines of the file."""
    for inner, function in functions(tree, name):
        if not is_compiled(function) and function.name not in compiled:
            first = function.body[0]
            mark = ast.Expr(ast.Call(ast.Name("__called__", ast.Load()), [ast.Constant(inner)], []))
            has_docstring = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
            function.body.insert(int(has_docstring), ast.copy_location(mark, first))
    return compile(ast.fix_missing_locations(tree), file, "exec", dont_inherit=True)


def get_code(self: SourceFileLoader, fullname: str) -> CodeType | None:
    """The marked module, compiled before: Python 3.11 may fail to parse while tests run, and collect garbage."""
    file = Path(REACH).parent / "marked" / fullname
    return marshal.loads(file.read_bytes()) if file.exists() else usual(self, fullname)  # noqa: S302 (made by us)


if REACH:
    builtins.__called__ = called.add
    SourceFileLoader.get_code = get_code


class Reach:
    """Adds a line to a file for each file of tests: which functions each test called, and how long it took."""

    def __init__(self) -> None:
        self.tests: dict[str, dict] = {}
        self.collected: dict[str, set[str]] = {}
        self.failed: set[str] = set()

    @pytest.hookimpl(wrapper=True)
    def pytest_make_collect_report(self, collector):
        called.clear()
        report = yield
        self.collected.setdefault(collector.nodeid.partition("::")[0], set()).update(called)
        return report

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item, nextitem):
        called.clear()
        start = time.process_time()
        result = yield
        file = item.nodeid.partition("::")[0]
        names = sorted(called | self.collected.get(file, set()))
        self.tests[item.nodeid] = {"seconds": round(time.process_time() - start, 3), "functions": names}
        if nextitem is None or nextitem.nodeid.partition("::")[0] != file:
            self.write(file)
        return result

    def pytest_runtest_logreport(self, report) -> None:
        if report.failed:
            self.failed.add(report.nodeid)

    def pytest_sessionfinish(self, exitstatus: int) -> None:
        if exitstatus in {0, 1, 5}:
            Path(REACH).with_suffix(".finished").touch()

    def write(self, file: str) -> None:
        names = sorted({name for test in self.tests.values() for name in test["functions"]})
        numbers = {name: number for number, name in enumerate(names)}
        tests = {
            test: [facts["seconds"], [numbers[name] for name in facts["functions"]]]
            for test, facts in self.tests.items()
            if test not in self.failed
        }
        with Path(REACH).open("a", encoding="utf-8") as output:
            output.write(json.dumps({"file": file, "functions": names, "tests": tests}) + "\n")
        self.tests = {}


# -- tests in an order -----------------------------------------------------------------------------------------


class Order:
    """Runs named tests, and reports which one runs or failed, and the processor time at which it began."""

    def __init__(self) -> None:
        self.tests = {test: number for number, test in enumerate(json.loads(Path(ORDER).read_text(encoding="utf-8")))}

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = sorted((i for i in items if i.nodeid in self.tests), key=lambda item: self.tests[item.nodeid])

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self.report("began", nodeid)

    def pytest_runtest_logreport(self, report) -> None:
        if report.failed:
            self.report("failed", report.nodeid)

    def pytest_collectreport(self, report) -> None:
        if report.failed:
            self.report("failed", report.nodeid)

    def report(self, event: str, test: str) -> None:
        Path(REPORT).write_text(json.dumps([event, test, time.process_time()]), encoding="utf-8")


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(Reach() if REACH else Order())


def pytest_sessionstart() -> None:
    # What fails need not be made small, and fails in every run.
    phases = [hypothesis.Phase.explicit, hypothesis.Phase.generate]
    usual_profile = hypothesis.settings.get_profile("ci")
    hypothesis.settings.register_profile("mutants", usual_profile, phases=phases)
    hypothesis.settings.load_profile("mutants")
