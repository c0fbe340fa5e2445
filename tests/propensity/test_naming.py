"""Propensity models by name: the grammar, the table, and what each model refuses."""

from __future__ import annotations

import pytest

import openloop as ol
from openloop.errors import InputError, OpenloopError, UndefinedError
from openloop.propensity.naming import (
    MODELS,
    Entry,
    ModelSpec,
    parts,
)


def spec(name, **given):
    """A model with the sample that it may need."""
    return ModelSpec.parse(f"{name}=s.csv" if MODELS[name].sample else name, **given)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("uniform", ("uniform", None, None)),
        ("naive-bayes=a=b.csv", ("naive-bayes", None, "a=b.csv")),
        ("naive-bayes=", ("naive-bayes", None, "")),
        ("balanced:popularity=s:1.csv", ("balanced", "popularity", "s:1.csv")),
        ("balanced:", ("balanced", "", None)),
    ],
)
def test_a_name_may_have_an_inner_model_and_a_sample(text, found):
    assert parts(text) == found


def test_settings_reach_the_model():
    assert spec("popularity", gamma=1.5).model(rng=0).gamma == 1.5
    assert [spec(name).model(rng=7).rng for name in ("logistic", "low-rank", "boosted", "naive-bayes")] == [7] * 4
    wrapped = spec("logistic", calibrate="platt", floor=0.1, quantile=0.2).model(rng=7)
    assert isinstance(wrapped, ol.propensity.Calibrated)
    assert (wrapped.method, wrapped.floor, wrapped.quantile) == ("platt", 0.1, 0.2)
    assert wrapped.rng == wrapped.model.rng == 7
    assert spec("naive-bayes", floor=0.1).model(rng=0).method is None


@pytest.mark.parametrize(
    ("text", "given", "error", "told"),
    [
        ("popularty", {}, InputError, "'popularty' .* 'popularity'"),
        ("naive-bayes", {}, InputError, "naive-bayes=SAMPLE"),
        ("naive-bayes=", {}, InputError, "naive-bayes=SAMPLE"),
        ("uniform=s.csv", {}, InputError, "uniform=s.csv: only naive-bayes"),
        ("uniform=", {}, InputError, "only naive-bayes"),
        ("uniform:popularity", {}, InputError, "uniform:popularity"),
        ("uniform:", {}, InputError, "'' is not a propensity model"),
        ("low-rank", {"item_features": "i.csv"}, InputError, "item_features= .* logistic and boosted, .* low-rank"),
        ("logistic", {"item_features": "i.csv"}, InputError, "logistic: .* user_features= and item_features="),
        ("logistic", {"gamma": 2.0}, InputError, "gamma=2: only popularity .* logistic"),
        ("naive-bayes=s.csv", {"calibrate": "platt"}, UndefinedError, "calibrate=platt: naive-bayes"),
    ],
)
def test_what_a_model_lacks_or_cannot_use_is_refused(text, given, error, told):
    with pytest.raises(error, match=told):
        ModelSpec.parse(text, **given)


def test_a_model_around_another_is_one_line_of_the_table(monkeypatch):
    monkeypatch.setitem(MODELS, "around", Entry(model="Calibrated", sample=True, inside="logistic"))
    plain, named = (ModelSpec.parse(text) for text in ("around=s.csv", "around:popularity=s.csv"))
    assert (str(plain), str(named)) == ("around", "around:popularity")
    assert isinstance(plain.model(rng=3).model, ol.propensity.Logistic)
    assert plain.model(rng=3).model.rng == 3
    inner = ModelSpec.parse("around:popularity=s.csv", gamma=2.0).model(rng=0).model
    assert isinstance(inner, ol.propensity.Popularity)
    assert inner.gamma == 2.0
    assert ModelSpec.parse("around=s.csv", user_features="u.csv", item_features="i.csv").sample == "s.csv"
    for text in ("around:popularty=s.csv", "around:popularity"):
        with pytest.raises(OpenloopError, match=r"popularty|around:popularity=SAMPLE"):
            ModelSpec.parse(text)
