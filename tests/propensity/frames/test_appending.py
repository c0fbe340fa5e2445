"""p as a column is the p of memory, on every engine, beside all that the frame had."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone

import openloop as ol
from openloop.errors import ColumnError, InputError, LeakError, RatingError, UndefinedError, UnknownIdError
from openloop.propensity import Balanced, Boosted, Logistic, NaiveBayes, Popularity, Uniform
from tests.engines import EAGER, converter
from tests.facts import facts
from tests.propensity_logs import COLUMNS, RATED, feedback, held, in_order, log, models, sample

MODELS = range(len(models()))
KINDS = {"polars": "DataFrame", "lazy": "LazyFrame", "pandas": "DataFrame", "pyarrow": "Table"}


def column_equals_memory(into, model, sampled, ids, levels=5):
    rows = log(ids, levels)
    here, frame = feedback(rows, ids), into(rows)
    uniform = sample(rows)
    inside = clone(model).fit(here, **({"uniform": uniform["stars"].to_numpy()} if sampled else {}))
    there = clone(model).fit(frame, **RATED, **({"uniform": into(uniform)} if sampled else {}))
    found = held(there.with_column(frame))
    assert found.columns == [*rows.columns, "propensity"]
    p = found.sort("n")["propensity"].to_numpy()
    expected = in_order(inside.predict(here), here)[np.argsort(rows["n"].to_numpy())]
    np.testing.assert_allclose(p, expected, rtol=1e-9)
    assert there.notes_ == inside.notes_
    assert np.allclose(there.predict(here).values, inside.predict(here).values, rtol=1e-9)
    again = held(inside.with_column(frame, user="uid", item="mid", rating="stars")).sort("n")["propensity"]
    np.testing.assert_allclose(again.to_numpy(), expected, rtol=1e-9)


@pytest.mark.parametrize("engine", EAGER)
@pytest.mark.parametrize("at", MODELS)
def test_a_column_is_the_p_of_memory(engine, at):
    column_equals_memory(converter(engine), *models()[at], "text" if at % 2 else "integers")


@pytest.mark.parametrize("engine", ["polars", "duckdb"])
@pytest.mark.parametrize("at", [2, 3, 6])
def test_it_is_with_the_other_kind_of_ids_too(engine, at):
    column_equals_memory(converter(engine), *models()[at], "integers" if at % 2 else "text")


@pytest.mark.parametrize("at", [1, 3, 6])  # the last balances Logistic
def test_a_column_is_the_p_of_memory_on_spark(at, spark):
    column_equals_memory(converter("spark", spark), *models()[at], "integers" if at % 2 else "text")


@pytest.mark.parametrize("engine", EAGER)
def test_ratings_of_many_levels_are_balanced_by_groups(engine):
    column_equals_memory(converter(engine), Balanced(Logistic()), True, "integers", levels=200)


@pytest.mark.parametrize("engine", KINDS)
def test_a_frame_keeps_its_kind_its_order_and_its_rows(engine):
    rows = log()
    frame = converter(engine)(rows)
    out = Logistic().fit(frame, **COLUMNS).with_column(frame, name="p")
    assert type(out).__name__ == KINDS[engine]
    assert held(out).drop("p").equals(rows)


def test_an_index_of_pandas_stays():
    rows = log()
    frame = pd.DataFrame(rows.to_dict(as_series=False), index=np.arange(len(rows))[::-1] * 7)
    model = Popularity(gamma=1.0).fit(frame, **COLUMNS)
    out = model.with_column(frame)
    assert out.index.equals(frame.index)
    p = Popularity(gamma=1.0).fit(rows, **COLUMNS).with_column(rows)["propensity"]
    assert out["propensity"].tolist() == p.to_list()


def test_columns_that_are_called_as_inner_ones_do_not_disturb():
    rows = log().rename({"uid": "u", "mid": "i", "stars": "times", "n": "gamma"})
    frame = rows.lazy()
    out = Logistic().fit(frame, user="u", item="i").with_column(frame).collect()
    assert out.drop("propensity").equals(rows)
    assert out["propensity"].equals(Logistic().fit(log(), user="uid", item="mid").with_column(log())["propensity"])


def test_a_part_has_the_p_of_the_log_that_was_fitted():
    rows = log()
    model = Logistic().fit(rows, **COLUMNS)
    part = rows.filter(pl.col("n") % 3 == 0).rename({"uid": "who"})
    whole = model.with_column(rows).filter(pl.col("n") % 3 == 0)
    assert model.with_column(part, user="who")["propensity"].equals(whole["propensity"])


def test_cells_of_those_without_a_row_have_a_p_up_to_as_many_as_there_are():
    rows = log()
    model, inside = Logistic().fit(rows, **COLUMNS), Logistic().fit(feedback(rows))
    new = pl.DataFrame({"uid": [5, 6, 5], "mid": [7, 7, 0]})
    p = model.with_column(new)["propensity"].to_numpy()
    np.testing.assert_allclose(p, inside.matrix()[[5, 6, 5], [7, 7, 0]], rtol=1e-9)
    with pytest.raises(UnknownIdError, match=facts(3, "users", 1000, "population")):
        model.with_column(pl.DataFrame({"uid": [1000, 1001, 1002], "mid": [0, 0, 0]}))
    with pytest.raises(UnknownIdError, match=facts("1 item", 99)):
        Popularity(gamma=1.0).fit(rows, user="uid", item="mid").with_column(pl.DataFrame({"uid": [0], "mid": [99]}))


def test_what_the_model_knows_nothing_of_is_refused():
    rows = log()
    fitted = NaiveBayes().fit(rows, uniform=sample(rows), **RATED)
    with pytest.raises(RatingError, match=facts(9.0)):
        fitted.with_column(rows.with_columns(stars=pl.lit(9.0)))
    balanced = Balanced(Uniform()).fit(rows, uniform=sample(rows), **RATED)
    with pytest.raises(RatingError, match=facts(9.0)):
        balanced.with_column(rows.with_columns(stars=pl.lit(9.0)))
    with pytest.raises(InputError, match=facts("text", "numbers")):
        Logistic().fit(rows, **COLUMNS).with_column(rows.with_columns(pl.col("uid").cast(str)))
    with pytest.raises(InputError, match=facts("no user id", 1)):
        Logistic().fit(rows, **COLUMNS).with_column(pl.DataFrame({"uid": [None, 1], "mid": [1, 1]}))
    with pytest.raises(ColumnError, match=facts("'propensity'", "name=")):
        fitted.with_column(fitted.with_column(rows))
    with pytest.raises(InputError, match="bring both into one"):
        Logistic().fit(rows, **COLUMNS).with_column(converter("pandas")(rows))
    with pytest.raises(InputError, match=facts("Feedback", "predict")):
        fitted.with_column(feedback(rows))


def test_a_sample_is_not_scored():
    rows = log()
    uniform = rows.head(100)
    for model in (NaiveBayes(), Balanced(Uniform())):
        fitted = model.fit(rows, uniform=uniform, **RATED)
        with pytest.raises(LeakError, match="sample"):
            fitted.with_column(uniform)


def test_models_of_memory_have_no_column():
    rows = log()
    here = feedback(rows)
    with pytest.raises(UndefinedError, match=facts("Boosted", "predict(feedback)")):
        Boosted().fit(here).with_column(rows)
    by_means = Balanced(Uniform(), functions={"h": (lambda *row: row[-1], 2.5)}).fit(here)
    with pytest.raises(UndefinedError, match="ratings alone"):
        by_means.with_column(rows, user="uid", item="mid")


@pytest.mark.parametrize("engine", ["polars", "spark"])
def test_evaluate_and_audit_take_the_frame(engine, request):
    into = converter(engine, request.getfixturevalue("spark") if engine == "spark" else None)
    rows = log().with_columns(a=pl.col("stars") * 0.5 + 1, b=pl.lit(3.0))
    here, frame = feedback(rows), into(rows)
    weighted = Logistic().fit(frame, **COLUMNS).with_column(frame)
    asked = {"metrics": ["mae"], "estimators": ["ips", "snips"]}
    there = ol.evaluate({"a": "a", "b": "b"}, weighted, "propensity", **RATED, **asked)
    arrays = {"a": rows["a"].to_numpy()[here.row], "b": np.full(len(here), 3.0)}
    p = Logistic().fit(here).predict(here)
    for name, predicted in arrays.items():
        loss = np.abs(predicted - here.rating)
        assert there[name, "mae", "ips"].value == pytest.approx(np.sum(loss / p.values) / (60 * 30), rel=1e-9)
        assert there[name, "mae", "snips"].value == pytest.approx(np.average(loss, weights=p.weights), rel=1e-9)
    if engine == "spark":  # whose audits have tests of their own
        return
    found = ol.audit({"a": "a", "b": "b"}, weighted, "propensity", **RATED, metrics=["mae"], estimators=["snips"])
    assert found.result["a", "mae", "snips"].value == pytest.approx(there["a", "mae", "snips"].value, rel=1e-9)
    assert found.contrast("a", "b", metric="mae", estimator="snips").gamma > 0
