"""JSON from elsewhere is read, or refused in one line that names the file, the rule, the value and the remedy."""

from __future__ import annotations

import os

import pytest

from openloop.errors import FormatError, InputError
from openloop.support import foreign
from openloop.support.foreign import read_json
from tests.facts import facts

AGAIN = "write it again"


@pytest.fixture
def held(tmp_path):
    def hold(content):
        path = tmp_path / "x.json"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return hold


def test_plain_values_come_as_they_are(held):
    assert read_json(held('\ufeff{"a": [1, 2.5, "é", null, true]}'), AGAIN) == {"a": [1, 2.5, "é", None, True]}
    assert read_json(held("-9223372036854775808"), AGAIN) == -(2**63)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b'{"a": \xff}', ("UTF-8", "byte 6")),
        ("{", ("JSON", "line 1, column 2")),
        ("", ("JSON", "line 1")),
        ('{"a": NaN}', ("finite", "NaN")),
        ("[-Infinity]", ("finite", "-Infinity")),
        ("1e999", ("finite", "'1e999'")),
        ("9" * 100, ("finite", f"'{'9' * 100}'")),
        ("9" * 5000, ("finite", f"'{'9' * 200}'")),
        ("[" * 200_000, ("nested",)),
        ('{"a":' * 200_000, ("nested",)),
    ],
)
def test_what_is_no_json_of_ours_is_refused(held, content, told):
    path = held(content)
    with pytest.raises(FormatError, match=facts(path, *told, AGAIN)) as refused:
        read_json(path, AGAIN)
    assert len(str(refused.value)) < 600


def test_a_file_that_is_too_large_is_not_read(held, monkeypatch):
    path = held("")
    os.truncate(path, 2**30)  # of zeros, which take no room
    with pytest.raises(InputError, match=facts(path, "256 MiB", "1 GiB", AGAIN)):
        read_json(path, AGAIN)
    monkeypatch.setattr(foreign, "MOST_BYTES", 3)
    assert read_json(held("[1]"), AGAIN) == [1]
    with pytest.raises(InputError, match=facts(path, AGAIN)):
        read_json(held("[10]"), AGAIN)


def test_a_pipe_is_refused_and_does_not_hang(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match=facts("pipe", "ordinary file")):
        read_json(tmp_path / "pipe", AGAIN)


def test_a_file_that_is_not_there_is_the_systems_word(tmp_path):
    with pytest.raises(FileNotFoundError):
        read_json(tmp_path / "none.json", AGAIN)
    with pytest.raises(IsADirectoryError):
        read_json(tmp_path, AGAIN)
