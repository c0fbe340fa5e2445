"""Fields are counted as the csv module counts them, wherever a text is cut into blocks of lines."""

from __future__ import annotations

import csv
import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from openloop.kernels.fields import NO_QUOTE, QUOTE, Place, find_ragged

FIELDS = st.text('a,"\n', max_size=3)


def counted(text: bytes, fields: int, quote: int = QUOTE, find=find_ragged, place: Place | None = None):
    return find(np.frombuffer(text, np.uint8), ord(","), quote, fields, place or Place())


def written(rows, end: str) -> bytes:
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator=end).writerows(rows)
    return text.getvalue().encode()


@pytest.mark.parametrize(
    ("text", "found", "place"),
    [
        (b"1,2\n3,4\n", False, Place(3, 3, 1, False)),
        (b"1,2\n\n\r\n3,4\r\n", False, Place(5, 5, 1, False)),
        (b"1,2\n3\n", True, Place(2, 2, 1, False)),
        (b"1,2\n3,4,5\n", True, Place(2, 2, 3, False)),
        (b"1,2\n,\n3,4,\n", True, Place(3, 3, 3, False)),
        (b'"1,2\n3",4\n5\n', True, Place(3, 3, 1, False)),
        (b'"1\n\n2"\n', True, Place(3, 1, 1, False)),
        (b'1,"2""\n",3\n', True, Place(2, 1, 3, False)),
        (b'5" disk,2\n', False, Place(2, 2, 1, False)),
        (b'1,"2\n', False, Place(2, 1, 2, True)),
    ],
)
def test_the_first_record_with_another_number_of_fields(text, found, place):
    assert counted(text, 2) == (found, place)
    assert counted(text, 2, find=find_ragged.py_func) == (found, place)


def test_without_quotes_every_separator_divides():
    assert counted(b'"1,2"\n', 2, NO_QUOTE) == (False, Place(2, 2, 1, False))


@given(st.lists(st.lists(FIELDS, min_size=2, max_size=4), min_size=1, max_size=6), st.sampled_from(["\n", "\r\n"]))
def test_as_the_csv_module_counts(rows, end):
    wrong = next((n for n, row in enumerate(rows) if len(row) != 3), None)
    found, place = counted(written(rows, end), 3)
    assert found == (wrong is not None)
    if wrong is not None:
        assert place.first == written(rows[:wrong], end).count(b"\n") + 1
        assert place.fields == len(rows[wrong])


@given(st.lists(st.lists(FIELDS, min_size=2, max_size=4), min_size=1, max_size=6), st.integers(0, 10))
def test_a_text_may_be_cut_after_any_line(rows, cut):
    lines = written(rows, "\n").splitlines(keepends=True)
    found, place = counted(b"".join(lines[:cut]), 3)
    if not found:
        found, place = counted(b"".join(lines[cut:]), 3, place=place)
    assert (found, place) == counted(b"".join(lines), 3)
