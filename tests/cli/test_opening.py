"""`--open`: the browser is asked for the report that was written, and a line says where it is if there is none."""

from __future__ import annotations

import json
import re
import shlex
import webbrowser
from pathlib import Path

import pytest

from openloop.cli.opening import UNNAMED
from tests.audit_files import audit_files
from tests.cli.running import run
from tests.facts import facts
from tests.pages import Reader


@pytest.fixture
def asked(monkeypatch, tmp_path):
    """What a browser that opens everything was asked for; the folder is that of the test."""
    found: list[str] = []
    monkeypatch.setattr(webbrowser, "open", lambda address: not found.append(address))
    monkeypatch.chdir(tmp_path)
    return found


def audited(folder: Path, *more):
    files = audit_files(folder)
    given = (files / "log", f"a={files / 'a'}", f"b={files / 'b'}", "--propensity", "p", "--metric", "mae", *more)
    return run("audit", *given)


def test_the_report_is_opened_once_it_is_written(asked, tmp_path):
    found = audited(tmp_path, "--report", "my report.html", "--open")
    assert found.exit_code in (0, 3), found.output
    assert asked == [(tmp_path / "my report.html").as_uri()]
    assert "--report" in (tmp_path / "my report.html").read_text(encoding="utf-8")


def test_without_a_name_it_is_in_this_folder(asked, tmp_path):
    found = audited(tmp_path, "--open")
    assert asked == [(tmp_path / UNNAMED).as_uri()]
    assert f"wrote {UNNAMED}" in found.stderr


def test_a_file_of_another_program_is_not_replaced(asked, tmp_path):
    (tmp_path / UNNAMED).write_text("mine", encoding="utf-8")
    found = audited(tmp_path, "--open")
    assert found.exit_code == 2
    assert re.search(facts(UNNAMED, "did not write", "--report"), found.stderr)
    assert ((tmp_path / UNNAMED).read_text(encoding="utf-8"), asked) == ("mine", [])


def test_a_report_of_its_own_is_replaced(asked, tmp_path):
    for _ in range(2):
        assert audited(tmp_path, "--open").exit_code in (0, 3)
    assert len(asked) == 2


def test_the_report_of_a_file_is_opened_too(asked, tmp_path):
    audited(tmp_path, "--json", "audit.json")
    found = run("report", "audit.json", "--report", "again.html", "--open")
    assert found.exit_code == 0, found.output
    assert asked == [(tmp_path / "again.html").as_uri()]


def test_without_a_browser_a_line_says_where_it_is(asked, tmp_path, monkeypatch):
    monkeypatch.setattr(webbrowser, "open", lambda _address: False)
    found = audited(tmp_path, "--report", "r.html", "--open", "--json", "-")
    assert str(tmp_path / "r.html") in found.stderr
    assert str(tmp_path / "r.html") not in found.stdout.splitlines()[-1]
    assert found.exit_code in (0, 3)
    assert asked == []


def test_the_next_step_is_a_command_that_runs_as_it_is_printed(asked, tmp_path):
    asking = audited(tmp_path, "--estimator", "naive", "--report", "r.html", "--json", "a.json")
    assert asking.exit_code == 3
    first = json.loads((tmp_path / "a.json").read_text(encoding="utf-8"))["next_steps"][0]
    command = shlex.split(first["command"])
    assert command[-2:] == ["--estimator", "snips"]
    printed = "".join(asking.stdout.split()).replace("\\", "")
    assert "".join(shlex.join(command).split()) in printed
    text = Reader((tmp_path / "r.html").read_text(encoding="utf-8")).text
    assert shlex.join(command) in "".join(text)
    again = run(*command[1:])
    assert again.exit_code in (0, 3), again.output
    assert json.loads((tmp_path / "a.json").read_text(encoding="utf-8"))["estimator"] == "snips"


def test_nothing_is_opened_that_was_not_asked_for_or_not_written(asked, tmp_path, monkeypatch):
    audited(tmp_path, "--report", "r.html")
    assert asked == []
    monkeypatch.setattr("openloop.reporting.html.report", lambda *_: (_ for _ in ()).throw(OSError("full")))
    assert audited(tmp_path, "--report", "r.html", "--open").exit_code == 1
    assert asked == []


def test_the_demonstration_is_opened_too(asked, tmp_path):
    found = run("demo", "--users", "60", "--items", "50", "--open")
    assert found.exit_code == 0, found.output
    assert asked == [(tmp_path / UNNAMED).as_uri()]
    assert (tmp_path / UNNAMED).is_file()
