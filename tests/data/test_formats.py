from __future__ import annotations

import polars as pl
import pytest

from openloop.data.formats import open_file
from openloop.errors import FormatError
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


def test_a_json_array(tmp_path):
    FRAME.write_json(tmp_path / "log.json")
    assert open_file(tmp_path / "log.json", {}).fetch(FRAME.columns).equals(FRAME)


@pytest.mark.parametrize("keep", [0.02, 0.5, 0.99])
def test_cut_parquet(tmp_path, keep):
    path = parquet(tmp_path / "log.parquet")
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * keep)])
    with pytest.raises(FormatError, match=facts("log.parquet", "cut short", "Parquet")):
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
