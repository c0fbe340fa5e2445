from __future__ import annotations

import datetime as dt

import numpy as np
import pytest

from openloop.data.cutting import count_of, cut, cut_note, in_words
from openloop.errors import EmptyError, InputError
from tests.facts import facts

DAY = 86_400
DAYS = np.arange(10) * DAY + 1_600_000_000  # 2020-09-13 12:26:40 and nine days more


def test_a_fraction_or_a_number_takes_the_latest():
    assert np.flatnonzero(cut(DAYS, 0.3)).tolist() == [7, 8, 9]
    assert np.flatnonzero(cut(DAYS[::-1], 2)).tolist() == [0, 1]
    assert count_of(0.25, 10, "rows") == 2


@pytest.mark.parametrize("per_second", [1, 1_000, 1_000_000, 1_000_000_000])
@pytest.mark.parametrize(
    "test",
    ["2020-09-20", "2020-09-20T00:00:00Z", "2020-09-20T02:00+02:00", dt.date(2020, 9, 20),
     dt.datetime(2020, 9, 20, tzinfo=dt.UTC)],
    ids=str,
)  # fmt: skip
def test_a_date_is_in_the_unit_of_the_times(per_second, test):
    assert np.flatnonzero(cut(DAYS * per_second, test)).tolist() == [7, 8, 9]


def test_a_date_itself_belongs_to_test():
    assert cut(np.array([1_600_000_000, 1_600_000_001]), "2020-09-13T12:26:41").tolist() == [False, True]


def test_the_cut_is_told():
    words = cut_note(DAYS, cut(DAYS, 0.3))
    assert "2020-09-20 12:26:40 UTC" in words
    assert "3 rows" in words
    assert "30 %" in words
    assert "before 7," in cut_note(np.arange(10), cut(np.arange(10), 0.3))
    assert in_words(DAYS * 1000.0, DAYS[0] * 1000.0) == "2020-09-13 12:26:40 UTC"


@pytest.mark.parametrize("test", ["2020-13-01", "late", "0.2", ""])
def test_what_is_no_date(test):
    with pytest.raises(InputError, match=facts(f"test={test!r}", "fraction", "2024-03-01")):
        cut(DAYS, test)


def test_dates_need_times_that_count_from_1970():
    with pytest.raises(InputError, match=facts("test='2020-09-20'", "1970", "from 0 to 9", "fraction")):
        cut(np.arange(10), "2020-09-20")


@pytest.mark.parametrize(("test", "part"), [("2019-01-01", "train"), ("2030-01-01", "test")])
def test_a_date_outside_the_log(test, part):
    with pytest.raises(EmptyError, match=facts(f"test={test!r}", f"for {part}", "2020-09-13", "2020-09-22")):
        cut(DAYS, test)
