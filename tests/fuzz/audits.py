"""The JSON of an audit, changed as bytes or as values, and what `openloop report` makes of it."""

from __future__ import annotations

import copy
import json
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

from tests.audit_cases import HOSTILE, SCRIPTS, small_audit
from tests.fuzz.mutator import mutated

VALUES = (
    None, True, False, 0, -1, 1, 2**63, 10**400, -(2**62), 1e308, -1e308, 5e-324, "", "a", "infinite",
    "-infinite", "NaN",
    [], {}, [[]], {"a": 1}, [1, 2, 3], "\ud800", "x" * 5000, *HOSTILE, *SCRIPTS,
)  # fmt: skip
RAW = ("NaN", "Infinity", "1e999", "-" * 9, "0x1", "9" * 5000, "[" * 100_000, '{"a":' * 100_000)


@cache
def seeds() -> tuple[str, ...]:
    """Audits with something in every part, and an old one."""
    found = tuple(small_audit(metrics=("mae",), winner=winner).to_json() for winner in (True, False))
    return (*found, json.dumps(json.loads(found[0]) | {"schema": "openloop/audit/0"}))


def changed(rng: Random) -> bytes:
    """A changed audit: a part with another value, a key that is gone or doubled, other bytes, or none of it."""
    text = rng.choice(seeds()[:2]) if rng.random() < 0.95 else rng.choice(seeds())
    way = rng.random()
    if way < 0.1:
        return mutated(text.encode(), rng)
    if way < 0.2:
        at = rng.randrange(len(text))
        return (text[:at] + rng.choice(RAW) + text[at:]).encode()
    record = json.loads(text)
    for _ in range(rng.choice((1, 1, 1, 2, 5))):
        _change(record, rng)
    return json.dumps(record).encode("utf-8", "surrogatepass")


def _change(record: Any, rng: Random) -> None:
    """Change one place, at any depth."""
    node = record
    while True:
        keys = list(node) if isinstance(node, dict) else list(range(len(node)))
        if not keys:
            return
        key = rng.choice(keys)
        if isinstance(node[key], dict | list) and rng.random() < 0.85:
            node = node[key]
            continue
        way = rng.random()
        if way < 0.15:
            del node[key]
        elif way < 0.3 and isinstance(node[key], int | float):
            node[key] = -node[key] if rng.random() < 0.5 else node[key] * 1e300
        elif way < 0.4:
            node[key] = copy.deepcopy(node[rng.choice(keys)])
        elif way < 0.5 and isinstance(node, list):
            node.append(copy.deepcopy(node[key]))
        else:
            node[key] = rng.choice(VALUES)
        return


def written(folder: Path, rng: Random, name: str = "audit.json") -> Path:
    """The file of a changed audit."""
    path = folder / name
    path.write_bytes(changed(rng))
    return path
