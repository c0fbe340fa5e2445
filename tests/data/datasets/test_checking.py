"""`check`: what is missing, broken, or not as documented."""

from __future__ import annotations

from dataclasses import replace

import pytest

from openloop.data import datasets
from openloop.data.datasets import checking, finding
from openloop.data.datasets.records import Shape
from tests.data.datasets.originals import BANDIT, write


def told(check):
    return {finding.what: (finding.good, finding.found) for finding in check.findings}


def documented(monkeypatch, name, *shapes):
    """Let the catalogue document these shapes."""
    monkeypatch.setattr(finding, "CATALOGUE", (replace(datasets.find(name), shapes=shapes),))


def test_a_data_set_that_is_absent_is_told_with_the_remedy(tmp_path):
    check = datasets.check("coat", tmp_path)
    assert not check.ok
    assert told(check)["files"][1].startswith(f"coat: no folder '{tmp_path}/coat'; `openloop datasets get coat`")


def test_files_that_do_not_parse_are_told(tmp_path):
    check = datasets.check("coat", write("coat", tmp_path, train="0 x\n"))
    assert not check.ok
    assert told(check)["files"] == (True, f"7 in '{tmp_path}/coat'")
    assert "train.ascii: must hold a matrix" in told(check)["contents"][1]


def test_counts_are_held_against_the_documented_ones(tmp_path):
    check = datasets.check("coat", write("coat", tmp_path))
    assert not check.ok
    assert told(check)["users"] == (False, "2, documented: 290")
    assert told(check)["open-loop rows"] == (False, "3, documented: 4,640")
    assert check.shape == Shape(users=2, items=3, rows=3, open_loop=3)


def test_a_data_set_as_documented_passes(tmp_path, monkeypatch):
    documented(monkeypatch, "coat", Shape(users=2, items=3, rows=3, open_loop=3))
    check = datasets.check("coat", write("coat", tmp_path))
    assert check.ok
    assert told(check)["rows"] == (True, "3")
    assert check.notes == datasets.load("coat", tmp_path).notes


def test_rows_are_counted_before_those_that_repeat_a_pair_are_left_out(tmp_path, monkeypatch):
    documented(monkeypatch, "kuairand", Shape(users=2, items=3, rows=4, open_loop=2))
    assert datasets.check("kuairand", write("kuairand", tmp_path)).ok


def test_another_known_version_passes_and_is_named(tmp_path, monkeypatch):
    documented(monkeypatch, "ml-1m", Shape(users=9, items=9, rows=9), Shape(users=2, items=2, rows=3, version="small"))
    check = datasets.check("ml-1m", write("ml-1m", tmp_path))
    assert check.ok
    assert check.notes == ("version: small",)


def test_a_file_of_another_digest_is_told(tmp_path):
    good, said = told(datasets.check("ml-100k", write("ml-100k", tmp_path)))["SHA-256 of u.data"]
    assert not good
    assert said.endswith("should be 06416e597f82b7342361e41163890c81036900f418ad91315590814211dca490; fetch it again")


def test_impressions_are_counted(tmp_path):
    check = datasets.check("open-bandit", write("open-bandit", tmp_path))
    assert check.ok
    assert told(check)["contents"] == (
        None,
        "4 impressions of 2 policies; documented: about 26,000,000 impressions",
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x\n1\n", "must have a column 'item_id'"),
        (BANDIT + "0,t,x,1,0,1,u,0\n", "men.csv: line 2 must have a whole number as item_id, and has 'x'"),
        (BANDIT + "0,t,1,1,0,1.5,u,0\n", "propensities must lie in (0, 1], got 1.5 … 1.5"),
        (BANDIT + "0,t,1,1,7,1,u,0\n", "clicks must be 0 or 1, got 7 … 7"),
        (BANDIT.replace("propensity_score", "p"), "must have a column 'propensity_score'"),
    ],
)
def test_broken_impressions_are_told(tmp_path, text, message):
    check = datasets.check("open-bandit", write("open-bandit", tmp_path, men=text))
    assert not check.ok
    assert message in told(check)["contents"][1]


def test_a_file_that_cannot_be_read_is_told(tmp_path, monkeypatch):
    def denied(*_args):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(checking, "loaded", denied)
    assert told(datasets.check("coat", write("coat", tmp_path)))["contents"] == (False, "[Errno 13] Permission denied")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"train": "0 2 0\n9 0 1\n"}, "train.ascii: ratings must be whole numbers from 1 to 5, and 1 of 3 are not"),
        (
            {"propensities": "0.1 0.5 0.2\n0.25 0.01 1.5\n"},
            "1 of 6 propensities are outside (0, 1], first 1.5 in line 2",
        ),
        ({"user_features": "0 1\n"}, "user_features.ascii: must have a line for each of the 2 users, got 1"),
    ],
)
def test_what_loading_refuses_is_told(tmp_path, changes, message):
    check = datasets.check("coat", write("coat", tmp_path, **changes))
    assert not check.ok
    assert message in told(check)["contents"][1]
    assert "datasets check" not in told(check)["contents"][1]  # that is what one has just asked for


def test_an_optional_file_that_is_not_there_is_a_note(tmp_path, monkeypatch):
    documented(monkeypatch, "coat", Shape(users=2, items=3, rows=3, open_loop=3))
    write("coat", tmp_path)
    (tmp_path / "coat" / "propensities.ascii").unlink()
    check = datasets.check("coat", tmp_path)
    assert check.ok
    assert check.notes[-1] == "without propensities.ascii: no published propensities"


def test_a_check_prints_as_a_table_with_a_verdict(tmp_path, monkeypatch):
    documented(monkeypatch, "ml-1m", Shape(users=9, items=2, rows=3))
    assert str(datasets.check("ml-1m", write("ml-1m", tmp_path))).splitlines() == [
        "ml-1m",
        f"✓ files  1 in '{tmp_path}/ml-1m'",
        "✗ users  2, documented: 9",
        "✓ items  2",
        "✓ rows   3",
        "Something is wrong: see ✗ above.",
    ]


@pytest.mark.parametrize(
    ("name", "folder"),
    [("coat", "coat"), ("ml-100k", "ml-100k"), ("ml-1m", "ml-1m-half"), ("lastfm-hetrec", "lastfm-hetrec")],
)
def test_the_real_files_pass(data_dir, name, folder):
    assert datasets.check(name, data_dir(folder).parent).ok
