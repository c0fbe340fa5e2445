"""`openloop reproduce`: the list, the tables, JSON, pages, and refusals in one line."""

from __future__ import annotations

import json
import re
import sys

import pytest
from typer.testing import CliRunner

from openloop.cli import app
from openloop.studies.kit import running
from tests.facts import facts
from tests.studies import made_up


@pytest.fixture
def call(monkeypatch, tmp_path):
    monkeypatch.setattr(running, "STUDIES", ("made_up",))
    monkeypatch.setitem(sys.modules, "openloop.studies.made_up", made_up)
    monkeypatch.setattr(running, "EXTRAS", {"not_installed": "more"})
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("COLUMNS", "100")
    return lambda *arguments: CliRunner().invoke(app, ["reproduce", *map(str, arguments)])


def test_the_list_shows_every_item(call, tmp_path):
    shown = call("--list", "--data", tmp_path)
    assert shown.exit_code == 0
    assert all(item.name in shown.stdout for item in made_up.ITEMS)
    records = json.loads(call("--list", "--data", tmp_path, "--json", "-").stdout)
    assert [record["item"] for record in records] == ["table1", "figure1", "figure2"]
    assert records[0]["cannot_run"] is None
    assert "coat" in records[1]["cannot_run"]
    call("--list", "--data", tmp_path, "--json", tmp_path / "list.json")
    assert json.loads((tmp_path / "list.json").read_text()) == records


@pytest.mark.parametrize("name", ["thesis.md", "thesis.html", "page/figure1.svg", "page/figure1_coat.svg"])
def test_a_file_of_the_user_is_refused_before_anything_runs(call, tmp_path, monkeypatch, name):
    monkeypatch.setattr(running, "reproduce", lambda *_a, **_o: pytest.fail("it ran"))
    (tmp_path / "page").mkdir()
    (tmp_path / name).write_text("mine")
    report = tmp_path / (name if name.startswith("thesis") else "page.md")
    shown = call("made_up", "--data", tmp_path, "--report", report)
    assert shown.exit_code == 2, shown.output
    assert re.search(facts(name.rpartition("/")[2], "move it", "another name"), shown.stderr)
    assert (tmp_path / name).read_text() == "mine"


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        pytest.param([], facts("paper", "--list"), id="no paper"),
        pytest.param(["made_up", "table7"], facts("'table7'", "table1"), id="unknown item"),
        pytest.param(["nothing"], facts("'nothing'", "'made_up'"), id="unknown paper"),
        pytest.param(["made_up", "figure1", "--data", "."], facts("datasets get coat"), id="no data"),
        pytest.param(["made_up", "--data", "nowhere"], facts("data folder 'nowhere'", "exist"), id="no folder"),
        pytest.param(["--list", "--data", "nowhere"], facts("data folder 'nowhere'", "exist"), id="list of no folder"),
        pytest.param(["made_up", "--report", "x.pdf"], facts("x.pdf", ".md", ".html"), id="unknown format"),
        pytest.param(["--list", "nothing"], facts("'nothing'", "'made_up'"), id="list of an unknown paper"),
    ],
)
def test_refusals_are_one_line(call, tmp_path, monkeypatch, arguments, told):
    monkeypatch.chdir(tmp_path)
    shown = call(*arguments)
    assert shown.exit_code == 2
    assert re.search(told, shown.stderr)
    assert len(shown.stderr.strip().splitlines()) == 1
    assert not (tmp_path / "x.pdf").exists()
