"""`load` and `rows`: every data set of the catalogue by its name."""

from __future__ import annotations

import pytest

from openloop.data import datasets
from openloop.data.datasets.loaders import LOADERS, ROWS
from openloop.errors import FormatError, NameFormatError, RatingError, UndefinedError
from tests.data.datasets.originals import FILES, KUAIRAND, kuairand_row, write

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


def test_a_broken_file_is_told_with_the_command_that_checks_them_all(tmp_path):
    write("coat", tmp_path, train="0 x 0\n5 0 1\n")
    with pytest.raises(FormatError, match=r"fetch the file again\. `openloop datasets check coat` holds all its files"):
        datasets.load("coat", tmp_path)


@pytest.mark.parametrize(
    ("name", "changes", "message"),
    [
        ("coat", {"train": "0 -2 0\n5 0 1\n"}, r"train\.ascii: .* first -2 \(user 0, item 1\)"),
        ("coat", {"test": "3 2 0\n0 0 9\n"}, r"test\.ascii: ratings must be whole numbers from 1 to 5, .* first 9"),
        ("netflix", {"mv_0000001": "1:\n1,7,2005-09-06\n"}, r"training_set: ratings .* first 7 \(user 1, item 1\)"),
        ("amazon-games", {"ratings_Video_Games": "a,b,5.5,1\n"}, r"Games\.csv: ratings .* first 5\.5 \(user a, item b"),
        ("yahoo-r3", {"ydata-ymusic-rating-study-v1_0-test": "1\t14\t6\n"}, r"test\.txt: ratings .* first 6"),
        ("lastfm-hetrec", {"user_artists": "2\t3\t5\n2\t4\t0\n"}, r"must be whole numbers from 1 on, .* first 0"),
        ("kuairand", {"log_random_4_22_to_5_08_pure": KUAIRAND + kuairand_row(1, 8, 2, 3)}, r"random.*csv: .* first 2"),
    ],
)
def test_ratings_off_the_scale_are_refused(tmp_path, name, changes, message):
    with pytest.raises(RatingError, match=message):
        datasets.load(name, write(name, tmp_path, **changes))
