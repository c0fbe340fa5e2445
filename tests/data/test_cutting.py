from __future__ import annotations

import datetime as dt

import numpy as np
import pytest

from openloop.data.cutting import count_of, cut
from openloop.errors import InputError
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


@pytest.mark.parametrize("test", ["2020-13-01", "late", "0.2", ""])
def test_what_is_no_date(test):
    with pytest.raises(InputError, match=facts(f"test={test!r}", "fraction", "2024-03-01")):
        cut(DAYS, test)
