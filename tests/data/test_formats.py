from __future__ import annotations

import gzip

import polars as pl
import pytest

from openloop.data.delimited import TextForm
from openloop.data.formats import open_file
from openloop.errors import FormatError, InputError
from tests.facts import facts

FRAME = pl.DataFrame({"user": [1, 2], "item": ["a", "b"], "rating": [4.0, 5.0], "other": ["x", "y"]})


def parquet(path):
    FRAME.write_parquet(path)
    return path


def jsonl(path):
    FRAME.write_ndjson(path)
    return path


@pytest.mark.parametrize(
    ("write", "name"),
    [(parquet, "log.parquet"), (parquet, "log.PQ"), (jsonl, "log.ndjson"), (jsonl, "log.jsonl")],
)
def test_typed_files_keep_their_types(tmp_path, write, name):
    table = open_file(write(tmp_path / name), {})
    assert table.columns == FRAME.columns
    assert not table.text
    assert table.fetch(["rating", "user"]).equals(FRAME.select("rating", "user"))


@pytest.mark.parametrize("name", ["log.parquet.gz", "log.jsonl.gz"])
def test_compressed_typed_files(tmp_path, name):
    path = (parquet if "parquet" in name else jsonl)(tmp_path / "plain")
    packed = tmp_path / name
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert open_file(packed, {}).fetch(FRAME.columns).equals(FRAME)


def test_a_json_array(tmp_path):
    FRAME.write_json(tmp_path / "log.json")
    assert open_file(tmp_path / "log.json", {}).fetch(FRAME.columns).equals(FRAME)


def test_all_json_lines_decide_the_type(tmp_path):
    path = tmp_path / "log.jsonl"
    path.write_text('{"rating": 4}\n' * 5000 + '{"rating": 4.5}\n')
    assert open_file(path, {}).fetch(["rating"])["rating"].to_list()[-1] == 4.5


def test_text_of_another_name_needs_a_separator(tmp_path):
    path = tmp_path / "log.ratings"
    path.write_text("1,2,3\n")
    with pytest.raises(FormatError, match=facts("'.ratings'", "'.csv'", "separator=")):
        open_file(path, {})
    assert open_file(path, {}, TextForm(separator=",")).fetch(["user"]).rows() == [("1",)]
    with pytest.raises(FormatError, match=facts("extension ''", "separator=")):
        open_file(path.rename(tmp_path / "log"), {})


def test_home_is_expanded(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "log.csv").write_text("1,2,3\n")
    assert open_file("~/log.csv", {}).columns == ["user", "item", "rating"]


@pytest.mark.parametrize("options", [{"separator": ","}, {"header": False}])
def test_options_of_text_are_refused_elsewhere(tmp_path, options):
    with pytest.raises(InputError, match=facts("log.parquet", "separator=", "header=")):
        open_file(parquet(tmp_path / "log.parquet"), {}, TextForm(**options))


@pytest.mark.parametrize("keep", [0.02, 0.5, 0.99])
def test_cut_parquet(tmp_path, keep):
    path = parquet(tmp_path / "log.parquet")
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * keep)])
    with pytest.raises(FormatError, match=facts("log.parquet", "cut short", "Parquet")):
        open_file(path, {})


def test_text_named_parquet(tmp_path):
    path = tmp_path / "log.parquet"
    path.write_text("user,item,rating\n1,2,3\n")
    with pytest.raises(FormatError, match=facts("log.parquet", "another format")):
        open_file(path, {})


@pytest.mark.parametrize(
    "text",
    [
        '{"user": 1, "rating": 4}\n{"user": 2, "rat',
        '{"user": 1, "rating": 4}\n{"user": 2, "rat\n{"user": 1, "rating": 4}\n',
        "user,item,rating\n",
        '[{"user": 1}, {"user"',
        '{"user": 1, "rating": NaN}\n',
    ],
)
def test_broken_json(tmp_path, text):
    path = tmp_path / "log.jsonl"
    path.write_text(text)
    with pytest.raises(FormatError, match=facts("log.jsonl", "cut short", "another format")):
        open_file(path, {}).fetch(["user"])


@pytest.mark.parametrize("name", ["log.csv", "log.tsv", "log.parquet", "log.jsonl"])
def test_rows_that_stay_in_the_file_are_those_that_are_fetched(tmp_path, name):
    rows = pl.DataFrame({"user": [3, 1, 2], "item": ["a", "b", "c"], "rating": [1.5, 2.0, 3.0]})
    path = tmp_path / name
    write = {".csv": rows.write_csv, ".parquet": rows.write_parquet, ".jsonl": rows.write_ndjson}
    write.get(path.suffix, lambda p: rows.write_csv(p, separator="\t"))(path)
    table = open_file(path, {})
    assert table.scan(["rating", "user"]).collect().equals(table.fetch(["rating", "user"]))
    if path.suffix in {".csv", ".tsv"}:
        path.write_text(path.read_text().replace("\n", "\n\n"))  # blank lines are no rows
        assert len(open_file(path, {}).scan(["item"]).collect()) == 3
