"""`openloop datasets`: the list, a download from a server on this machine, and the check."""

from __future__ import annotations

import json
import sys

import pytest

from openloop.data import datasets
from openloop.data.datasets import fetching
from tests.cli.running import interrupted, run
from tests.data.datasets.originals import FILES, write
from tests.data.datasets.serving import served, zipped

COAT = zipped({f"coat/{path}": text for path, text in FILES["coat"].items()})


def test_the_list_names_every_data_set_and_marks_those_that_are_here(tmp_path):
    write("coat", tmp_path)
    result = run("datasets", "list", "--data", tmp_path, COLUMNS="100")
    assert result.exit_code == 0
    rows = {line.split()[1]: line.split()[0] for line in result.stdout.splitlines() if line[:1] in {"✓", "–"}}
    assert {name: here for name, here in rows.items() if here == "✓" and name != "is"} == {"coat": "✓"}
    assert {dataset.name for dataset in datasets.CATALOGUE} <= rows.keys()
    assert "apply: Academic use" in result.stdout


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
    assert result.exit_code == 0, result.output
    assert "terms of use: None stated; cite Schnabel" in result.stderr
    assert f"7 files in {tmp_path}/coat" in result.stdout
    assert "not verified: no digest of this archive is known" in result.stdout
    assert len(datasets.load("coat", tmp_path).log) == 3


def test_a_download_as_json(tmp_path):
    with served(coat=COAT) as address:
        result = run("datasets", "get", "coat", "--data", tmp_path, "--yes", "--url", f"{address}/coat", "--json", "-")
    told = json.loads(result.stdout)
    assert (told["name"], told["folder"], told["verified"]) == ("coat", str(tmp_path / "coat"), None)


def test_without_a_terminal_terms_are_accepted_by_an_option_only(tmp_path):
    result = run("datasets", "get", "coat", "--data", tmp_path)
    assert result.exit_code == 2
    assert "no terminal to ask on; pass --yes to accept them" in result.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("said", "code"), [(True, 0), (False, 1)])
def test_on_a_terminal_the_terms_are_asked_for(tmp_path, monkeypatch, said, code):
    monkeypatch.setattr("typer.confirm", lambda *_args, **_options: said)
    monkeypatch.setattr(sys.modules["openloop.cli.datasets"], "_terminal", lambda: True)
    with served(coat=COAT) as address:
        result = run("datasets", "get", "coat", "--data", tmp_path, "--url", f"{address}/coat")
    assert result.exit_code == code
    assert datasets.present("coat", tmp_path) == said
    assert said or "not downloaded" in result.stderr


def test_a_gated_data_set_says_where_to_apply_without_asking(tmp_path):
    result = run("datasets", "get", "yahoo-r3", "--data", tmp_path)
    assert result.exit_code == 2
    assert "apply for R3" in result.stderr
    assert f"belongs in '{tmp_path}/yahoo-r3'" in result.stderr


def test_a_wrong_digest_is_one_line(tmp_path):
    with served(x=COAT) as address:
        result = run("datasets", "get", "ml-100k", "--data", tmp_path, "--yes", "--url", f"{address}/x")
    assert result.exit_code == 2
    assert "must have the SHA256 50d2a982" in result.stderr
    assert "Traceback" not in result.output
    assert list(tmp_path.iterdir()) == []


def test_an_interruption_exits_with_130_and_leaves_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(fetching, "_download", interrupted)
    result = run("datasets", "get", "coat", "--data", tmp_path, "--yes")
    assert result.exit_code == 130
    assert list(tmp_path.iterdir()) == []


def test_a_check_of_what_is_wrong_exits_with_1(tmp_path):
    result = run("datasets", "check", "coat", "--data", write("coat", tmp_path))
    assert result.exit_code == 1
    assert "2, documented: 290" in result.stdout
    assert "Something is wrong" in result.stdout


def test_a_check_as_json(tmp_path):
    result = run("datasets", "check", "coat", "--data", tmp_path, "--json", tmp_path / "check.json")
    assert result.exit_code == 1
    told = json.loads((tmp_path / "check.json").read_text())
    assert (told["name"], told["ok"], told["findings"][0]["what"]) == ("coat", False, "files")


def test_a_check_of_the_real_coat_passes(data_dir):
    result = run("datasets", "check", "coat", "--data", data_dir("coat").parent)
    assert result.exit_code == 0
    assert "note: 366 cells stand in both files" in result.stdout
    assert "Nothing is wrong." in result.stdout


def test_an_unknown_name_is_refused():
    result = run("datasets", "check", "caot")
    assert result.exit_code == 2
    assert "Did you mean 'coat'?" in result.stderr
