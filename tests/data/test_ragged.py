"""Every record has as many fields as the first line: whole tables are read as by the csv module, others refused."""

from __future__ import annotations

import csv
import gzip
import io
import re

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import openloop as ol
from openloop.data import ragged
from openloop.data.delimited import TextForm, open_text
from openloop.data.ragged import refuse_ragged
from openloop.errors import FormatError
from tests.cli.running import run
from tests.facts import facts

SEPARATORS = [",", "\t", ";", "|", "::"]
SHIFTED = "user,item,rating,propensity\n1,1,3,0.5\n2,1,0.25\n2,2,4,0.5\n"

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


@pytest.mark.parametrize("separator", SEPARATORS)
@pytest.mark.parametrize("zipped", [False, True])
def test_a_line_without_a_field_that_is_not_asked_for(tmp_path, separator, zipped):
    text = SHIFTED.replace(",", separator).encode()
    path = tmp_path / ("log.csv.gz" if zipped else "log.csv")
    path.write_bytes(gzip.compress(text) if zipped else text)
    line = "2,1,0.25".replace(",", separator)
    with pytest.raises(FormatError, match=facts(path, "line 3", "3 fields", 4, repr(line), "separator=")):
        ol.read(path)


@pytest.mark.parametrize("text", ["a,b,c\n1,2,\n1,,\n", "a,b,c\r\n1,2,3\r\n\r\n", "a,b,c\n1,2,3\n\n\n", "a,b,c\n1,2,3"])
def test_empty_fields_and_blank_lines_are_no_fault(tmp_path, text):
    rows = [row for row in as_the_csv_module(",", text)[1:] if row]
    found = opened(tmp_path, ",", True, text)
    assert filled(found.fetch(["a", "b", "c"])) == rows
    assert filled(found.scan(["a", "b", "c"]).collect()) == rows


def test_a_line_of_separators_alone_is_counted_too(tmp_path):
    found = opened(tmp_path, ",", True, "a,b,c\n1,2,3\n,\n")
    with pytest.raises(FormatError, match=facts("line 3", "2 fields")):
        found.fetch(["a"])


def test_a_quote_that_nothing_closes_is_named(tmp_path):
    found = opened(tmp_path, ",", True, 'a,b,c\n1,2,3\n4,5,"6\n7,8,9\n')
    with pytest.raises(FormatError, match=facts("line 3", "quote", "'4,5,\"6'")):
        found.scan(["a"])


def test_a_long_line_is_shown_in_part(tmp_path):
    found = opened(tmp_path, ",", True, f"a,b\n{'x' * 999}\n1,2\n")
    with pytest.raises(FormatError, match=facts("line 2", f"'{'x' * 200}'…")):
        found.fetch(["a"])


@pytest.mark.parametrize("block", [1, 7, 64])
def test_blocks_of_any_size_count_the_same(tmp_path, monkeypatch, block):
    monkeypatch.setattr(ragged, "BLOCK", block)
    rows = [["a", "b"], *[[f"{n}", "x\ny"] for n in range(50)]]
    path = tmp_path / "log.csv"
    path.write_text("\ufeff" + text_of(",", "\n", rows), encoding="utf-8")
    refuse_ragged(path, path, ",", 2)
    path.write_text("\ufeff" + text_of(",", "\n", [*rows, ["50"], *rows]), encoding="utf-8")
    with pytest.raises(FormatError, match=facts("line 102", "1 field", 2, "'50'")):
        refuse_ragged(path, path, ",", 2)


def test_a_file_is_counted_once_however_often_it_is_scanned(tmp_path, monkeypatch):
    found = opened(tmp_path, ",", True, "a,b\n1,2\n")
    calls = []
    monkeypatch.setattr("openloop.data.delimited.refuse_ragged", lambda *_: calls.append(1))
    found.scan(["a"]), found.scan(["b"])
    assert calls == [1]


@pytest.mark.parametrize("stream", ["--stream", "--no-stream"])
def test_an_audit_refuses_a_shifted_log(tmp_path, stream):
    (tmp_path / "log.csv").write_text(SHIFTED)
    (tmp_path / "a.csv").write_text("user,item,score\n1,1,3\n2,1,2\n2,2,4\n")
    log, model = str(tmp_path / "log.csv"), str(tmp_path / "a.csv")
    result = run("audit", log, f"a={model}", f"b={model}", stream)
    assert result.exit_code == 2
    assert re.search(facts("line 3", "3 fields", 4), result.stderr)
