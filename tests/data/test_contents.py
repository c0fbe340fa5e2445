from __future__ import annotations

import gzip
import os

import pytest

from openloop.data.contents import blanked, existing, first_lines, head_of, tail_of, unpacked, unreadable, whole
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


def test_a_pipe_is_not_called_empty(tmp_path):
    os.mkfifo(tmp_path / "log.csv")
    with pytest.raises(InputError, match=facts("log.csv", "ordinary file", "pipe", "save it first")):
        existing(tmp_path / "log.csv")


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


def test_no_more_is_unpacked_than_half_the_memory(tmp_path, monkeypatch):
    monkeypatch.setattr("openloop.data.contents.total_memory", lambda: 2**22)
    with pytest.raises(FormatError, match=facts("log.csv.gz", "2 MiB", "half the memory")):
        unpacked(_bomb(tmp_path / "log.csv.gz", 2**23))


def test_a_log_that_packs_well_is_read(tmp_path):
    path = tmp_path / "log.csv.gz"
    text = b"user,item,rating\n" + b"".join(b"%d,7,5\n" % n for n in range(300_000))
    path.write_bytes(gzip.compress(text))
    assert whole(unpacked(path)) == text


def test_a_name_that_no_system_takes(tmp_path):
    with pytest.raises(InputError, match=facts("cannot be read", "name")):
        existing(tmp_path / ("x" * 5000))


def test_the_first_line_is_read_whole(tmp_path):
    path = tmp_path / "log.csv"
    path.write_bytes(b"a" * 100_000 + b"\nb\n")
    assert first_lines(path) == path.read_bytes()
    path.write_bytes(b"a\n" * 100_000)
    assert first_lines(path) == b"a\n" * 2**15


def test_more_lines_are_skipped_than_any_file_has():
    assert blanked(b"a\nb\n", 10**30, None) == b"\n\n"
