from __future__ import annotations

import gzip
import time

import pytest

from openloop.data.delimited import TextForm, open_text
from openloop.errors import FormatError, InputError
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


def test_a_separator_may_be_given(tmp_path):
    assert rows_of(written(tmp_path, joined("~")), separator="~") == ROWS
    assert rows_of(written(tmp_path, joined("¦")), separator="¦") == ROWS
    assert rows_of(written(tmp_path, joined("<->")), separator="<->") == ROWS


def test_commas_inside_other_separators(tmp_path):
    text = 'a\tb\t5\n"x, y, z"\tc\t4\n'
    assert rows_of(written(tmp_path, text), HEAD[:3]) == [("a", "b", "5"), ("x, y, z", "c", "4")]
    assert rows_of(written(tmp_path, "1;2;4,5\n1;3;2,5\n"), HEAD[:3], header=False)[0] == ("1", "2", "4,5")


def test_the_extension_tells_which_separator_is_likely(tmp_path):
    text = "a::b::c,1,5\nd::e::f,2,4\n"
    assert rows_of(written(tmp_path, text), HEAD[:3])[0] == ("a::b::c", "1", "5")
    assert rows_of(written(tmp_path, text, "log.dat"), HEAD[:3], header=False)[0] == ("a", "b", "c,1,5")


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


def test_header_may_be_given(tmp_path):
    path = written(tmp_path, "1,2,3\n4,5,6\n")
    assert open_text(path, {}, TextForm(header=True)).columns == ["1", "2", "3"]
    path = written(tmp_path, "a,b,c\n4,5,6\n")
    assert rows_of(path, HEAD[:3], header=False) == [("a", "b", "c"), ("4", "5", "6")]


def test_columns_without_a_header_have_names_by_position(tmp_path):
    table = open_text(written(tmp_path, "1,2,3,4,5,6\n"), {})
    assert table.columns == ["user", "item", "rating", "time", "column_5", "column_6"]
    assert table.text


@pytest.mark.parametrize("text", ["\n\n{}", "{}\n\n\n", "{head}\n\n{}", "\n{head}\n{}\n\n"])
def test_blank_lines_do_not_count(tmp_path, text):
    text = text.format(joined(","), head=",".join(HEAD)) if "{head}" in text else text.format(joined(","))
    assert rows_of(written(tmp_path, text)) == ROWS


def test_names_with_stars_and_brackets_are_no_patterns(tmp_path):
    assert rows_of(written(tmp_path, joined(","), "log[1]*.csv")) == ROWS


def test_header_without_rows(tmp_path):
    for text in ("user,item,rating\n", "user,item,rating", "user,item,rating\n\n\n"):
        assert rows_of(written(tmp_path, text), HEAD[:3]) == []


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


def test_lines_are_counted_even_where_the_extra_field_is_not_needed(tmp_path):
    table = open_text(written(tmp_path, "u,i,r,t\n1,2,3,4\n1,2,3,4,5\n"), {})
    with pytest.raises(FormatError, match=facts("line 3", "5 fields", 4, "'1,2,3,4,5'")):
        table.fetch(["u"])


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


def test_junk_far_down_the_file(tmp_path):
    data = joined(",", [HEAD] + ROWS[:2] * 10_000).encode() + b"\xff\xfe,\x80,3,4\n"
    table = open_text(written(tmp_path, data), {})
    with pytest.raises(FormatError, match=facts("log.csv", "another format")):
        table.fetch(HEAD)


@pytest.mark.parametrize(("text", "name"), [("stars\n4\n3.5\n", "stars"), ("4\n3.5\n", "column_1")])
def test_one_column_is_a_table_where_it_may_be(tmp_path, text, name):
    table = open_text(written(tmp_path, text), {}, undivided=True)
    assert table.columns == [name]
    assert table.fetch([name]).rows() == [("4",), ("3.5",)]
    assert open_text(written(tmp_path, joined(",")), {}, undivided=True).fetch(["item"]).height == len(ROWS)


@pytest.mark.parametrize("separator", ["", "\n", '"'])
def test_separators_that_divide_nothing(tmp_path, separator):
    with pytest.raises(InputError, match=facts(f"separator={separator!r}")):
        open_text(written(tmp_path, joined(",")), {}, TextForm(separator=separator))


@pytest.mark.parametrize(("columns", "blank"), [(4, False), (4, True), (3000, False)])
def test_rows_that_stay_in_a_file_are_those_that_are_fetched_however_many_columns_it_has(tmp_path, columns, blank):
    more = [f"c{k}" for k in range(columns - len(HEAD))]
    lines = [",".join([*row, *more]) for row in (HEAD, *ROWS)]
    table = open_text(written(tmp_path, ("\n\n" if blank else "\n").join(lines) + "\n"), {})
    assert table.scan is not None
    began = time.process_time()
    assert table.scan(list(HEAD)).collect().equals(table.fetch(list(HEAD)))
    assert time.process_time() - began < 10  # before, the filter of 3,000 columns took 30
