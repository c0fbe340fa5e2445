from __future__ import annotations

import gzip

import pytest

from openloop.data.contents import existing, head_of, tail_of, unpacked, whole
from openloop.errors import FormatError, InputError
from tests.facts import facts

TEXT = b"user,item,rating\n" * 1000


def test_gzip_is_unpacked_whatever_its_name(tmp_path):
    for name in ("log.csv.gz", "log.csv"):
        path = tmp_path / name
        path.write_bytes(gzip.compress(TEXT))
        contents = unpacked(path)
        assert whole(contents) == TEXT
        assert (head_of(contents, 4), tail_of(contents, 4)) == (b"user", b"ing\n")


@pytest.mark.parametrize("keep", [0.3, 0.9])
def test_cut_gzip(tmp_path, keep):
    data = gzip.compress(TEXT)
    path = tmp_path / "log.csv.gz"
    path.write_bytes(data[: int(len(data) * keep)])
    with pytest.raises(FormatError, match=facts("log.csv.gz", "cut short", "gzip")):
        unpacked(path)


def test_a_missing_file_brings_near_names(tmp_path):
    (tmp_path / "ratings.csv").write_bytes(TEXT)
    with pytest.raises(InputError, match=facts(tmp_path / "rating.csv", "no such", "'ratings.csv'")):
        existing(tmp_path / "rating.csv")
    with pytest.raises(InputError, match=facts("rating.csv", "no such", f"'{tmp_path / 'nowhere'}'")):
        existing(tmp_path / "nowhere" / "rating.csv")


# -- what unpacks to too much --------------------------------------------------------------------------------


def _bomb(path, size):
    with gzip.open(path, "wb", 9) as file:
        for _ in range(size // 2**20):
            file.write(bytes(2**20))
    return path


def test_a_small_file_that_unpacks_to_much_is_refused_before_it_is_all_unpacked(tmp_path, monkeypatch):
    monkeypatch.setattr("openloop.data.contents.HARMLESS", 2**22)
    path = _bomb(tmp_path / "log.csv.gz", 2**25)
    with pytest.raises(FormatError, match=facts("log.csv.gz", "200 times", "6.", "by hand")):
        unpacked(path)
    assert len(whole(unpacked(_bomb(path, 2**22)))) == 2**22
