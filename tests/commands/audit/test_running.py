"""An audit from files: the numbers of the library, and what only the reader of the files knows."""

from __future__ import annotations

import re

import pytest

import openloop as ol
from openloop.commands.audit.request import AuditRequest, ModelFile
from openloop.commands.audit.running import run
from openloop.errors import InputError
from tests.audit_files import SCORES, audit_files
from tests.facts import facts


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return audit_files(tmp_path_factory.mktemp("running"))


@pytest.fixture(scope="module")
def wanted(files):
    models = tuple(ModelFile(name, files / name) for name in "ab")
    ids = {"users": files / "users", "items": files / "items"}
    return AuditRequest(log=files / "log", models=models, propensity="p", metrics=("mae",), check=False, **ids)


def test_an_audit_knows_its_files_and_its_command(files, wanted):
    steps = []
    found = run(wanted, "openloop audit …", lambda _what, done: steps.append(round(done, 9)))
    alone = ol.Feedback.from_arrays(
        files.test.user, files.test.item, files.test.rating, users=files.test.users, items=files.test.items,
        propensity=files.test.propensity,
    )  # fmt: skip
    expected = ol.audit({name: SCORES[name] for name in "ab"}, alone, metrics=["mae"])
    assert found.result["a", "mae", "snips"].value == pytest.approx(expected.result["a", "mae", "snips"].value)
    assert found.setting.log == str(files / "log")
    assert found.setting.propensity == "column 'p' of the log"
    assert found.setting.command == "openloop audit …"
    assert re.search(facts("user 'uid'", "item 'mid'", "rating 'stars'"), found.notes[0])
    assert steps == sorted(steps)
    assert 0 <= steps[0] < steps[-1] < 1


def test_a_file_that_may_not_be_read_is_named(wanted, monkeypatch):
    def denied(*_given, **_options):
        raise PermissionError(13, "Permission denied", "log.csv")

    monkeypatch.setattr("openloop.commands.audit.inputs.read", denied)
    with pytest.raises(InputError, match=facts("log.csv", "Permission denied")):
        run(wanted, "openloop audit")
