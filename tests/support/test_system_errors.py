"""An error of the operating system is known by its number, whoever tells it."""

from __future__ import annotations

import errno

import numpy as np
import polars as pl
import pytest

from openloop.support.system_errors import system_error


def raised(act):
    with pytest.raises(Exception) as caught:  # noqa: PT011 (which one it is, is asked of system_error)
        act()
    return caught.value


def test_an_os_error_is_itself():
    error = FileNotFoundError(errno.ENOENT, "No such file or directory", "log.csv")
    assert system_error(error) is error


def test_polars_says_number_and_file_in_words(tmp_path):
    path = tmp_path / "none.csv"
    found = system_error(raised(lambda: pl.read_csv(path)))
    assert isinstance(found, FileNotFoundError)
    assert (found.errno, found.filename) == (errno.ENOENT, str(path))
    long = system_error(raised(lambda: pl.scan_parquet("x" * 300).collect()))
    assert long.errno == errno.ENAMETOOLONG


def test_what_a_library_says_of_a_full_disk_is_a_full_disk():
    told = "Error while serializing: I/O error: No space left on device (os error 28)"
    found = system_error(ValueError(told))
    assert (type(found), found.errno, found.filename) == (OSError, errno.ENOSPC, None)


def test_numpy_says_only_how_much_it_wrote(tmp_path, small_files):
    path = tmp_path / "x"
    with small_files(1000):
        error = raised(lambda: np.arange(10_000.0).tofile(path))
    assert error.errno is None
    assert system_error(error).errno == errno.ENOSPC


def test_a_loop_of_links_that_pathlib_found(tmp_path):
    link = tmp_path / "loop"
    link.symlink_to(link)
    for error in (raised(lambda: link.resolve(strict=True)), raised(link.read_text)):
        assert system_error(error).errno == errno.ELOOP


def test_other_errors_are_none_of_the_system():
    assert system_error(ValueError("28")) is None
    assert system_error(pl.exceptions.ComputeError("parquet: the file must end with PAR1")) is None
