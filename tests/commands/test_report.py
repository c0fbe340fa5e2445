"""What the command does with one file and with two, and how files that contradict themselves end."""

from __future__ import annotations

import pytest

from openloop.audits.change_lists import Changes
from openloop.audits.results import Audit
from openloop.commands.report import ReportRequest, consistent, found_in, write_page
from openloop.errors import FormatError, InputError
from tests.audit_cases import small_audit
from tests.facts import facts


@pytest.fixture
def files(tmp_path):
    for name, winner in (("old.json", False), ("new.json", True)):
        small_audit(winner=winner).to_json(tmp_path / name)
    return str(tmp_path / "old.json"), str(tmp_path / "new.json")


def test_one_file_is_an_audit_and_two_are_what_changed(files):
    old, new = files
    assert isinstance(found_in(ReportRequest(audit=old)), Audit)
    asked = ReportRequest(audit=old, newer=new)
    assert asked.inputs == [old, new]
    found = found_in(asked)
    assert isinstance(found, Changes)
    assert (found.verdicts.old_level, found.verdicts.new_level) == ("none", "verdict")


def test_a_page_that_contradictions_forbid_leaves_the_old_one(files, tmp_path, monkeypatch):
    asked = ReportRequest(audit=files[0])
    path = tmp_path / "page.html"
    path.write_text("old")
    monkeypatch.setattr("openloop.reporting.html.page", lambda *_: {}["gone"])
    with pytest.raises(FormatError, match=facts("old.json", "fit together", "KeyError", "openloop audit")):
        write_page(found_in(asked), str(path), asked)
    assert path.read_text() == "old"
    assert {p.name for p in tmp_path.iterdir()} == {"old.json", "new.json", "page.html"}


def test_other_failures_stay_what_they_are(files):
    asked = ReportRequest(audit=files[0])
    for error in (InputError("told already"), OSError("disk"), KeyboardInterrupt(), AttributeError("a bug")):
        with pytest.raises(type(error)), consistent(asked):
            raise error
