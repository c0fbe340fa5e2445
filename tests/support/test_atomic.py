"""A file is written whole or not at all."""

from __future__ import annotations

import json
import os
import stat

import pytest

from openloop.errors import InputError
from openloop.support.atomic import json_text, replacing, write_text
from tests.facts import facts


def test_text_arrives_and_nothing_else_is_left(tmp_path):
    path = tmp_path / "out.json"
    write_text(path, "größer\n")
    assert path.read_text(encoding="utf-8") == "größer\n"
    assert list(tmp_path.iterdir()) == [path]


def test_a_failure_keeps_the_old_file_and_leaves_no_other(tmp_path):
    path = tmp_path / "out.txt"
    path.write_text("old")

    def fail():
        with replacing(path) as temporary:
            temporary.write_text("new, but unfin")
            raise RuntimeError("half way")

    with pytest.raises(RuntimeError, match="half way"):
        fail()
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_readers_see_the_old_file_until_the_new_one_is_complete(tmp_path):
    path = tmp_path / "out.txt"
    path.write_text("old")
    with replacing(path) as temporary:
        temporary.write_text("new")
        assert path.read_text() == "old"
        assert temporary.parent == path.parent  # a rename is atomic within one file system
    assert path.read_text() == "new"


def test_the_file_has_the_permissions_that_open_would_give(tmp_path):
    before = os.umask(0o027)
    try:
        write_text(tmp_path / "out.txt", "x")
        assert stat.S_IMODE((tmp_path / "out.txt").stat().st_mode) == 0o640
        assert os.umask(0o027) == 0o027  # and the mask is as it was
    finally:
        os.umask(before)


def test_a_missing_folder_or_a_folder_as_target_is_named(tmp_path):
    with pytest.raises(InputError, match=facts(f"'{tmp_path / 'nowhere'}'", "not exist")):
        write_text(tmp_path / "nowhere" / "out.txt", "x")
    with pytest.raises(InputError, match=facts(f"'{tmp_path}'", "file name")):
        write_text(tmp_path, "x")


def test_names_that_are_not_utf8_are_escaped_as_json_does(tmp_path):
    name = os.fsdecode(b"l\xff.csv")
    text = json_text({"log": name}, tmp_path / "a.json")
    assert json.loads(text) == json.loads((tmp_path / "a.json").read_text(encoding="utf-8")) == {"log": name}
