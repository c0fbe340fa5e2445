"""The lowest versions that pyproject.toml allows, as pins for pip: `make test-minimum` installs them."""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

PROJECT = Path(__file__).resolve().parents[1] / "pyproject.toml"
EXTRAS = ("duckdb", "pandas", "test")  # those that most tests need; not Spark
REQUIREMENT = re.compile(r"(?P<name>[\w.-]+)(?:\[[^\]]*\])?>=(?P<low>[\w.]+),<(?P<high>[\w.]+)")


def bounds(requirement: str) -> tuple[str, str, str]:
    """Name, lower and upper bound of a requirement, which must have both."""
    if (found := REQUIREMENT.fullmatch(requirement)) is None:
        raise ValueError(f"{requirement!r} in pyproject.toml: write name>=LOWEST,<TOO_HIGH.")
    return found["name"], found["low"], found["high"]


def requirements(project: dict[str, Any], extras: tuple[str, ...]) -> Iterator[str]:
    """What the package and some of its extras ask for; an extra that is a name for others adds nothing."""
    for lines in (project["dependencies"], *(project["optional-dependencies"][extra] for extra in extras)):
        yield from (line for line in lines if not line.startswith("openloop["))


def pins(project: dict[str, Any]) -> list[str]:
    """`name==lowest` of what the tests need."""
    found = (bounds(line) for line in requirements(project, EXTRAS))
    return sorted({f"{name}=={low}" for name, low, _ in found})


def read(path: Path = PROJECT) -> dict[str, Any]:
    """The table [project]."""
    return tomllib.loads(path.read_text(encoding="utf-8"))["project"]


if __name__ == "__main__":
    sys.stdout.write(" ".join(pins(read())))
