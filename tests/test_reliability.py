"""Every promise of docs/reliability.md names tests, and they are there."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "reliability.md").read_text(encoding="utf-8")
LINES = [line.strip("| ").split(" | ") for line in PAGE.partition("## Promises")[2].partition("\n## ")[0].splitlines()
         if line.startswith("| ")][1:]  # fmt: skip
PROMISES = [line for line in LINES if not line[0].startswith("**")]


@cache
def functions(path: Path) -> set[str]:
    return {
        node.name for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(node, ast.FunctionDef)
    }


@pytest.mark.parametrize("line", PROMISES, ids=lambda line: line[0][:40])
def test_a_promise_names_tests_that_are_there(line):
    promise, across, tests = line
    assert promise
    assert across
    named = re.findall(r"`(tests/[\w/]+\.py)::(test_\w+)`", tests)
    assert len(named) == tests.count("`") // 2 >= 1
    for path, name in named:
        assert name in functions(ROOT / path), f"{path}::{name}"


def test_the_table_is_read():
    assert len(PROMISES) >= 30
    assert len(LINES) - len(PROMISES) == 7
