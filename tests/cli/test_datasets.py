"""`openloop datasets`: the list, a download from a server on this machine, and the check."""

from __future__ import annotations

import json
import re
import sys
from dataclasses import replace

import pytest

from openloop.data import datasets
from openloop.data.datasets import fetching, finding
from openloop.data.datasets.records import Shape
from tests.cli.running import interrupted, run
from tests.data.datasets.originals import FILES, write
from tests.data.datasets.serving import served, zipped
from tests.facts import facts

COAT = zipped({f"coat/{path}": text for path, text in FILES["coat"].items()})


def test_the_list_names_every_data_set_and_marks_those_that_are_here(tmp_path):
    write("coat", tmp_path)
    result = run("datasets", "list", "--data", tmp_path, COLUMNS="100")
    assert result.exit_code == 0
    rows = {line.split()[1]: line.split()[0] for line in result.stdout.splitlines() if line[:1] in {"✓", "–"}}
    assert {name: here for name, here in rows.items() if here == "✓" and name != "is"} == {"coat": "✓"}
    assert {dataset.name for dataset in datasets.CATALOGUE} <= rows.keys()
    assert "by hand" in result.stdout


def test_the_list_as_json(tmp_path):
    write("coat", tmp_path)
    result = run("datasets", "list", "--data", tmp_path, "--json", "-")
    found = {entry["name"]: entry for entry in json.loads(result.stdout)["datasets"]}
    assert len(found) == 15
    assert found["coat"]["present"]
    assert not found["coat"]["gated"]
    assert found["yahoo-r3"]["gated"]
    assert found["ml-100k"]["archive"]["sha256"].startswith("50d2a982")


def test_the_data_folder_may_come_from_the_environment(tmp_path):
    write("coat", tmp_path)
    result = run("datasets", "list", "--json", "-", OPENLOOP_DATA=str(tmp_path))
    assert json.loads(result.stdout)["folder"] == str(tmp_path)


def test_a_download_shows_the_terms_and_says_that_no_digest_is_known(tmp_path):
    with served(coat=COAT) as address:
        result = run("datasets", "get", "coat", "--data", tmp_path, "--yes", "--url", f"{address}/coat", COLUMNS="200")
    assert f"from {address}/coat\n" in result.stderr
    assert datasets.find("coat").terms in result.stderr
    assert f"7 files in {tmp_path}/coat" in result.stdout
    assert re.search(facts("not verified", "digest"), result.stdout)
    assert len(datasets.load("coat", tmp_path).log) == 3


def test_what_was_downloaded_is_checked(tmp_path, monkeypatch):
    with served(coat=COAT) as address:
        options = ("--yes", "--url", f"{address}/coat")
        result = run("datasets", "get", "coat", "--data", tmp_path / "a", *options)
        assert result.exit_code == 1
        assert re.search(facts("users", 2, 290), result.stdout)
        documented(monkeypatch)
        result = run("datasets", "get", "coat", "--data", tmp_path / "b", *options)
        assert result.exit_code == 0, result.output
        assert "Nothing" in result.stdout


def documented(monkeypatch):
    """Let the catalogue document what the small Coat holds."""
    small = replace(datasets.find("coat"), shapes=(Shape(users=2, items=3, rows=3, open_loop=3),))
    monkeypatch.setattr(finding, "CATALOGUE", (small,))


def test_a_download_as_json(tmp_path):
    with served(coat=COAT) as address:
        result = run("datasets", "get", "coat", "--data", tmp_path, "--yes", "--url", f"{address}/coat", "--json", "-")
    told = json.loads(result.stdout)
    assert (told["name"], told["folder"], told["verified"]) == ("coat", str(tmp_path / "coat"), None)
    assert (told["check"]["ok"], told["check"]["shape"]["users"]) == (False, 2)


def test_without_a_terminal_terms_are_accepted_by_an_option_only(tmp_path):
    result = run("datasets", "get", "ml-1m", "--data", tmp_path)
    assert result.exit_code == 2
    assert re.search(facts("ml-1m", "terms", "accepted", "--yes"), result.stderr)
    result = run("datasets", "get", "coat", "--data", tmp_path)
    assert result.exit_code == 2
    assert re.search(facts("coat", "no terms", "--yes"), result.stderr)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("said", "code"), [(True, 0), (False, 1)])
