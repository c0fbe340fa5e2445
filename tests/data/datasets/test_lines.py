"""Delimited files: the first line that is not of the form is named, and nothing of the reader's own arguments."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from openloop.data.datasets import lines
from openloop.errors import ColumnError, DuplicateError, EmptyError, FormatError, InputError, RatingError

FOUR = {"user": int, "item": int, "rating": float, "time": int}
TABS, COMMAS = {"separator": "\t", "header": False}, {"separator": ",", "header": True}
HEAD = "user,item,rating,time\n"
NAMES, THREE = "(user, item, rating, time)", "'user', 'item', 'rating'"
CUT = "it ends in the middle of a line, '1\\t5', which has fewer than 4 fields"


def test_a_file_of_its_form_is_a_log(tmp_path):
    (tmp_path / "a").write_text("3\t4\t5\t6\n")
    log = lines.log(tmp_path / "a", FOUR, **TABS)
    assert (log.users.ids.tolist(), log.items.ids.tolist(), log.rating.tolist(), log.time.tolist()) == (
        [3],
        [4],
        [5],
        [6],
    )


@pytest.mark.parametrize(
    ("text", "form", "error", "message"),
    [
        ("1\n2\n", TABS, FormatError, f"line 1 must have 4 fields divided by tabs {NAMES}, and has 1"),
        ("1\t2\t3\t4\n\n1\t2\n", TABS, FormatError, f"line 3 must have 4 fields divided by tabs {NAMES}, and has 2"),
        ("1\t2\t3\t4\n1\t5\tx\t4\n", TABS, RatingError, "line 2 must have a number as rating, and has 'x'"),
        ("1\t2\t3\t4\nx\t5\t3\t4\n", TABS, FormatError, "line 2 must have a whole number as user, and has 'x'"),
        ("1\t2\t3\t4\n1\t5\t3\tx\n", TABS, FormatError, "line 2 must have a whole number as time, and has 'x'"),
        ("1\t2\t3\t4\n\t5\t3\t4\n", TABS, FormatError, "line 2 must have a whole number as user, and has ''"),
        ("1\t2\t3\t4\n1\t2\t3\t4\n", TABS, DuplicateError, "1 (user, item) pairs occur more than once, as (1, 2)"),
        (HEAD + "1,2,3,4,5\n", COMMAS, FormatError, f"line 2 must have 4 fields divided by commas {NAMES}, and has 5"),
        ("user,item,rating\n1,2,3\n", COMMAS, ColumnError, f"line 1 must name the columns 'time', and names {THREE}"),
        (HEAD, COMMAS, EmptyError, "no rows"),
        ("", TABS, FormatError, "the file is empty (0 bytes)"),
        ("1\t2\t3\t4\n1\t5", TABS, FormatError, f"cut short: {CUT}"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told_with_its_line_and_the_remedy(tmp_path, text, form, error, message):
    (tmp_path / "a.csv").write_text(text)
    with pytest.raises(error) as told:
        lines.log(tmp_path / "a.csv", FOUR, **form)
    assert str(told.value) == f"{tmp_path}/a.csv: {message}; fetch the file again."


def test_a_line_that_is_no_text_is_named(tmp_path):
    (tmp_path / "a").write_bytes(b"1\t2\t3\t4\n1\t5\t3\t\xff\n")
    with pytest.raises(FormatError, match=r"line 2 is not UTF-8 text; fetch"):
        lines.log(tmp_path / "a", FOUR, **TABS)


def test_lines_are_found_in_a_compressed_file_and_a_cut_one_is_told(tmp_path):
    whole = gzip.compress(b"".join(b"%d\t2\t3\t4\n" % i for i in range(999)) + b"1\t2\tx\t4\n")
    (tmp_path / "a.csv.gz").write_bytes(whole)
    with pytest.raises(RatingError, match=r"line 1,000 must have a number as rating"):
        lines.log(tmp_path / "a.csv.gz", FOUR, **TABS)
    (tmp_path / "a.csv.gz").write_bytes(whole[:-200])
    with pytest.raises(FormatError, match=r"cut short or of another format.*; fetch the file again\.$"):
        lines.log(tmp_path / "a.csv.gz", FOUR, **TABS)


def test_rows_and_remedies_of_the_reader_are_left_out():
    told = lines.restated(
        InputError("source: 7 of 9 ids are missing (rows 0, 1, 2, 3, 4, … (7 in all)); drop them."), Path("f")
    )
    assert str(told) == "f: 7 of 9 ids are missing; fetch the file again."
