"""What commands are told of a log is what `ol.read` takes; what cannot work is refused before a file is opened."""

from __future__ import annotations

import pytest

from openloop.commands.fitting import FitRequest
from openloop.commands.log_files import LogRequest
from openloop.data.delimited import FOUND, TextForm
from openloop.errors import InputError
from tests.facts import facts


def test_columns_and_what_becomes_of_rows_are_those_of_read():
    asked = LogRequest(log="log.csv", user="uid", no_rating=True, time="ts", duplicates="first", skip=2, comment="#")
    told = {name: value for name, value in asked.reading.items() if value not in (None, 0)}
    assert told == {"user": "uid", "time": "ts", "duplicates": "first", "comment": "#", "skip": 2}
    assert asked.reading["rating"] is False
    assert asked.form == TextForm(skip=2, comment="#")


def test_a_request_that_extends_it_reads_the_log_the_same():
    assert FitRequest(log="a.csv", floor=0.1).reading == LogRequest(log="b.csv").reading


def test_a_typed_file_beside_the_log_has_no_form():
    asked = LogRequest(log="log.csv", separator=";")
    assert asked.form_of("train.csv.gz") == TextForm(separator=";")
    assert asked.form_of("train.parquet") == FOUND


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"no_rating": True, "rating": "stars"}, ("--no-rating", "stars")),
        ({"duplicates": "frist"}, ("duplicates='frist'", "'first'")),
        ({"no_rating": True, "positive": 3}, ("positive=3", "rating=False")),
        ({"separator": ""}, ("separator=''",)),
        ({"skip": -2}, ("skip=-2",)),
    ],
)
def test_what_cannot_work_is_refused(options, told):
    with pytest.raises(InputError, match=facts(*told)):
        LogRequest(log="log.csv", **options).form  # noqa: B018
