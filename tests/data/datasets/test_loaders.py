"""`load` and `rows`: every data set of the catalogue by its name."""

from __future__ import annotations

import pytest

from openloop.data import datasets
from openloop.data.datasets.loaders import LOADERS, ROWS
from openloop.errors import FormatError, NameFormatError
from tests.data.datasets.originals import FILES, write
from tests.facts import facts

NAMES = [dataset.name for dataset in datasets.CATALOGUE]


def test_every_data_set_has_a_loader_and_a_small_original():
    assert {*LOADERS, "open-bandit"} == set(NAMES) == set(FILES)
    assert {name for name in NAMES if datasets.find(name).impressions} == ROWS.keys() - LOADERS.keys()


@pytest.mark.parametrize("name", LOADERS)
def test_a_loaded_data_set_has_one_grid_and_its_name(tmp_path, name):
    data = datasets.load(name, write(name, tmp_path))
    assert data.name == name
    assert len(data.log) > 0
    assert data.open_loop is None or data.open_loop.items == data.log.items


def test_an_unknown_name_is_refused_with_the_nearest():
    with pytest.raises(NameFormatError, match=facts("'caot'", "'coat'")):
        datasets.load("caot")


def test_a_broken_file_is_told_with_the_command_that_checks_them_all(tmp_path):
    write("coat", tmp_path, train="0 x 0\n5 0 1\n")
    with pytest.raises(FormatError, match=facts("train.ascii", "'x'", "`openloop datasets check coat`")):
        datasets.load("coat", tmp_path)
