"""The Netflix Prize: a file a movie, or a few large ones, give the same log."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from openloop.data import datasets
from openloop.data.datasets import netflix
from openloop.errors import FormatError
from tests.data.datasets.originals import FILES, cells, write
from tests.facts import facts

ROWS = [(822109, 1, 5), (822109, 2, 4), (1488844, 1, 3)]
DAY = 86_400_000_000


def test_a_file_a_movie(tmp_path):
    log = datasets.load("netflix", write("netflix", tmp_path)).log
    assert cells(log) == ROWS
    assert log.time[-1] == 13_032 * DAY  # 2005-09-06


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_one_large_file_holds_the_same(tmp_path, end):
    large = tmp_path / "netflix" / "combined_data_1.txt"
    large.parent.mkdir()
    large.write_text("".join(FILES["netflix"].values()).replace("\n", end), encoding="utf-8", newline="")
    assert cells(datasets.load("netflix", tmp_path).log) == ROWS


@pytest.mark.parametrize("size", [1, 2, 7, 30, 64])
@pytest.mark.parametrize("large", [False, True])
def test_how_much_is_parsed_at_a_time_does_not_matter(tmp_path, monkeypatch, size, large):
    monkeypatch.setattr(netflix, "BLOCK", size)
    write("netflix", tmp_path)
    if large:
        shutil.rmtree(tmp_path / "netflix" / "training_set")
        (tmp_path / "netflix" / "combined_data_1.txt").write_text("".join(FILES["netflix"].values()))
    assert cells(datasets.load("netflix", tmp_path).log) == ROWS


@pytest.mark.parametrize(
    "text",
    [
        "1488844,3,2005-09-06\n",
        "1:\n1488844,3\n",
        "1:\n1488844,3,2005-09-06,5\n",
        "1:\n1488844,3,yesterday\n",
        "1:\nx,3,2005-09-06\n",
        "x:\n1,3,2005-09-06\n",
    ],
)
def test_a_line_of_another_form_is_refused(text):
    form, line = "'user,rating,YYYY-MM-DD'", repr(text.splitlines()[-1])
    with pytest.raises(FormatError, match=facts("mv_1.txt", 1, form, "'movie:'", line)):
        netflix.parsed(Path("mv_1.txt"), text.encode())
