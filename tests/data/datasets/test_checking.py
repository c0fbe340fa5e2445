"""`check`: what is missing, broken, or not as documented."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from openloop.data import datasets
from openloop.data.datasets import checking, finding
from openloop.data.datasets.records import Shape
from tests.data.datasets.originals import BANDIT, write
from tests.facts import facts


def finds(check, what, good, *told):
    """Whether the check has one such finding, with that verdict and those facts."""
    (one,) = [finding for finding in check.findings if finding.what == what]
    return one.good is good and re.search(facts(*told), one.found) is not None


def documented(monkeypatch, name, *shapes):
    """Let the catalogue document these shapes."""
    monkeypatch.setattr(finding, "CATALOGUE", (replace(datasets.find(name), shapes=shapes),))


def test_a_data_set_that_is_absent_is_told_with_the_remedy(tmp_path):
    check = datasets.check("coat", tmp_path)
    assert not check.ok
    assert finds(check, "files", False, "coat", f"'{tmp_path}/coat'", "`openloop datasets get coat`")


def test_files_that_do_not_parse_are_told(tmp_path):
    check = datasets.check("coat", write("coat", tmp_path, train="0 x\n"))
    assert not check.ok
    assert finds(check, "files", True, 7, f"'{tmp_path}/coat'")
    assert finds(check, "contents", False, "train.ascii", "line 1", "'x'")


def test_counts_are_held_against_the_documented_ones(tmp_path):
    check = datasets.check("coat", write("coat", tmp_path))
    assert not check.ok
    assert finds(check, "users", False, 2, 290)
    assert finds(check, "open-loop rows", False, 3, "4,640")
    assert check.shape == Shape(users=2, items=3, rows=3, open_loop=3)


def test_a_data_set_as_documented_passes(tmp_path, monkeypatch):
    documented(monkeypatch, "coat", Shape(users=2, items=3, rows=3, open_loop=3))
    check = datasets.check("coat", write("coat", tmp_path))
    assert check.ok
    assert finds(check, "rows", True, 3)
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
    check = datasets.check("ml-100k", write("ml-100k", tmp_path))
    known = "06416e597f82b7342361e41163890c81036900f418ad91315590814211dca490"
    assert finds(check, "SHA-256 of u.data", False, known, "fetch")


def test_impressions_are_counted(tmp_path):
    check = datasets.check("open-bandit", write("open-bandit", tmp_path))
    assert check.ok
    assert finds(check, "contents", None, "4 impressions", "2 policies", "26,000,000")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        pytest.param("x\n1\n", ("column 'item_id'",), id="no columns"),
        pytest.param(
            BANDIT + "0,t,x,1,0,1,u,0\n", ("men.csv", "line 2", "whole number", "item_id", "'x'"), id="item as text"
        ),
        pytest.param(BANDIT + "0,t,1,1,0,1.5,u,0\n", ("propensities", "(0, 1]", 1.5), id="propensity"),
        pytest.param(BANDIT + "0,t,1,1,7,1,u,0\n", ("clicks", 0, 1, 7), id="click"),
        pytest.param(BANDIT.replace("propensity_score", "p"), ("column 'propensity_score'",), id="no propensity"),
    ],
)
def test_broken_impressions_are_told(tmp_path, text, told):
    check = datasets.check("open-bandit", write("open-bandit", tmp_path, men=text))
    assert not check.ok
    assert finds(check, "contents", False, *told)


def test_a_file_that_cannot_be_read_is_told(tmp_path, monkeypatch):
    def denied(*_args):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(checking, "loaded", denied)
    check = datasets.check("coat", write("coat", tmp_path))
    assert finds(check, "contents", False, "[Errno 13]", "Permission denied")


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"train": "0 2 0\n9 0 1\n"}, ("train.ascii", "ratings", "1 to 5", "1 of 3", 9)),
        ({"propensities": "0.1 0.5 0.2\n0.25 0.01 1.5\n"}, ("1 of 6 propensities", "(0, 1]", 1.5, "line 2")),
        ({"user_features": "0 1\n"}, ("user_features.ascii", "2 users", 1)),
    ],
)
def test_what_loading_refuses_is_told(tmp_path, changes, told):
    check = datasets.check("coat", write("coat", tmp_path, **changes))
    assert not check.ok
    assert finds(check, "contents", False, *told)
    assert not finds(check, "contents", False, "datasets check")  # that is what one has just asked for


def test_an_optional_file_that_is_not_there_is_a_note(tmp_path, monkeypatch):
    documented(monkeypatch, "coat", Shape(users=2, items=3, rows=3, open_loop=3))
    write("coat", tmp_path)
    (tmp_path / "coat" / "propensities.ascii").unlink()
    check = datasets.check("coat", tmp_path)
    assert check.ok
    assert re.search(facts("propensities.ascii", "published propensities"), check.notes[-1])


def test_a_check_prints_as_a_table_with_a_verdict(tmp_path, monkeypatch):
    documented(monkeypatch, "ml-1m", Shape(users=9, items=2, rows=3))
    name, *findings, verdict = str(datasets.check("ml-1m", write("ml-1m", tmp_path))).splitlines()
    assert name == "ml-1m"
    assert [line[:9] for line in findings] == ["✓ files  ", "✗ users  ", "✓ items  ", "✓ rows   "]
    for line, told in zip(findings, [(1, f"'{tmp_path}/ml-1m'"), (2, 9), (2,), (3,)], strict=True):
        assert re.search(facts(*told), line)
    assert "✗" in verdict


@pytest.mark.parametrize(
    ("name", "folder"),
    [("coat", "coat"), ("ml-100k", "ml-100k"), ("ml-1m", "ml-1m-half"), ("lastfm-hetrec", "lastfm-hetrec")],
)
def test_the_real_files_pass(data_dir, name, folder):
    assert datasets.check(name, data_dir(folder).parent).ok
