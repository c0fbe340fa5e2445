"""Whatever ends a command is one line with name, rule, value and remedy, and an exit code."""

from __future__ import annotations

import errno
import os
import re
import subprocess

import numpy as np
import polars as pl
import pytest
from safetensors import SafetensorError

from openloop.cli.failures import REFUSED
from openloop.cli.signals import Terminated
from openloop.commands.demo import estimates as demonstration
from openloop.errors import FormatError
from tests.cli.running import INSTALLED, run
from tests.facts import facts


def refused(number, name="out.csv"):
    return OSError(number, os.strerror(number), name)


def failing(monkeypatch, error):
    """The result of a command in which this is raised."""

    def fail(*_args, **_options):
        raise error

    monkeypatch.setattr(demonstration, "demonstrate", fail)
    return run("demo")


ENDINGS = {
    "disk full": (refused(errno.ENOSPC), 1, ("out.csv", "full", "No space left", "another disk")),
    "quota": (refused(errno.EDQUOT), 1, ("out.csv", "quota", "another disk")),
    "too large": (refused(errno.EFBIG), 1, ("out.csv", "larger", "ulimit -f")),
    "device": (refused(errno.EIO), 1, ("out.csv", "device", "another")),
    "permission": (refused(errno.EACCES), 2, ("out.csv", "Permission denied", "another path")),
    "not permitted": (refused(errno.EPERM), 2, ("out.csv", "not permitted", "another path")),
    "read only": (refused(errno.EROFS), 2, ("out.csv", "read only", "another path")),
    "missing": (refused(errno.ENOENT), 2, ("out.csv", "not exist", "check")),
    "below a file": (refused(errno.ENOTDIR), 2, ("out.csv", "below", "check")),
    "a folder": (refused(errno.EISDIR), 2, ("out.csv", "folder", "file")),
    "loop": (refused(errno.ELOOP), 2, ("out.csv", "link", "name")),
    "long": (refused(errno.ENAMETOOLONG, "x" * 300), 2, ("x" * 300, "longer", "shorter")),
    "open files": (refused(errno.EMFILE), 1, ("open", "ulimit -n")),
    "all files": (refused(errno.ENFILE), 1, ("open", "close")),
    "another": (refused(errno.ENXIO), 1, ("out.csv", "No such device", "try again")),
    "without a number": (OSError("odd"), 1, ("odd", "try again")),
    "bytes": (refused(errno.EACCES, b"\xff.csv"), 2, ("Permission", "another path")),
    "memory": (MemoryError(), 1, ("memory", "fewer", "more memory")),
    "array": (np._core._exceptions._ArrayMemoryError((10**9,), np.dtype("f8")), 1, ("memory", "7.45 GiB", "fewer")),
    "no memory": (refused(errno.ENOMEM, None), 1, ("memory", "Cannot allocate", "fewer")),
    "decoding": (UnicodeDecodeError("utf-8", b"ab\xff", 2, 3, "odd"), 2, ("utf-8", "0xff", "at 2", "UTF-8")),
    "encoding": (UnicodeEncodeError("utf-8", "\udcff", 0, 1, "odd"), 2, ("udcff", "utf-8", "rename")),
    "polars": (pl.exceptions.ComputeError("bad page\nat 3"), 1, ("table", "polars", "bad page at 3", "check")),
    "polars' disk": (pl.exceptions.ComputeError("I/O: none left (os error 28)"), 1, ("full", "another disk")),
    "safetensors": (SafetensorError("HeaderTooLarge"), 1, ("model file", "safetensors", "HeaderTooLarge", "check")),
    "safetensors' disk": (SafetensorError("I/O error: x (os error 28)"), 1, ("full", "another disk")),
    "package": (ImportError("libomp.so: no such file", name="numba"), 1, ("numba", "libomp.so", "openloop doctor")),
    "openloop": (FormatError("log.csv: is empty; fetch it again."), 2, ("log.csv", "empty", "fetch")),
    "interrupted": (KeyboardInterrupt(), 130, ("interrupted",)),
    "terminated": (Terminated(15), 143, ("SIGTERM",)),
    "hung up": (Terminated(1), 129, ("SIGHUP",)),
    "a bug": (ZeroDivisionError("by\nzero"), 1, ("ZeroDivisionError", "by zero", "report", "OPENLOOP_TRACEBACK=1")),
    "a panic": (pl.exceptions.PanicException("at src/x.rs"), 1, ("PanicException", "x.rs", "report")),
}  # fmt: skip


