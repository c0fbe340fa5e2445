from __future__ import annotations

import gzip

import pytest

from openloop.data.delimited import TextForm, open_text
from openloop.errors import FormatError
from tests.facts import facts

ROWS = [("1", "10", "4.5", "99"), ("2", "20", "3", "98"), ("007", "20", "", "97")]
HEAD = ("user", "item", "rating", "time")


def written(tmp_path, text: str | bytes, name="log.csv"):
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def joined(separator: str, rows=ROWS, end="\n") -> str:
    return "".join(separator.join(row) + end for row in rows)


def rows_of(path, columns=HEAD, **options):
    frame = open_text(path, {}, TextForm(**options)).fetch(list(columns))
    assert frame.columns == list(columns)
    return [tuple("" if v is None else v for v in row) for row in frame.rows()]


# -- division ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("separator", ["\t", "::", ",", ";", "|", " "])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("header", [True, False])
def test_separator_and_header_are_found(tmp_path, separator, end, header):
    text = joined(separator, [HEAD] * header + ROWS, end)
    assert rows_of(written(tmp_path, text)) == ROWS
    assert rows_of(written(tmp_path, gzip.compress(text.encode()))) == ROWS
    assert rows_of(written(tmp_path, b"\xef\xbb\xbf" + text.encode())) == ROWS


def test_quoted_fields_may_hold_separators_and_line_ends(tmp_path):
    text = 'user,item,rating,time\n"a,b",1,5,"two\nlines"\nc,2,4,x\n'
    assert rows_of(written(tmp_path, text)) == [("a,b", "1", "5", "two\nlines"), ("c", "2", "4", "x")]


@pytest.mark.parametrize(
    ("first", "asked", "header"),
    [
        ("1,2,3.5", {}, False),
        ("1,2,nan", {}, False),
        ("1,2,", {}, False),
        ("a,b,true", {}, False),
        ("user,item,rating", {}, True),
        ("a,b,c", {"rating": "nothing"}, True),
        ("5,a,b", {"rating": 0}, False),
        ("a,5,6", {"rating": 0}, True),
        ("1,2,3", {"user": "2"}, True),
        ("1,2", {}, False),
    ],
)
def test_header_rule(tmp_path, first, asked, header):
    table = open_text(written(tmp_path, f"{first}\n{first}\n"), asked)
    assert ("first line" in table.note) is header


# -- what is refused -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "told"),
    [
        pytest.param("u,i,r\n1,2,3\n1,2,3,4\n1,2,3\n", ("line 3", "4 fields", "'1,2,3,4'"), id="long"),
        pytest.param("u,i,r\n1,2,3,4\n1,2,3\n", ("line 2", "4 fields", 3, "'1,2,3,4'"), id="long at once"),
        pytest.param("u,i,r\n1,2,3\n1,2\n1,2,3\n", ("line 3", "2 fields", "'1,2'"), id="short"),
        pytest.param("u,i,r\n1,2,3\n\n1\n1,2,3\n", ("line 4", "1 field", 3, "'1'"), id="short below a blank"),
        pytest.param("u::i::r\n1::2::3\n1::2::3::4\n", ("line 3", "4 fields", "'1::2::3::4'"), id="colons"),
        pytest.param('u,i,r\n1,"2,3\n4,5,6\n', ("line 2", "quote", "'1,\"2,3'"), id="open quote"),
    ],
)
def test_ragged_lines_are_named(tmp_path, text, told):
    table = open_text(written(tmp_path, text), {})
    with pytest.raises(FormatError, match=facts("log.csv", *told, "separator=")):
        table.fetch(table.columns[:3])


@pytest.mark.parametrize("text", ["u,i,r\n1,2,3\n1,2", "1::2::3::4\n1::2::3", "u,i,r\n1,2,3\n1"])
def test_a_file_cut_in_a_line(tmp_path, text):
    with pytest.raises(FormatError, match=facts("log.csv", "cut short", repr(text.splitlines()[-1]))):
        open_text(written(tmp_path, text), {})


@pytest.mark.parametrize(
    ("data", "told"),
    [
        pytest.param(bytes(range(256)) * 10, ("NUL bytes", "UTF-8"), id="binary"),
        pytest.param(b"PAR1" + bytes(100), ("Parquet",), id="Parquet"),
        pytest.param(b"PK\x03\x04" + bytes(100), ("zip",), id="zip"),
        pytest.param("user,item,rating\né,2,3\n".encode("latin-1"), ("UTF-8",), id="Latin-1"),
        pytest.param("user,item,rating\n1,2,3\n".encode("utf-16"), ("UTF-16", "UTF-8", "iconv"), id="UTF-16"),
        pytest.param(b"\n\n \n", ("blank",), id="blank lines"),
        pytest.param(b"user,item,rating\r1,2,3\r", ("another format", "line feeds"), id="carriage returns"),
        pytest.param(b"one\ntwo\n", ("'one'", "separator="), id="one column"),
    ],
)
def test_files_that_are_no_text_table(tmp_path, data, told):
    with pytest.raises(FormatError, match=facts("log.csv", *told)):
        open_text(written(tmp_path, data), {})
