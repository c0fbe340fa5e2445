"""Delimited files: the first line that is not of the form is named, and nothing of the reader's own arguments."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

import pytest

from openloop.data.datasets import lines
from openloop.errors import ColumnError, DuplicateError, EmptyError, FormatError, InputError, RatingError
from openloop.support.wording import rows_at
from tests.facts import facts

FOUR = {"user": int, "item": int, "rating": float, "time": int}
TABS, COMMAS = {"separator": "\t", "header": False}, {"separator": ",", "header": True}
HEAD = "user,item,rating,time\n"
NAMES = "(user, item, rating, time)"


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
    ("text", "form", "error", "told"),
    [
        ("1\n2\n", TABS, FormatError, ("line 1", "4 fields", "tabs", NAMES, 1)),
        ("1\t2\t3\t4\n\n1\t2\n", TABS, FormatError, ("line 3", "4 fields", "tabs", NAMES, 2)),
        ("1\t2\t3\t4\n1\t5\tx\t4\n", TABS, RatingError, ("line 2", "number", "rating", "'x'")),
        ("1\t2\t3\t4\nx\t5\t3\t4\n", TABS, FormatError, ("line 2", "whole number", "user", "'x'")),
        ("1\t2\t3\t4\n1\t5\t3\tx\n", TABS, FormatError, ("line 2", "whole number", "time", "'x'")),
        ("1\t2\t3\t4\n\t5\t3\t4\n", TABS, FormatError, ("line 2", "whole number", "user", "''")),
        ("1\t2\t3\t4\n1\t2\t3\t4\n", TABS, DuplicateError, (1, "(user, item)", (1, 2))),
        (HEAD + "1,2,3,4,5\n", COMMAS, FormatError, ("line 2", "4 fields", "commas", NAMES, 5)),
        ("user,item,rating\n1,2,3\n", COMMAS, ColumnError, ("line 1", "'time'", "'user', 'item', 'rating'")),
        (HEAD, COMMAS, EmptyError, ("no rows",)),
        ("", TABS, FormatError, ("empty",)),
        ("1\t2\t3\t4\n1\t5", TABS, FormatError, ("cut short", repr("1\t5"), "4 fields")),
    ],
)
def test_what_is_wrong_is_told_with_its_line_and_the_remedy(tmp_path, text, form, error, told):
    (tmp_path / "a.csv").write_text(text)
    with pytest.raises(error, match=facts(tmp_path / "a.csv", *told, "fetch")) as refusal:
        lines.log(tmp_path / "a.csv", FOUR, **form)
    assert not re.search(r"\w=|\brows? \d", str(refusal.value))  # the reader's arguments, its rows


def test_a_line_that_is_no_text_is_named(tmp_path):
    (tmp_path / "a").write_bytes(b"1\t2\t3\t4\n1\t5\t3\t\xff\n")
    with pytest.raises(FormatError, match=facts("line 2", "UTF-8", "fetch")):
        lines.log(tmp_path / "a", FOUR, **TABS)


def test_lines_are_found_in_a_compressed_file_and_a_cut_one_is_told(tmp_path):
    whole = gzip.compress(b"".join(b"%d\t2\t3\t4\n" % i for i in range(999)) + b"1\t2\tx\t4\n")
    (tmp_path / "a.csv.gz").write_bytes(whole)
    with pytest.raises(RatingError, match=facts("line 1,000", "number", "rating", "'x'")):
        lines.log(tmp_path / "a.csv.gz", FOUR, **TABS)
    (tmp_path / "a.csv.gz").write_bytes(whole[:-200])
    with pytest.raises(FormatError, match=facts("a.csv.gz", "cut short", "fetch")):
        lines.log(tmp_path / "a.csv.gz", FOUR, **TABS)


def test_rows_and_remedies_of_the_reader_are_left_out():
    told = lines.restated(InputError(f"source: 7 of 9 ids are missing, in {rows_at(range(7))}; drop them."), Path("f"))
    assert re.search(facts("f", "7 of 9 ids", "missing", "fetch"), str(told))
    assert not re.search("source|row|drop", str(told))
