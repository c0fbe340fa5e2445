"""Where data sets lie, and files that are missing."""

from __future__ import annotations

import pytest

from openloop.data import datasets
from openloop.errors import InputError
from tests.data.datasets.originals import write
from tests.facts import facts


def test_whereabouts_are_the_folder_that_has_all_files(tmp_path):
    assert datasets.whereabouts("ml-1m", tmp_path) is None
    write("ml-1m", tmp_path)
    (tmp_path / "ml-1m").rename(tmp_path / "ml-1m-half")
    (tmp_path / "ml-1m").mkdir()
    assert datasets.whereabouts("ml-1m", tmp_path) == tmp_path / "ml-1m-half"


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
