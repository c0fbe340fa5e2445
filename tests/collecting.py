"""A plugin for `pytest --collect-only`: what takes time is refused, since importing a test module may not run it."""

from __future__ import annotations

from importlib import import_module

import pytest

HEAVY = {
    "openloop.evaluation": "evaluate",
    "openloop.selection": "select",
    "openloop.audits.auditing": "audit",
    "openloop.propensity.checks.checking": "check",
    "numba.core.dispatcher": "Dispatcher.compile",  # every kernel that runs is compiled, or loaded, first
}


def pytest_configure(config: pytest.Config) -> None:
    for module, path in HEAVY.items():
        *above, name = path.split(".")
        owner = import_module(module)
        for step in above:
            owner = getattr(owner, step)
        setattr(owner, name, refusing(path))


def refusing(name: str):
    def refuse(*_args, **_options):
        raise AssertionError(f"{name} was called at import of a test module; call it in a test or a fixture")

    return refuse
