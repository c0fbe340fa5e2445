"""`load` and `rows`: every data set of the catalogue by its name."""

from __future__ import annotations

import pytest

from openloop.data import datasets
from openloop.data.datasets.loaders import LOADERS, ROWS
from openloop.errors import FormatError, NameFormatError, RatingError, UndefinedError
from tests.data.datasets.originals import FILES, KUAIRAND, kuairand_row, write
from tests.facts import facts

RANDOM = "log_random_4_22_to_5_08_pure"
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
    with pytest.raises(NameFormatError, match=facts("'caot'", "'coat'")):
        datasets.load("caot")


def test_rows_are_for_impressions(tmp_path):
    with pytest.raises(UndefinedError, match=facts("coat", "datasets.load('coat')")):
        datasets.rows("coat", write("coat", tmp_path))


def test_a_broken_file_is_told_with_the_command_that_checks_them_all(tmp_path):
    write("coat", tmp_path, train="0 x 0\n5 0 1\n")
    with pytest.raises(FormatError, match=facts("train.ascii", "'x'", "`openloop datasets check coat`")):
        datasets.load("coat", tmp_path)


@pytest.mark.parametrize(
    ("name", "changes", "told"),
    [
        ("coat", {"train": "0 -2 0\n5 0 1\n"}, ("train.ascii", "1 of 3", -2, "user 0", "item 1")),
        ("coat", {"test": "3 2 0\n0 0 9\n"}, ("test.ascii", "1 to 5", "1 of 3", 9, "user 1", "item 2")),
        ("netflix", {"mv_0000001": "1:\n1,7,2005-09-06\n"}, ("training_set", "1 of 2", 7, "user 1", "item 1")),
        ("amazon-games", {"ratings_Video_Games": "a,b,5.5,1\n"}, ("1 of 1", 5.5, "user a", "item b")),
        ("yahoo-r3", {"ydata-ymusic-rating-study-v1_0-test": "1\t14\t6\n"}, ("test.txt", "1 of 1", 6, "item 14")),
        ("lastfm-hetrec", {"user_artists": "2\t3\t5\n2\t4\t0\n"}, ("1 of 2", 0, "user 2", "item 4")),
        ("kuairand", {RANDOM: KUAIRAND + kuairand_row(1, 8, 2, 3)}, (f"{RANDOM}.csv", "1 of 1", 2, "item 8")),
    ],
)
def test_ratings_off_the_scale_are_refused(tmp_path, name, changes, told):
    with pytest.raises(RatingError, match=facts(*told)):
        datasets.load(name, write(name, tmp_path, **changes))
