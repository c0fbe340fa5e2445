"""Tables of vectors: what a model writes scores the same, those of other programs are read, others are refused."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import openloop as ol
from openloop.core.feedback import Feedback, Vocabulary
from openloop.errors import ColumnError, DuplicateError, FormatError, InputError
from tests.facts import facts

RNG = np.random.default_rng(0)
V, W = RNG.normal(size=(3, 2)), RNG.normal(size=(4, 2))


def log() -> Feedback:
    """Text for users, numbers for items: each column keeps its type."""
    cell = np.sort(RNG.choice(60, 40, replace=False))
    users = Vocabulary.of([f"n{k:02}" for k in range(10)])
    return Feedback.from_arrays(cell // 6, cell % 6, RNG.integers(0, 2, 40), users=users, items=6)


def test_a_table_of_vectors_reproduces_the_scores(tmp_path):
    model = ol.learners.MF(factors=2, rng=0).fit(log())
    model.to_vectors(tmp_path / "v.parquet")
    rows = pl.read_parquet(tmp_path / "v.parquet")
    assert rows.columns == ["user", "item", "factors", "bias"]
    users, items = (rows.filter(pl.col(side).is_not_null()) for side in ("user", "item"))
    rest = rows.filter(pl.col("user").is_null() & pl.col("item").is_null())
    assert rest["factors"].to_list() == [None]
    P, Q = (np.array(part["factors"].to_list()) for part in (users, items))
    found = P @ Q.T + users["bias"].to_numpy()[:, None] + items["bias"].to_numpy() + rest["bias"].item()
    np.testing.assert_allclose(found, model.scores(np.arange(10)), rtol=0, atol=1e-6)
    assert users["user"].to_list() == model.users_.ids.tolist()


@pytest.mark.parametrize("name", ["factors", "vector", "embedding", "features"])
def test_tables_of_other_programs(tmp_path, name):
    """Spark has id and features; pandas makes floats of integers where some are missing."""
    rows = pl.DataFrame({
        "user": [70.0, 3.0, 11.0, None, None, None, None], "item": [None, None, None, 5, 900, 1, 44],
        name: pl.Series([*V.tolist(), *W.tolist()], dtype=pl.Array(pl.Float32, 2)),
    })  # fmt: skip
    rows.sample(fraction=1, shuffle=True, seed=1).write_parquet(tmp_path / "v.parquet")
    found = ol.load(tmp_path / "v.parquet")
    assert found.users_.ids.tolist() == [3, 11, 70]
    np.testing.assert_allclose(found.scores([2])[0, found.items_.codes([5, 900, 1, 44])], V[0] @ W.T, atol=1e-6)


# -- refusals ------------------------------------------------------------------------------------------------

ROWS = {"user": [1, 2, None, None], "item": [None, None, "a", "b"], "factors": [[1.0, 2.0]] * 4, "bias": [1.0] * 4}


@pytest.mark.parametrize(
    ("changed", "error", "told"),
    [
        ({"user": None}, ColumnError, ("'user'", "factors")),
        ({"user": [1, None, None, None], "item": [None, None, None, "b"]}, FormatError, ("2", "neither")),
        ({"user": [1, 1, None, None]}, DuplicateError, ("users", "1")),
        ({"user": [1.5, 2, None, None]}, FormatError, ("user", "integers", "Float64")),
        ({"factors": [[1.0, None], [1.0, 2.0], [1.0, 2.0], [1.0, 2.0]]}, FormatError, ("1", "factors", "missing")),
        ({"factors": [1.0] * 4}, ColumnError, ("factors", "lists", "Float64")),
        ({"factors": [[float("nan"), 2.0]] * 4}, InputError, ("user_factors", "finite")),
        ({"vector": [[1.0, 2.0]] * 4}, ColumnError, ("one column", "vector", "factors")),
    ],
)
def test_tables_that_are_not_of_vectors(tmp_path, changed, error, told):
    columns = {key: value for key, value in (ROWS | changed).items() if value is not None}
    pl.DataFrame(columns, strict=False).write_parquet(tmp_path / "v.parquet")
    with pytest.raises(error, match=facts(tmp_path / "v.parquet", *told)) as caught:
        ol.load(tmp_path / "v.parquet")
    assert "\n" not in str(caught.value)
