"""What a process that was killed left is removed by a later one; nothing else is."""

from __future__ import annotations

import subprocess
import sys

import pytest

from openloop.support.leftovers import hidden, left_behind, remove_leftovers, sweep, work_folder

LEAVES = """
import os, sys
from pathlib import Path
from openloop.support.leftovers import hidden, marked
here = Path(sys.argv[1])
hidden(here / "out.csv").write_text("half")
folder = here / marked("openloop-blocks")
folder.mkdir()
(folder / "0.rows").write_text("half")
print(marked("x"), flush=True)
if len(sys.argv) > 2:
    sys.stdin.read()
os.kill(os.getpid(), 9)
"""


def killed(folder):
    """Let a process leave a file and a folder, and die."""
    done = subprocess.run([sys.executable, "-c", LEAVES, str(folder)], stdout=subprocess.PIPE, check=False)
    assert done.returncode == -9


def test_what_a_killed_process_left_is_swept_once(tmp_path):
    killed(tmp_path)
    assert len(list(tmp_path.iterdir())) == 2
    sweep(tmp_path)
    assert list(tmp_path.iterdir()) == []
    killed(tmp_path)
    sweep(tmp_path)  # a process looks once: a folder may have many files, and be written to often
    assert len(list(tmp_path.iterdir())) == 2
    remove_leftovers(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_what_a_process_that_runs_is_writing_stays(tmp_path):
    hidden(tmp_path / "mine").write_text("half")
    other = subprocess.Popen(
        [sys.executable, "-c", LEAVES, str(tmp_path), "wait"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        name = other.stdout.readline().decode().strip()
        remove_leftovers(tmp_path)
        assert len(list(tmp_path.iterdir())) == 3
        assert not left_behind(name)
    finally:
        other.communicate()
    assert left_behind(name)


OTHERS = [
    "out.csv",
    ".out.csv.x7f_3k2a",  # of tempfile
    ".out.csv.swp",
    "notes.openloop",
    ".openloop.json",
    ".out.csv.0123abcd-99999999-1-0123abcd.openloop",  # of another host
    ".0123abcd-99999999-1-0123abcd.openloop.txt",
    ".0123abcd-99999999-1-0123abcd.openloop",  # no name before the mark
]


@pytest.mark.parametrize("name", OTHERS)
def test_nothing_else_is_removed(tmp_path, name):
    (tmp_path / name).write_text("mine")
    remove_leftovers(tmp_path)
    assert (tmp_path / name).read_text() == "mine"


def test_a_work_folder_is_private_and_goes_with_its_block(tmp_path):
    def fails():
        with work_folder(tmp_path / ".parts") as folder:
            assert folder.stat().st_mode & 0o777 == 0o700
            (folder / "0.parquet").write_text("half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fails()
    assert list(tmp_path.iterdir()) == []