def test_on_a_terminal_the_terms_are_asked_for(tmp_path, monkeypatch, said, code):
    questions = []
    monkeypatch.setattr("typer.confirm", lambda question, **_options: questions.append(question) or said)
    documented(monkeypatch)
    monkeypatch.setattr(sys.modules["openloop.cli.datasets"], "_terminal", lambda: True)
    with served(coat=COAT) as address:
        result = run("datasets", "get", "coat", "--data", tmp_path, "--url", f"{address}/coat")
    assert result.exit_code == code
    assert datasets.present("coat", tmp_path) == said
    assert said or "not downloaded" in result.stderr
    assert len(questions) == 1


def test_a_gated_data_set_says_where_to_apply_without_asking(tmp_path):
    result = run("datasets", "get", "yahoo-r3", "--data", tmp_path)
    assert result.exit_code == 2
    assert "apply for R3" in result.stderr
    assert f"'{tmp_path}/yahoo-r3'" in result.stderr


def test_what_is_offered_no_more_is_told_in_one_sentence(tmp_path):
    result = run("datasets", "get", "netflix", "--data", tmp_path)
    assert re.search(facts(f"'{tmp_path}/netflix'", "Netflix", "no longer"), result.stderr)
    assert "asks" not in result.stderr


def test_a_wrong_digest_is_one_line(tmp_path):
    with served(x=COAT) as address:
        result = run("datasets", "get", "ml-100k", "--data", tmp_path, "--yes", "--url", f"{address}/x")
    assert result.exit_code == 2
    assert "SHA256 50d2a982" in result.stderr
    assert "Traceback" not in result.output
    assert not (tmp_path / "ml-100k").exists()
    assert "50d2a982" in (tmp_path / "ml-100k.quarantined.txt").read_text()


def test_an_interruption_exits_with_130_and_leaves_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(fetching, "download", interrupted)
    result = run("datasets", "get", "coat", "--data", tmp_path, "--yes")
    assert result.exit_code == 130
    assert list(tmp_path.iterdir()) == []


def test_a_check_of_what_is_wrong_exits_with_1(tmp_path):
    result = run("datasets", "check", "coat", "--data", write("coat", tmp_path))
    assert result.exit_code == 1
    assert re.search(facts("users", 2, 290, "Something"), result.stdout)


def test_a_check_without_a_name_is_of_all_that_are_here(tmp_path):
    write("coat", tmp_path)
    write("open-bandit", tmp_path)
    result = run("datasets", "check", "--data", tmp_path, "--json", "-")
    assert result.exit_code == 1
    told = json.loads(result.stdout)
    assert [(one["name"], one["ok"]) for one in told["checks"]] == [("coat", False), ("open-bandit", True)]
    assert not told["ok"]
    result = run("datasets", "check", "--data", tmp_path)
    assert re.search(facts("Something", "Nothing"), result.stdout)
    result = run("datasets", "check", "--data", tmp_path / "coat" / "user_item_features")
    assert result.exit_code == 2
    assert re.search(facts("datasets", tmp_path / "coat" / "user_item_features"), result.stderr)


def test_a_folder_of_another_name_is_shown(tmp_path):
    write("ml-1m", tmp_path)
    (tmp_path / "ml-1m").rename(tmp_path / "ml-1m-half")
    result = run("datasets", "list", "--data", tmp_path, COLUMNS="100")
    assert "✓  ml-1m (in ml-1m-half)" in result.stdout
    told = json.loads(run("datasets", "list", "--data", tmp_path, "--json", "-").stdout)["datasets"]
    assert {one["name"]: one["found_in"] for one in told if one["present"]} == {"ml-1m": f"{tmp_path}/ml-1m-half"}


def test_a_file_is_no_data_folder(tmp_path):
    (tmp_path / "file").write_text("")
    result = run("datasets", "list", "--data", tmp_path / "file")
    assert result.exit_code == 2
    assert re.search(facts(tmp_path / "file", "folder"), result.stderr.replace("\n", ""))


def test_a_check_as_json(tmp_path):
    result = run("datasets", "check", "coat", "--data", tmp_path, "--json", tmp_path / "check.json")
    assert result.exit_code == 1
    told = json.loads((tmp_path / "check.json").read_text())
    assert (told["name"], told["ok"], told["findings"][0]["what"]) == ("coat", False, "files")


def test_a_check_of_the_real_coat_passes(data_dir):
    result = run("datasets", "check", "coat", "--data", data_dir("coat").parent)
    assert result.exit_code == 0
    assert re.search(facts("366 cells", "Nothing"), result.stdout)


def test_an_unknown_name_is_refused():
    result = run("datasets", "check", "caot")
    assert result.exit_code == 2
    assert re.search(facts("caot", "'coat'"), result.stderr)
