"""`openloop reproduce`: the list, the tables, JSON, pages, and refusals in one line."""

from __future__ import annotations

import json
import re
import sys
from dataclasses import replace

import pytest
from typer.testing import CliRunner

from openloop.cli import app
from openloop.studies.kit import running
from openloop.studies.kit.results import Claim, Result
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


def test_the_list_names_what_is_missing_once(call, tmp_path):
    lines = call("--list", "--data", tmp_path).stdout.splitlines()
    (coat,) = (line for line in lines if "openloop datasets get coat" in line)
    (package,) = (line for line in lines if "openloop[more]" in line)
    assert "coat is missing" in coat
    assert "not_installed is missing" in package
    assert [line.split()[:3] for line in lines if "made_up" in line] == [
        ["✓", "made_up", "table1"],
        ["–", "made_up", "figure1"],
        ["–", "made_up", "figure2"],
    ]
    assert any(line.startswith("✓ can run") for line in lines)  # the legend
    assert not any("✗" in line for line in lines)


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


def test_an_undecided_claim_is_neither_good_nor_bad(call, tmp_path, monkeypatch):
    claim = Claim(text="a coin is fair", holds=False, found="1", undecided="too few throws")
    items = (replace(made_up.ITEMS[0], function=lambda _run: Result(item="table1", claims=(claim,))),)
    monkeypatch.setattr(made_up, "ITEMS", items)
    shown = call("made_up", "--data", tmp_path, "--workers", 0)
    assert "? a coin is fair (not decided: too few throws): 1" in shown.stdout


def test_a_run_prints_tables_claims_and_how_many_numbers_came_out(call, tmp_path):
    shown = call("made_up", "table1", "--data", tmp_path, "--workers", 0)
    assert shown.exit_code == 0, shown.output
    assert re.search(facts("3.5 ≠ (3.6)", "✓ a coin is fair", "1 of 2"), shown.stdout)


def test_without_data_the_folder_is_named_and_how_to_name_another(call, tmp_path):
    refused = call("made_up", "figure1", "--data", tmp_path, "--cache", tmp_path)
    assert refused.exit_code == 2
    assert re.search(facts("figure1", "coat", f"'{tmp_path}'", "--data", "openloop datasets get coat"), refused.stderr)
    for shown in (call("made_up", "--data", tmp_path, "--cache", tmp_path), call("--list", "--data", tmp_path)):
        assert re.search(facts("looked for in", "--data"), " ".join(shown.stdout.split()))


def test_a_quick_run_is_not_held_against_the_published_numbers(call, tmp_path):
    shown = call("made_up", "table1", "--quick", "--data", tmp_path, "--workers", 0)
    assert re.search(facts("quick", "3.5 (3.6)"), shown.stdout)
    assert "1 of 2" not in shown.stdout


def test_json_and_page_are_written(call, tmp_path):
    files = ["--json", tmp_path / "out.json", "--report", tmp_path / "out.md"]
    shown = call("made_up", "--data", tmp_path, "--workers", 0, *files)
    assert shown.exit_code == 0, shown.output
    content = json.loads((tmp_path / "out.json").read_text())
    assert content["results"][0]["item"] == "table1"
    assert set(content["left_out"]) == {"figure1", "figure2"}
    assert (tmp_path / "out.md").read_text().startswith("# Coins")
    assert "wrote" in shown.stderr
    only = call("made_up", "table1", "--data", tmp_path, "--workers", 0, "--json", "-")
    assert json.loads(only.stdout)["results"] == content["results"]


def test_one_papers_list_and_the_words_of_an_interruption(call, tmp_path, monkeypatch):
    assert "figure2" in call("--list", "made_up", "--data", tmp_path).stdout

    def interrupted(*_arguments, **_options):
        raise KeyboardInterrupt

    monkeypatch.setattr(running, "reproduce", interrupted)
    stopped = call("made_up", "--data", tmp_path)
    assert stopped.exit_code == 130
    assert "kept" in stopped.stderr


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
