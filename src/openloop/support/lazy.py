"""Names of a package that are imported on first use, since what they need may take a second to load."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def lazily(
    package: str, modules: Mapping[str, str], found: dict[str, Any], noun: str = ""
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of a package: modules and the names that live in each, kept in `found` once loaded.

    A name whose home ends in it is that module itself. An unknown one is an error, which lists the `noun`s if given.
    """
    homes = {name: module for module, names in modules.items() for name in names.split()}

    def load(name: str) -> Any:
        if name not in homes:
            known = f"; {noun}: {', '.join(homes)}." if noun else ""
            raise AttributeError(f"module {package!r} has no attribute {name!r}{known}")
        home = homes[name]
        module = import_module(f"{package}.{home}")
        found[name] = module if home.rpartition(".")[2] == name else getattr(module, name)
        return found[name]

    return load, lambda: sorted({*found, *homes})
