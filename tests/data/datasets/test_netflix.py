"""The Netflix Prize: a file a movie, or a few large ones, give the same log."""

from __future__ import annotations

import pytest

from openloop.data import datasets
from tests.data.datasets.originals import FILES, cells, write

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
