"""What a process that was killed left is removed by a later one; nothing else is."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from openloop.support import leftovers
from openloop.support.leftovers import hidden, left_behind, marked, remove_leftovers, sweep, work_folder

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


def test_a_name_is_hidden_beside_its_target_and_new_each_time(tmp_path):
    target = tmp_path / "out.csv"
    names = {hidden(target) for _ in range(100)}
    assert len(names) == 100
    assert {name.parent for name in names} == {tmp_path}
    assert all(name.name.startswith(".out.csv.") and f"-{os.getpid()}-" in name.name for name in names)


@pytest.mark.parametrize("name", ["x" * 255, "ü" * 127, "x" * 180, "x" * 181])
def test_the_longest_name_that_a_file_may_have_has_a_hidden_one(tmp_path, name):
    (tmp_path / name).write_text("")
    hidden(tmp_path / name).write_text("")


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


def test_a_process_of_the_same_number_that_began_later_is_another_one():
    mine = marked("x")
    assert not left_behind(mine)
    start = leftovers._start(os.getpid())
    assert left_behind(mine.replace(f"-{start}-", f"-{start + 1}-"))


def test_a_process_that_ended_and_was_not_waited_for_is_gone():
    program = "from openloop.support.leftovers import marked; print(marked('x'))"
    ended = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE)
    name = ended.stdout.read().decode().strip()
    os.waitid(os.P_PID, ended.pid, os.WEXITED | os.WNOWAIT)
    assert left_behind(name)
    ended.communicate()


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


def test_a_link_is_removed_and_what_it_leads_to_is_not(tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "log.csv").write_text("mine")
    mark = marked(".link").replace(f"-{os.getpid()}-", "-99999999-")
    (tmp_path / mark).symlink_to(tmp_path / "mine")
    remove_leftovers(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]
    assert (tmp_path / "mine" / "log.csv").read_text() == "mine"


def test_a_folder_that_is_not_there_has_no_leftovers(tmp_path):
    remove_leftovers(tmp_path / "nowhere")
    assert list(tmp_path.iterdir()) == []


def test_a_work_folder_is_private_and_goes_with_its_block(tmp_path):
    def fails():
        with work_folder(tmp_path / ".parts") as folder:
            assert folder.stat().st_mode & 0o777 == 0o700
            (folder / "0.parquet").write_text("half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fails()
    assert list(tmp_path.iterdir()) == []


def test_a_signal_while_a_work_folder_is_removed_waits_until_it_is_gone(tmp_path, monkeypatch):
    def interrupted(folder, **_options):
        monkeypatch.undo()
        (folder / "0.parquet").unlink()
        raise KeyboardInterrupt

    def ends():
        with work_folder(tmp_path / ".parts") as folder:
            (folder / "0.parquet").write_text("all of it")
            (folder / "1.parquet").write_text("and more")
            monkeypatch.setattr(shutil, "rmtree", interrupted)

    with pytest.raises(KeyboardInterrupt):
        ends()
    assert list(tmp_path.iterdir()) == []


def test_two_work_folders_of_one_name_do_not_meet(tmp_path):
    with work_folder(tmp_path / ".parts") as one, work_folder(tmp_path / ".parts") as two:
        assert one != two
        assert Path(one).is_dir()
        assert Path(two).is_dir()
