"""Every record has as many fields as the first line: whole tables are read as by the csv module, others refused."""

from __future__ import annotations

import csv
import gzip
import io

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from openloop.data.delimited import TextForm, open_text
from openloop.errors import FormatError
from tests.facts import facts

SEPARATORS = [",", "\t", ";", "|", "::"]

shared_folder = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)


@st.composite
def tables(draw):
    """Separator, line end, whether there is a header, and two lines or more of equally many fields."""
    separator, end, header = (
        draw(st.sampled_from(SEPARATORS)),
        draw(st.sampled_from(["\n", "\r\n"])),
        draw(st.booleans()),
    )
    alphabet = 'ab7é"' if separator == "::" else f'ab7é"\n:{separator}'
    fields = st.text(alphabet, max_size=4)
    width = draw(st.integers(2, 5))
    row = st.tuples(fields.map("x{}".format), *[fields] * (width - 1))  # no line is blank
    rows = draw(st.lists(row, min_size=2, max_size=6))
    return separator, end, header, [list(row) for row in rows]


def text_of(separator: str, end: str, rows) -> str:
    if separator == "::":
        return "".join(separator.join(row) + end for row in rows)
    text = io.StringIO(newline="")
    csv.writer(text, delimiter=separator, lineterminator=end).writerows(rows)
    return text.getvalue()


def as_the_csv_module(separator: str, text: str) -> list[list[str]]:
    if separator == "::":
        return [line.split("::") for line in text.splitlines()]
    return list(csv.reader(io.StringIO(text, newline=""), delimiter=separator))


def opened(folder, separator: str, header: bool, text: str, zipped: bool = False):
    path = folder / "log.csv"
    path.write_bytes(gzip.compress(text.encode()) if zipped else text.encode())
    return open_text(path, {}, TextForm(separator=separator, header=header))


def filled(frame) -> list[list[str]]:
    return [["" if field is None else field for field in row] for row in frame.rows()]


@shared_folder
@given(table=tables(), zipped=st.booleans())
def test_whole_tables_are_read_as_the_csv_module_reads_them(tmp_path, table, zipped):
    separator, end, header, rows = table
    assume(not header or (len(set(rows[0])) == len(rows[0]) and all(name == name.strip() for name in rows[0])))
    text = text_of(separator, end, rows)
    expected = as_the_csv_module(separator, text)[header:]
    found = opened(tmp_path, separator, header, text, zipped)
    assert filled(found.fetch(found.columns)) == expected
    assert filled(found.scan(found.columns).collect(engine="streaming")) == expected


@shared_folder
@given(table=tables(), more=st.booleans(), data=st.data())
def test_one_field_less_or_more_is_refused_and_its_line_named(tmp_path, table, more, data):
    separator, end, header, rows = table
    assume(not header or len(set(rows[0])) == len(rows[0]))
    at = data.draw(st.integers(1, len(rows) - 1))
    place = data.draw(st.integers(0, len(rows[at]) - 1))
    changed = [*rows[at][:place], *(["", rows[at][place]] if more else []), *rows[at][place + 1 :]]
    assume("".join(changed) or separator != "::" or len(changed) > 1)  # one empty field makes a blank line
    line = text_of(separator, end, rows[:at]).count("\n") + 1
    text = text_of(separator, end, [*rows[:at], changed, *rows[at + 1 :]])
    found = opened(tmp_path, separator, header, text)
    told = facts(f"line {line}", f"{len(changed)} field{'s' * (len(changed) > 1)}", len(rows[0]), "separator=")
    for column in found.columns:
        with pytest.raises(FormatError, match=told):
            found.fetch([column])
        with pytest.raises(FormatError, match=told):
            found.scan([column])
