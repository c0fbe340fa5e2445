"""Compiled kernels are kept where they can be; what cannot be kept or read is compiled again."""

from __future__ import annotations

import importlib.util
import os
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from openloop.kernels.caching import private_folder
from tests.others import another, as_another

KERNELS = Path(__file__).resolve().parents[2] / "src" / "openloop" / "kernels"

MODULE = """
from openloop.kernels.compiling import njit

@njit(cache=True, nogil=True)
def total(x):
    s = 0.0
    for v in x:
        s += v
    return s
"""
PROGRAM = """
import numpy as np, own
print(own.total(np.arange(4.0)), sum(own.total.stats.cache_hits.values()), own.total.stats.cache_path)
"""


@pytest.fixture
def place(tmp_path):
    """A module with a kernel, and a folder where it is kept."""
    (tmp_path / "own.py").write_text(MODULE)
    (tmp_path / "kept").mkdir()
    return tmp_path


@pytest.fixture
def summed(place, monkeypatch):
    """The sum by a kernel that is loaded anew, and how often its compiled code was found."""
    monkeypatch.setattr("numba.config.CACHE_DIR", str(place / "kept"))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # a full disk leaves it in halves

    def ask():
        spec = importlib.util.spec_from_file_location("own", place / "own.py")
        own = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(own)
        return own.total(np.arange(4.0)), sum(own.total.stats.cache_hits.values())

    return ask


def entries(place):
    return sorted(file for file in (place / "kept").rglob("*") if file.suffix in (".nbi", ".nbc"))


def test_what_was_compiled_is_found_again(place, summed):
    assert summed() == (6, 0)
    assert [file.suffix for file in entries(place)] == [".nbc", ".nbi"]
    assert summed() == (6, 1)


def flipped(content):
    middle = len(content) // 2
    return content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]


DAMAGES = {
    "empty": lambda _content: b"",
    "cut off": lambda content: content[:-7],
    "half": lambda content: content[: len(content) // 2],
    "a bit": flipped,
    "garbage": lambda _content: bytes(range(256)) * 8,
    "a foreign object": lambda _content: pickle.dumps(("another", {"object": 1})) * 2,
    "numba's own": lambda content: content[:-32],  # as it was written without a digest
}


@pytest.mark.parametrize("suffix", [".nbi", ".nbc"])
@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_entry_is_compiled_again_and_kept(place, summed, damage, suffix):
    summed()
    (file,) = (file for file in entries(place) if file.suffix == suffix)
    file.write_bytes(DAMAGES[damage](file.read_bytes()))
    assert summed() == (6, 0)
    assert summed() == (6, 1)


def test_an_entry_that_can_neither_be_read_nor_replaced_is_compiled_each_time(place, summed):
    summed()
    for file in entries(place):
        file.unlink()
        file.mkdir()
    for _ in range(2):
        assert summed() == (6, 0)


def test_a_disk_that_is_full_keeps_nothing_and_the_kernel_works(place, summed, small_files):
    with small_files(100):
        assert summed() == (6, 0)
    assert [path for path in (place / "kept").rglob("*") if path.is_file()] == []
    assert [summed(), summed()] == [(6, 0), (6, 1)]


# -- folders that cannot be written --------------------------------------------------------------------------

LOCKED = "import tempfile; tempfile.tempdir = {!r}\n"


def locked(place, temporary):
    """The sum, how often compiled code was found, and where it is kept, for a user who can write nothing here."""
    for folder in (place, place / "kept"):
        folder.chmod(0o755)
    program = LOCKED.format(str(temporary)) + PROGRAM
    settings = {"NUMBA_CACHE_DIR": str(place / "kept"), "PYTHONPATH": str(place), "HOME": "/nonexistent"}
    done = subprocess.run(
        [*as_another(), sys.executable, "-c", program], capture_output=True, text=True, check=False, cwd=place,
        env=os.environ | settings,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.split()


def test_where_nothing_can_be_written_kernels_are_kept_among_temporary_files(place):
    temporary = place / "tmp"
    temporary.mkdir()
    temporary.chmod(0o1777)
    assert locked(place, temporary)[:2] == ["6.0", "0"]
    found = locked(place, temporary)
    assert found[:2] == ["6.0", "1"]
    assert found[2].startswith(str(temporary / "openloop-numba-"))
    (folder,) = temporary.iterdir()
    assert folder.stat().st_mode & 0o777 == 0o700


def test_where_there_are_no_temporary_files_either_kernels_are_compiled_each_time(place):
    for _ in range(2):
        assert locked(place, place / "kept") == ["6.0", "0", "None"]


# Nobody but root can make a folder for another user.
TRAPS = ["open to others", "a link", "a file", *(["of another user"] if os.geteuid() == 0 else [])]


@pytest.mark.parametrize("trap", TRAPS)
def test_a_temporary_folder_that_another_user_can_write_is_not_trusted(place, trap):
    temporary = place / "tmp"
    temporary.mkdir()
    temporary.chmod(0o1777)
    planted = temporary / f"openloop-numba-{another()}"
    if trap == "a file":
        planted.write_text("")
    elif trap == "a link":
        (place / "elsewhere").mkdir()
        (place / "elsewhere").chmod(0o777)
        planted.symlink_to(place / "elsewhere")
    else:
        planted.mkdir()
        planted.chmod(0o777)
        if trap == "open to others":
            os.chown(planted, another(), -1)
    assert locked(place, temporary) == ["6.0", "0", "None"]


def test_a_folder_in_which_anyone_may_rename_is_not_trusted(place, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(place))
    monkeypatch.setenv("TMPDIR", str(place))
    place.chmod(0o777)
    assert private_folder() is None
    place.chmod(0o1777)
    assert private_folder() == place / f"openloop-numba-{os.getuid()}"


def test_the_working_folder_is_no_temporary_one(place, monkeypatch):
    monkeypatch.chdir(place)
    monkeypatch.setattr("tempfile.tempdir", str(place))
    for name in ("TMPDIR", "TEMP", "TMP"):
        monkeypatch.delenv(name, raising=False)
    assert private_folder() is None
    monkeypatch.setenv("TMPDIR", str(place))
    assert private_folder() == place / f"openloop-numba-{os.getuid()}"


def test_every_kernel_is_kept_in_this_way():
    own = {"compiling.py", "caching.py"}
    texts = {file.name: file.read_text(encoding="utf-8") for file in KERNELS.glob("*.py") if file.name not in own}
    assert sum("import njit" in text or ", njit" in text for text in texts.values()) > 20
    assert [name for name, text in texts.items() if "from numba" in text or "import numba" in text] == []
