"""A small strict parser of BibTeX: what it does not understand is an error."""

from __future__ import annotations

import re

HEAD = re.compile(r"@(\w+)\{([\w:-]+),\n")
FIELD = re.compile(r"  (\w+) = ")

Entry = tuple[str, str, dict[str, str]]  # kind, key, fields


def entries(text: str) -> list[Entry]:
    """Every entry of a text, with nothing but blank lines between them."""
    found, at = [], 0
    while at < len(text):
        head = HEAD.match(text, at)
        assert head, f"no entry at {text[at : at + 40]!r}"
        fields, at = _fields(text, head.end())
        assert {"author", "title"} <= set(fields)
        found.append((head[1], head[2], fields))
        at = re.compile(r"\n*").match(text, at).end()
    return found


def _fields(text: str, at: int) -> tuple[dict[str, str], int]:
    fields: dict[str, str] = {}
    while not text.startswith("}", at):
        name = FIELD.match(text, at)
        assert name, f"no field at {text[at : at + 40]!r}"
        assert name[1] not in fields
        end = _closing(text, name.end())
        fields[name[1]] = text[name.end() + 1 : end]
        assert text.startswith(",\n", end + 1)
        at = end + 3
    return fields, at + 1


def _closing(text: str, at: int) -> int:
    """Where the brace that opens at `at` is closed."""
    assert text[at] == "{"
    depth = 0
    for i in range(at, len(text)):
        depth += (text[i] == "{") - (text[i] == "}")
        if depth == 0:
            return i
    raise AssertionError(f"a brace stays open: {text[at : at + 40]!r}")
