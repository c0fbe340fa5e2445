"""The doctor's findings: every requirement is looked at, and what does not work has a remedy."""

from __future__ import annotations

import re
from importlib import metadata

import numpy as np

from openloop.commands import doctor as diagnosis


def test_every_requirement_is_looked_at():
    core = [line for line in metadata.requires("openloop") if "extra ==" not in line]
    assert {re.match(r"[\w-]+", line)[0] for line in core} == set(diagnosis.CORE)


def test_a_healthy_machine_is_found_well():
    found = diagnosis.diagnose()
    assert found["ok"]
    assert {part["name"]: part["version"] for part in found["core"]}["numpy"] == np.__version__


def test_what_is_missing_is_not_well(monkeypatch):
    monkeypatch.setattr(diagnosis, "CORE", {"no-such-package": "no_such_package"})
    found = diagnosis.diagnose()
    assert not found["ok"]
    (part,) = (part for part in found["core"] if part["name"] == "no-such-package")
    assert part["remedy"]
