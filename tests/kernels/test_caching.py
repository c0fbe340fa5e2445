"""Compiled kernels are kept where they can be; what cannot be kept or read is compiled again."""

from __future__ import annotations

import importlib.util
import os
import pickle
import subprocess
import sys

import numpy as np
import pytest

from tests.others import another, as_another

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
