"""`openloop report`: the page of an audit without its data, what changed between two, and what it refuses."""

from __future__ import annotations

import json

import pytest

from tests.audit_files import audit_files
from tests.cli.running import run
from tests.pages import check_safe

EPOCH = {"SOURCE_DATE_EPOCH": "1577836800"}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """An audit with its page, its JSON and its tables, and a newer one of fewer rows."""
    folder = tmp_path_factory.mktemp("audits")
    audit_files(folder)
    named = ["--user", "uid", "--item", "mid", "--rating", "stars", "--propensity", "p", "--metric", "mae"]
    models = [f"{name}={folder / name}.csv" for name in "abc"]
    first = run("audit", folder / "log.csv", *models, *named, "--report", folder / "audit.html", "--json",
                folder / "old.json", **EPOCH)  # fmt: skip
    assert first.exit_code in (0, 3)
    rows = (folder / "log.csv").read_text().splitlines(keepends=True)
    (folder / "short.csv").write_text("".join(rows[:250]))
    newer = run("audit", folder / "short.csv", *models[:2], *named, "--json", folder / "new.json", **EPOCH)
    assert newer.exit_code in (0, 3)
    return folder, first


def test_the_page_and_the_tables_are_those_of_the_audit_byte_for_byte(made, tmp_path):
    folder, first = made
    found = run("report", folder / "old.json", "--report", tmp_path / "again.html", "--json", tmp_path / "again.json")
    assert found.exit_code == 0
    assert (tmp_path / "again.html").read_bytes() == (folder / "audit.html").read_bytes()
    assert (tmp_path / "again.json").read_bytes() == (folder / "old.json").read_bytes()
    assert found.stdout == first.stdout
    assert found.stderr.splitlines() == [f"wrote {tmp_path / 'again.html'}", f"wrote {tmp_path / 'again.json'}"]


def test_two_audits_are_compared_as_text_as_json_and_as_a_page(made, tmp_path):
    folder, _ = made
    files = (folder / "old.json", folder / "new.json")
    found = run("report", *files, "--report", tmp_path / "diff.html")
    assert found.exit_code == 0
    assert "Gone: c." in found.stdout
    assert "if independent" in found.stdout
    assert max(map(len, found.stdout.splitlines())) <= 80
    check_safe((tmp_path / "diff.html").read_text(encoding="utf-8"))
    told = json.loads(run("report", *files, "--json", "-").stdout)
    assert (told["schema"], told["gone"], told["one_log"]) == ("openloop/changes/1", ["c"], False)
    assert {d["name"] for d in told["settings"]} >= {"log", "rows"}


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("{}", "is not an audit"),
        ("[" * 200_000, "nested"),
        ('{"schema": "openloop/audit/1"}', "lacks the key 'comparison'"),
        ("\x1b[2J<script>", "must be JSON"),
    ],
)
def test_another_file_is_refused_in_one_line(made, tmp_path, content, told):
    folder, _ = made
    (tmp_path / "x.json").write_text(content)
    for words in ([tmp_path / "x.json"], [folder / "old.json", tmp_path / "x.json"]):
        found = run("report", *words, "--report", tmp_path / "page.html")
        assert found.exit_code == 2
        assert told in found.stderr
        assert found.stderr.count("\n") == 1
        assert "\x1b" not in found.stderr
        assert found.stdout == ""
        assert not (tmp_path / "page.html").exists()


def test_what_is_not_there_and_what_would_be_overwritten_is_refused(made, tmp_path):
    folder, _ = made
    assert run("report", tmp_path / "none.json").exit_code == 2
    assert run("report", folder).exit_code == 2
    before = (folder / "old.json").read_bytes()
    found = run("report", folder / "old.json", "--json", folder / "old.json")
    assert found.exit_code == 2
    assert "overwritten" in found.stderr
    assert (folder / "old.json").read_bytes() == before
