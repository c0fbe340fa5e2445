from __future__ import annotations

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


def test_mixed_objects_are_refused():
    with pytest.raises(InputError, match=facts("mixes", "int", "str")):
        fetched(pd.DataFrame({"u": [1, "1"]}, dtype=object), "u")
    with pytest.raises(InputError, match=facts("mixes", "int", "str")):
        listed(["1", 1])


@pytest.mark.parametrize("source", [[1], None, np.ones(3), pl.Series([1]), pa.array([1]), object()])
def test_other_objects_are_refused(source):
    with pytest.raises(InputError, match=facts("source", type(source).__name__, "dataframe")):
        open_frame(source)
