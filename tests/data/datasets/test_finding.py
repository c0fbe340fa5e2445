"""Where data sets lie: the data folder, other names of a folder, and files that are missing."""

from __future__ import annotations

from pathlib import Path

import pytest

from openloop.data import datasets
from openloop.data.datasets.finding import sha256
from openloop.errors import InputError
from tests.data.datasets.originals import write
from tests.facts import facts


def test_the_data_folder_is_as_given_or_by_the_environment_or_data(monkeypatch):
    monkeypatch.setenv("OPENLOOP_DATA", "/there")
    assert datasets.data_folder("here") == Path("here")
    assert datasets.data_folder() == Path("/there")
    monkeypatch.delenv("OPENLOOP_DATA")
    assert datasets.data_folder() == Path("data")


def test_the_environment_names_the_folder_for_loading(tmp_path, monkeypatch):
    monkeypatch.setenv("OPENLOOP_DATA", str(write("coat", tmp_path)))
    assert datasets.present("coat")
    assert len(datasets.load("coat").log) == 3


def test_a_folder_of_another_known_name_is_found(tmp_path):
    write("ml-1m", tmp_path)
    (tmp_path / "ml-1m").rename(tmp_path / "ml-1m-half")
    assert datasets.files("ml-1m", tmp_path) == (tmp_path / "ml-1m-half" / "ratings.dat",)


def test_whereabouts_are_the_folder_that_has_all_files(tmp_path):
    assert datasets.whereabouts("ml-1m", tmp_path) is None
    write("ml-1m", tmp_path)
    (tmp_path / "ml-1m").rename(tmp_path / "ml-1m-half")
    (tmp_path / "ml-1m").mkdir()
    assert datasets.whereabouts("ml-1m", tmp_path) == tmp_path / "ml-1m-half"


def test_a_file_is_no_data_folder(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match=facts("folder", f"'{tmp_path / 'file'}'", "a file")):
        datasets.present("coat", tmp_path / "file")


def test_the_folder_of_the_data_set_itself_serves_too(tmp_path):
    write("coat", tmp_path)
    assert len(datasets.load("coat", tmp_path / "coat").log) == 3
    assert not datasets.present("ml-100k", tmp_path / "coat")


def test_files_stand_in_a_fixed_order(tmp_path):
    found = datasets.files("netflix", write("netflix", tmp_path))
    assert [path.name for path in found] == ["mv_0000001.txt", "mv_0000002.txt"]


def test_what_is_missing_is_named_with_the_remedy(tmp_path):
    assert not datasets.present("coat", tmp_path)
    remedies = ("`openloop datasets get coat`", "--data")
    with pytest.raises(InputError, match=facts("coat", "no folder", f"'{tmp_path / 'coat'}'", *remedies)):
        datasets.load("coat", tmp_path)
    write("coat", tmp_path)
    (tmp_path / "coat" / "test.ascii").unlink()
    assert not datasets.present("coat", tmp_path)
    with pytest.raises(InputError, match=facts("coat", f"'{tmp_path / 'coat'}'", "'test.ascii'", *remedies)):
        datasets.files("coat", tmp_path)


def test_a_gated_data_set_says_where_to_apply(tmp_path):
    with pytest.raises(InputError, match=facts("yahoo-r3", "R3", "https://", "train.txt", "test.txt")):
        datasets.load("yahoo-r3", tmp_path)


def test_a_fingerprint_is_of_the_contents_not_of_the_place(tmp_path):
    first, second = write("coat", tmp_path / "a"), write("coat", tmp_path / "b")
    assert datasets.fingerprint("coat", first) == datasets.fingerprint("coat", second)
    write("coat", second, train="0 2 0\n5 0 2\n")
    assert datasets.fingerprint("coat", first) != datasets.fingerprint("coat", second)


def test_the_digest_of_a_file(tmp_path):
    (tmp_path / "a").write_bytes(b"abc")
    assert sha256(tmp_path / "a") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
