"""Fields are counted as the csv module counts them, wherever a text is cut into blocks of lines."""

from __future__ import annotations

import csv
import io

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from openloop.kernels.fields import QUOTE, Place, find_ragged

FIELDS = st.text('a,"\n', max_size=3)


def counted(text: bytes, fields: int, quote: int = QUOTE, find=find_ragged, place: Place | None = None):
    return find(np.frombuffer(text, np.uint8), ord(","), quote, fields, place or Place())


def written(rows, end: str) -> bytes:
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator=end).writerows(rows)
    return text.getvalue().encode()


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
