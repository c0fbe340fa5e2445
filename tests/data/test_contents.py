from __future__ import annotations

import gzip

import pytest

from openloop.data.contents import blanked, existing, head_of, tail_of, unpacked, unreadable, whole
from openloop.errors import FormatError, InputError
from tests.facts import facts

TEXT = b"user,item,rating\n" * 1000


def test_plain_files_are_read_where_they_are(tmp_path):
    path = tmp_path / "log.csv"
    path.write_bytes(TEXT)
    assert unpacked(path) == path
    assert whole(path) == TEXT
    assert (head_of(path, 4), tail_of(path, 4)) == (b"user", b"ing\n")
    assert (head_of(path), tail_of(path)) == (TEXT, TEXT)


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


def test_not_gzip(tmp_path):
    path = tmp_path / "log.csv.gz"
    path.write_bytes(TEXT)
    with pytest.raises(FormatError, match=facts("log.csv.gz", "named .gz", "gzip")):
        unpacked(path)


def test_a_missing_file_brings_near_names(tmp_path):
    (tmp_path / "ratings.csv").write_bytes(TEXT)
    with pytest.raises(InputError, match=facts(tmp_path / "rating.csv", "no such", "'ratings.csv'")):
        existing(tmp_path / "rating.csv")
    with pytest.raises(InputError, match=facts("rating.csv", "no such", f"'{tmp_path / 'nowhere'}'")):
        existing(tmp_path / "nowhere" / "rating.csv")


def test_a_folder_and_an_empty_file(tmp_path):
    with pytest.raises(InputError, match=facts(tmp_path, "folder", "one file")):
        existing(tmp_path)
    (tmp_path / "log.csv").touch()
    with pytest.raises(FormatError, match=facts("log.csv", "empty")):
        existing(tmp_path / "log.csv")


def test_the_error_recognises_other_formats(tmp_path):
    path = tmp_path / "log.csv"
    path.write_bytes(b"PAR1....")
    assert "Parquet" in str(unreadable(path, "first\nsecond"))
    assert "second" not in str(unreadable(path, "first\nsecond"))


def test_lines_that_are_no_rows_become_blank_and_others_keep_their_number(tmp_path):
    path = tmp_path / "log.csv"
    path.write_bytes(b"\xef\xbb\xbfhead\n# a\r\n1,2\n 3 # 4\n#5")
    assert blanked(path, 0, None) == path
    assert blanked(path, 1, None) == b"\n# a\r\n1,2\n 3 # 4\n#5"
    assert blanked(path, 1, "#") == b"\n\n1,2\n 3 # 4\n"
    assert blanked(b"a\nb", 5, None) == b"\n"
