"""A file is written whole or not at all."""

from __future__ import annotations

import errno
import json
import os
import stat
import subprocess
import sys
import threading

import numpy as np
import polars as pl
import pytest
from safetensors.numpy import save_file

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


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o664, 0o444])
def test_a_file_that_was_there_keeps_its_mode_and_is_private_while_it_is_written(tmp_path, mode):
    path = tmp_path / "out.txt"
    path.write_text("old")
    path.chmod(mode)
    with replacing(path) as temporary:
        temporary.write_text("new")
        assert stat.S_IMODE(temporary.stat().st_mode) == 0o600
    assert path.read_text() == "new"
    assert stat.S_IMODE(path.stat().st_mode) == mode


def test_the_bytes_are_on_the_disk_before_the_name_and_the_name_before_the_end(tmp_path, monkeypatch):
    path, told, kept, rename = tmp_path / "out.txt", [], os.fsync, os.rename

    def sync(handle):
        told.append(("kept", os.path.realpath(f"/proc/self/fd/{handle}")))
        kept(handle)

    def replace(old, new):
        told.append(("renamed", str(new)))
        rename(old, new)

    monkeypatch.setattr(os, "fsync", sync)
    monkeypatch.setattr(os, "replace", replace)
    with replacing(path) as temporary:
        temporary.write_text("new")
    assert told == [("kept", str(temporary)), ("renamed", str(path)), ("kept", str(tmp_path))]


def test_a_disk_that_fails_while_it_keeps_the_bytes_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "out.txt"
    path.write_text("old")

    def fails(_handle):
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(os, "fsync", fails)
    with pytest.raises(OSError, match=r"out\.txt") as caught:
        write_text(path, "new")
    assert (caught.value.errno, caught.value.filename) == (errno.EIO, str(path))
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


WRITERS = {
    "text": lambda path: path.write_text("x" * 100_000),
    "numpy": lambda path: np.arange(100_000.0).tofile(path),
    "safetensors": lambda path: save_file({"x": np.arange(100_000.0)}, path),
    "csv": lambda path: pl.DataFrame({"x": np.arange(100_000.0)}).write_csv(path),
    "parquet": lambda path: pl.DataFrame({"x": np.arange(100_000.0)}).write_parquet(path, compression="uncompressed"),
}


@pytest.mark.parametrize("writer", WRITERS)
def test_a_full_disk_is_an_os_error_with_the_name_of_the_output_whoever_writes(tmp_path, small_files, writer):
    path = tmp_path / "out"
    path.write_text("old")

    def write():
        with replacing(path) as temporary:
            WRITERS[writer](temporary)

    with small_files(20_000), pytest.raises(OSError, match="out") as caught:
        write()
    assert caught.value.errno in (errno.EFBIG, errno.ENOSPC)
    assert caught.value.filename == str(path)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_threads_write_their_files_with_the_mode_of_the_process(tmp_path):
    paths = [tmp_path / f"{k}.txt" for k in range(50)]
    threads = [threading.Thread(target=write_text, args=(path, "x")) for path in paths]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    (tmp_path / "plain").write_text("")
    assert {path.stat().st_mode for path in paths} == {(tmp_path / "plain").stat().st_mode}


def test_what_a_killed_process_left_goes_when_the_folder_is_written_next(tmp_path):
    program = (
        "import os, sys; from openloop.support.atomic import replacing\n"
        "with replacing(sys.argv[1]) as temporary: temporary.write_text('half'); os.kill(os.getpid(), 9)"
    )
    path = tmp_path / "out.txt"
    subprocess.run([sys.executable, "-c", program, str(path)], check=False)
    assert len(list(tmp_path.iterdir())) == 1
    write_text(tmp_path / "other.txt", "x")
    assert [file.name for file in tmp_path.iterdir()] == ["other.txt"]


def test_names_that_are_not_utf8_are_escaped_as_json_does(tmp_path):
    name = os.fsdecode(b"l\xff.csv")
    text = json_text({"log": name}, tmp_path / "a.json")
    assert json.loads(text) == json.loads((tmp_path / "a.json").read_text(encoding="utf-8")) == {"log": name}
