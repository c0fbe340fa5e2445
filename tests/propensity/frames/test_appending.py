"""p as a column is the p of memory, on every engine, beside all that the frame had."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from sklearn.base import clone

import openloop as ol
from openloop.errors import ColumnError, InputError, LeakError, RatingError
from openloop.propensity import Balanced, Logistic, NaiveBayes, Uniform
from tests.engines import EAGER, converter
from tests.facts import facts
from tests.propensity_logs import COLUMNS, RATED, I, U, feedback, held, in_order, log, models, sample

MODELS = range(len(models()))


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


@pytest.mark.parametrize("at", [1, 3, 6])  # the last balances Logistic
def test_a_column_is_the_p_of_memory_on_spark(at, spark):
    column_equals_memory(converter("spark", spark), *models()[at], "integers" if at % 2 else "text")


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


LOG = {"user": "uid", "item": "mid", "rating": "stars", "propensity": "propensity", "users": U, "items": I}


@pytest.mark.parametrize("engine", ["polars", "spark"])
def test_evaluate_and_audit_take_the_frame(engine, request):
    into = converter(engine, request.getfixturevalue("spark") if engine == "spark" else None)
    rows = log().with_columns(a=pl.col("stars") * 0.5 + 1, b=pl.lit(3.0))
    here, frame = feedback(rows), into(rows)
    weighted = ol.scan(Logistic().fit(frame, **COLUMNS).with_column(frame), **LOG)
    asked = {"metrics": ["mae"], "estimators": ["ips", "snips"]}
    there = ol.evaluate({"a": "a", "b": "b"}, weighted, **asked)
    arrays = {"a": rows["a"].to_numpy()[here.row], "b": np.full(len(here), 3.0)}
    p = Logistic().fit(here).predict(here)
    for name, predicted in arrays.items():
        loss = np.abs(predicted - here.rating)
        assert there[name, "mae", "ips"].value == pytest.approx(np.sum(loss / p.values) / (60 * 30), rel=1e-9)
        assert there[name, "mae", "snips"].value == pytest.approx(np.average(loss, weights=p.weights), rel=1e-9)
    if engine == "spark":  # whose audits have tests of their own
        return
    found = ol.audit({"a": "a", "b": "b"}, weighted, metrics=["mae"], estimators=["snips"])
    assert found.result["a", "mae", "snips"].value == pytest.approx(there["a", "mae", "snips"].value, rel=1e-9)
    assert found.contrast("a", "b", metric="mae", estimator="snips").gamma > 0
