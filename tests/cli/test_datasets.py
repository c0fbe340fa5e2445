"""`openloop datasets`: the list, a download from a server on this machine, and the check."""

from __future__ import annotations

import json
import re
from dataclasses import replace

from openloop.data import datasets
from openloop.data.datasets import fetching, finding
from openloop.data.datasets.records import Shape
from tests.cli.running import interrupted, run
from tests.data.datasets.originals import FILES, write
from tests.data.datasets.serving import served, zipped
from tests.facts import facts

COAT = zipped({f"coat/{path}": text for path, text in FILES["coat"].items()})


def test_the_list_as_json(tmp_path):
    write("coat", tmp_path)
    result = run("datasets", "list", "--data", tmp_path, "--json", "-")
    found = {entry["name"]: entry for entry in json.loads(result.stdout)["datasets"]}
    assert len(found) == 15
    assert found["coat"]["present"]
    assert not found["coat"]["gated"]
    assert found["yahoo-r3"]["gated"]
    assert found["ml-100k"]["archive"]["sha256"].startswith("50d2a982")


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


def test_without_a_terminal_terms_are_accepted_by_an_option_only(tmp_path):
    result = run("datasets", "get", "ml-1m", "--data", tmp_path)
    assert result.exit_code == 2
    assert re.search(facts("ml-1m", "terms", "accepted", "--yes"), result.stderr)
    result = run("datasets", "get", "coat", "--data", tmp_path)
    assert result.exit_code == 2
    assert re.search(facts("coat", "no terms", "--yes"), result.stderr)
    assert list(tmp_path.iterdir()) == []


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


def test_a_check_of_the_real_coat_passes(data_dir):
    result = run("datasets", "check", "coat", "--data", data_dir("coat").parent)
    assert result.exit_code == 0
    assert re.search(facts("366 cells", "Nothing"), result.stdout)
