from __future__ import annotations

import uuid

import duckdb
import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from openloop.data.frames import listed, open_frame
from openloop.errors import InputError
from tests.facts import facts

FRAME = pl.DataFrame({"user": [1, 2], "item": ["a", "b"], "rating": [4.0, 5.0]})


def fetched(source, *columns: str) -> pl.DataFrame:
    return open_frame(source).fetch(columns)


@pytest.mark.parametrize(
    "source",
    [
        FRAME,
        FRAME.lazy(),
        nw.from_native(FRAME),
        FRAME.to_arrow(),
        pd.DataFrame(FRAME.to_dict(as_series=False)),
        pd.DataFrame(FRAME.to_dict(as_series=False)).astype({"item": object}),
        pd.DataFrame(FRAME.to_dict(as_series=False)).convert_dtypes(),
    ],
)
def test_eager_and_lazy_frames(source):
    table = open_frame(source)
    assert table.columns == FRAME.columns
    assert table.fetch(["item", "user"]).equals(FRAME.select("item", "user"))
    assert table.fetch(["rating"])["rating"].cast(pl.Float64).to_list() == [4.0, 5.0]


def test_duckdb_types():
    relation = duckdb.connect().sql(
        "SELECT '00000000-0000-0000-0000-000000000001'::UUID AS u, 1::HUGEINT AS h, 1::UBIGINT AS b, "
        "2.5::DECIMAL(4, 1) AS d, 'a'::ENUM('a', 'b') AS e"
    )
    row = fetched(relation, "u", "h", "b", "d", "e").cast({"d": pl.Float64}).row(0)
    assert row == ("00000000-0000-0000-0000-000000000001", 1, 1, 2.5, "a")


def test_integer_labels_of_pandas():
    source = pd.DataFrame([[1, 2, 3.0]])
    assert open_frame(source).columns == ["0", "1", "2"]
    assert fetched(source, "2", "0").rows() == [(3.0, 1)]


def test_python_objects():
    ids = [uuid.UUID(int=1), None, uuid.UUID(int=2)]
    for source in (pd.DataFrame({"u": ids}), pl.DataFrame({"u": ids}, schema={"u": pl.Object})):
        assert fetched(source, "u")["u"].to_list() == [str(ids[0]), None, str(ids[2])]
    assert fetched(pd.DataFrame({"u": [1, pd.NA, 3]}, dtype=object), "u")["u"].to_list() == [1, None, 3]
    assert fetched(pd.DataFrame({"u": [1, None, 2.5]}, dtype=object), "u")["u"].to_list() == [1, None, 2.5]


def test_pandas_text_without_pyarrow(monkeypatch):
    def to_polars(self):
        raise ModuleNotFoundError(name="pyarrow")

    monkeypatch.setattr(nw.Series, "to_polars", to_polars)
    assert fetched(pd.DataFrame({"u": ["a", None]}), "u")["u"].to_list() == ["a", None]


def test_mixed_objects_are_refused():
    with pytest.raises(InputError, match=facts("mixes", "int", "str")):
        fetched(pd.DataFrame({"u": [1, "1"]}, dtype=object), "u")
    with pytest.raises(InputError, match=facts("mixes", "int", "str")):
        listed(["1", 1])


@pytest.mark.parametrize("source", [[1], None, np.ones(3), pl.Series([1]), pa.array([1]), object()])
def test_other_objects_are_refused(source):
    with pytest.raises(InputError, match=facts("source", type(source).__name__, "dataframe")):
        open_frame(source)
