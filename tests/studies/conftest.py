"""The made-up study, known by name."""

from __future__ import annotations

import sys

import pytest

from openloop.studies.kit import running
from tests.studies import made_up


@pytest.fixture
def study(monkeypatch, tmp_path):
    """The name of a study whose cache is in a folder of the test's own."""
    monkeypatch.setattr(running, "STUDIES", ("made_up",))
    monkeypatch.setattr(running, "EXTRAS", {"not_installed": "more"})
    monkeypatch.setitem(sys.modules, "openloop.studies.made_up", made_up)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return "made_up"
