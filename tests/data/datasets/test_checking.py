"""`check`: what is missing, broken, or not as documented."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from openloop.data import datasets
from openloop.data.datasets import finding
from openloop.data.datasets.records import Shape
from tests.data.datasets.originals import write
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


@pytest.mark.parametrize(
    ("name", "folder"),
    [("coat", "coat"), ("ml-100k", "ml-100k"), ("ml-1m", "ml-1m-half"), ("lastfm-hetrec", "lastfm-hetrec")],
)
def test_the_real_files_pass(data_dir, name, folder):
    assert datasets.check(name, data_dir(folder).parent).ok
