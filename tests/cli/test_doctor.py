"""`openloop doctor` as people and programs call it."""

from __future__ import annotations

import json
import re
from importlib import metadata

import jsonschema
import pytest

import openloop as ol
from openloop.commands import doctor as diagnosis
from tests.cli.running import run

PART = {"type": "object", "required": ["name", "version", "ok", "problem", "remedy"]}
DOCTOR = {
    "type": "object",
    "required": ["ok", "openloop", "python", "platform", "core", "optional", "machine"],
    "properties": {
        "ok": {"type": "boolean"},
        "core": {"type": "array", "items": PART, "minItems": 10},
        "optional": {"type": "array", "items": PART, "minItems": 6},
        "machine": {"type": "object", "required": ["cores", "memory_gib", "numba_threads", "thread_pools"]},
    },
}


def test_doctor_json_is_valid():
    result = run("doctor", "--json")
    content = json.loads(result.stdout)
    jsonschema.validate(content, DOCTOR)
    assert result.exit_code == 0
    assert content["openloop"] == ol.__version__
    versions = {part["name"]: part["version"] for part in content["core"]}
    assert versions["numpy"] == metadata.version("numpy")
    assert any(pool["kind"] == "blas" and pool["threads"] >= 1 for pool in content["machine"]["thread_pools"])
    assert content["machine"]["cores"] >= 1


@pytest.mark.parametrize(
    ("core", "problem", "remedy"),
    [
        ({"no-such-package": "no_such_package"}, "not installed", "pip install openloop"),
        ({"numpy": "no_such_module"}, "ModuleNotFoundError", "pip install --force-reinstall numpy"),
    ],
)
def test_doctor_exits_with_1_when_something_needed_does_not_work(monkeypatch, core, problem, remedy):
    monkeypatch.setattr(diagnosis, "CORE", core)
    result = run("doctor", COLUMNS="100")
    assert result.exit_code == 1
    told = " ".join(result.stdout.split())
    assert problem in told
    assert remedy in told
    assert "✗" in told


def test_every_requirement_is_looked_at():
    core = [line for line in metadata.requires("openloop") if "extra ==" not in line]
    assert {re.match(r"[\w-]+", line)[0] for line in core} == set(diagnosis.CORE)