@pytest.mark.parametrize(("error", "code", "told"), ENDINGS.values(), ids=ENDINGS)
def test_an_error_is_one_line_with_its_facts_and_its_code(monkeypatch, error, code, told):
    result = failing(monkeypatch, error)
    assert result.exit_code == code
    assert re.fullmatch(facts("openloop: ", *told) + r"[^\n]*\n", result.stderr), result.stderr
    assert result.stdout == ""


def test_every_refusal_of_the_table_is_tried_above():
    assert set(REFUSED) == {error.errno for error, *_ in ENDINGS.values() if isinstance(error, OSError)} & set(REFUSED)


def test_a_traceback_is_shown_to_who_asks(monkeypatch):
    monkeypatch.setenv("OPENLOOP_TRACEBACK", "1")
    result = failing(monkeypatch, ZeroDivisionError("odd"))
    assert "Traceback" in result.stderr
    assert "in fail" in result.stderr
    assert result.stderr.rstrip().rpartition("\n")[2].startswith("openloop: bug: ZeroDivisionError: odd")


QUOTED = {
    "openloop": FormatError("a\x1b[2J  b\u202e.csv: is empty; fetch it again."),
    "a library": pl.exceptions.ComputeError("a\x1b[2J  b\u202e.csv"),
    "the system": OSError(errno.ENOENT, "a\x1b[2J  b\u202e.csv"),
    "a bug": ZeroDivisionError("a\x1b[2J  b\u202e.csv"),
}


@pytest.mark.parametrize("traceback", ["0", "1"])
@pytest.mark.parametrize("error", QUOTED.values(), ids=QUOTED)
def test_what_an_error_quotes_does_not_act_on_the_terminal(monkeypatch, error, traceback):
    monkeypatch.setenv("OPENLOOP_TRACEBACK", traceback)
    result = failing(monkeypatch, error)
    assert not set(result.stderr) & set("\x1b\u202e")
    assert r"a\x1b[2J  b\u202e.csv" in result.stderr.splitlines()[-1]


@pytest.mark.parametrize(
    "words", [["demo", "--a\u202eb"], ["demo", "a\u202eb"], ["a\u202eb"], ["demo", "--seed", "\u202e"]]
)
def test_what_was_typed_does_not_act_on_the_terminal_either(words):
    result = run(*words)
    assert result.exit_code == 2
    assert "\u202e" not in result.output
    assert r"\u202e" in result.output


@pytest.mark.parametrize("kind", [pl.exceptions.ComputeError, SafetensorError, ZeroDivisionError])
def test_what_a_library_says_at_length_is_cut(monkeypatch, kind):
    result = failing(monkeypatch, kind("x" * 9000))
    assert "x" * 150 in result.stderr
    assert "x" * 201 not in result.stderr


# -- stdout --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("words", [["--version"], ["--help"], ["doctor"], ["datasets", "list", "--json", "-"]])
def test_a_full_stdout_is_one_line_and_exit_code_1(words, unbuffered):
    with open("/dev/full", "w") as full:  # noqa: PTH123 (a device)
        done = subprocess.run(
            [INSTALLED, *words], stdout=full, stderr=subprocess.PIPE, text=True, check=False,
            env=os.environ | {"PYTHONUNBUFFERED": unbuffered},
        )  # fmt: skip
    assert done.returncode == 1
    assert re.fullmatch(facts("openloop: ", "stdout", "full", "another disk") + r"[^\n]*\n", done.stderr), done.stderr


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("words", [["--version"], ["doctor"], ["datasets", "list", "--json", "-"]])
def test_a_reader_that_has_gone_ends_a_command_quietly(words, unbuffered):
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [INSTALLED, *words], stdout=writing, stderr=subprocess.PIPE, text=True, check=False,
        env=os.environ | {"PYTHONUNBUFFERED": unbuffered},
    )  # fmt: skip
    os.close(writing)
    assert (done.returncode, done.stderr) == (141, "")
