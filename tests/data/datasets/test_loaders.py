"""`load` and `rows`: every data set of the catalogue by its name."""

from __future__ import annotations

import pytest

from openloop.data import datasets
from openloop.data.datasets.loaders import LOADERS, ROWS
from openloop.errors import NameFormatError, UndefinedError
from tests.data.datasets.originals import FILES, write

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


@pytest.mark.parametrize("name", LOADERS)
def test_loading_twice_gives_the_same(tmp_path, name):
    write(name, tmp_path)
    first, second = (datasets.load(name, tmp_path).log for _ in range(2))
    assert first.fingerprint == second.fingerprint
    assert first.rating.tolist() == second.rating.tolist()


def test_an_unknown_name_is_refused_with_the_nearest():
    with pytest.raises(NameFormatError, match=r"no data set is called 'caot'\. Did you mean 'coat'\?"):
        datasets.load("caot")


def test_rows_are_for_impressions(tmp_path):
    with pytest.raises(UndefinedError, match=r"coat: .*datasets\.load\('coat'\) has them all"):
        datasets.rows("coat", write("coat", tmp_path))
