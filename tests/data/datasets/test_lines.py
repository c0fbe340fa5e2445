"""Delimited files: the first line that is not of the form is named, and nothing of the reader's own arguments."""

from __future__ import annotations

import gzip
import re

import pytest

from openloop.data.datasets import lines
from openloop.errors import ColumnError, DuplicateError, EmptyError, FormatError, RatingError
from tests.facts import facts

FOUR = {"user": int, "item": int, "rating": float, "time": int}
TABS, COMMAS = {"separator": "\t", "header": False}, {"separator": ",", "header": True}
HEAD = "user,item,rating,time\n"
NAMES = "(user, item, rating, time)"


@pytest.mark.parametrize(
    ("text", "form", "error", "told"),
    [
        ("1\n2\n", TABS, FormatError, ("line 1", "4 fields", "tabs", NAMES, 1)),
        ("1\t2\t3\t4\n\n1\t2\n", TABS, FormatError, ("line 3", "4 fields", "tabs", NAMES, 2)),
        ("1\t2\t3\t4\n1\t5\tx\t4\n", TABS, RatingError, ("line 2", "number", "rating", "'x'")),
        ("1\t2\t3\t4\n1\t5\t3\tx\n", TABS, FormatError, ("line 2", "whole number", "time", "'x'")),
        ("1\t2\t3\t4\n1\t2\t3\t4\n", TABS, DuplicateError, (1, "(user, item)", (1, 2))),
        ("user,item,rating\n1,2,3\n", COMMAS, ColumnError, ("line 1", "'time'", "'user', 'item', 'rating'")),
        (HEAD, COMMAS, EmptyError, ("no rows",)),
        ("1\t2\t3\t4\n1\t5", TABS, FormatError, ("cut short", repr("1\t5"), "4 fields")),
    ],
)
def test_what_is_wrong_is_told_with_its_line_and_the_remedy(tmp_path, text, form, error, told):
    (tmp_path / "a.csv").write_text(text)
    with pytest.raises(error, match=facts(tmp_path / "a.csv", *told, "fetch")) as refusal:
        lines.log(tmp_path / "a.csv", FOUR, **form)
    assert not re.search(r"\w=|\brows? \d", str(refusal.value))  # the reader's arguments, its rows


def test_lines_are_found_in_a_compressed_file_and_a_cut_one_is_told(tmp_path):
    whole = gzip.compress(b"".join(b"%d\t2\t3\t4\n" % i for i in range(999)) + b"1\t2\tx\t4\n")
    (tmp_path / "a.csv.gz").write_bytes(whole)
    with pytest.raises(RatingError, match=facts("line 1,000", "number", "rating", "'x'")):
        lines.log(tmp_path / "a.csv.gz", FOUR, **TABS)
    (tmp_path / "a.csv.gz").write_bytes(whole[:-200])
    with pytest.raises(FormatError, match=facts("a.csv.gz", "cut short", "fetch")):
        lines.log(tmp_path / "a.csv.gz", FOUR, **TABS)
