from __future__ import annotations

import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openloop.data.characters import refuse_strange
from openloop.data.reading import read
from openloop.errors import FormatError
from tests.facts import facts

ROWS = "".join(f"{n},b{n},3\n" for n in range(20_000))  # more than the first bytes that are looked at


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_wide_encodings_are_named(tmp_path, encoding):
    path = tmp_path / "log.csv"
    path.write_bytes("user,item,rating\n1,2,3\n".encode(encoding))
    with pytest.raises(FormatError, match=facts("log.csv", "UTF-32" if encoding == "utf-32" else "UTF-16", "iconv")):
        read(path)


def test_a_nul_is_refused_wherever_it_is(tmp_path):
    path = tmp_path / "log.csv"
    for text, line in (
        (f"user,item,rating,x\n{ROWS.replace('3', '3,4')}", None),
        ("user,item,rating\n" + ROWS, 20_002),
    ):
        path.write_text(text + "77777,b,3\0" * (line is not None) + "\n" * (line is not None), encoding="utf-8")
        if line is None:
            refuse_strange(path, path, ",")
            continue
        with pytest.raises(FormatError, match=facts("log.csv", f"line {line:,}", "NUL", r"'77777,b,3\x00'")):
            read(path)
    path.write_bytes(b"user,item,rating,other\n1,2,3,a\0b\n")
    with pytest.raises(FormatError, match=facts("log.csv", "NUL")):
        read(path)


def test_a_carriage_return_that_ends_no_line_is_refused_with_its_line(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("user,item,rating\n" + ROWS + "99999,b\rc,3\n", encoding="utf-8", newline="")
    with pytest.raises(
        FormatError, match=facts("log.csv", "line 20,002", "carriage return", r"'99999,b\rc,3'", "feeds")
    ):
        read(path)
    path.write_text("1::2::3\n4::5\r::3\n", encoding="utf-8", newline="")
    with pytest.raises(FormatError, match=facts("log.csv", "line 2", "carriage return")):
        read(path)


@given(st.lists(st.lists(st.text('a\r ,"', max_size=4), min_size=3, max_size=3), min_size=1, max_size=5))
def test_what_the_csv_module_quotes_is_not_refused(rows):
    file = io.StringIO()
    csv.writer(file, quoting=csv.QUOTE_ALL, lineterminator="\n").writerows(rows)
    refuse_strange(None, file.getvalue().encode(), ",")
