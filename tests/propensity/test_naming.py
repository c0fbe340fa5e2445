"""Propensity models by name: the grammar, the table, and what each model refuses."""

from __future__ import annotations

import pytest

import openloop as ol
from openloop.errors import InputError, OpenloopError, UndefinedError
from openloop.propensity import examination
from openloop.propensity.calibrated import METHODS
from openloop.propensity.naming import (
    CALIBRATIONS,
    EXAMINED_BY,
    FORMS,
    MODELS,
    Entry,
    ModelSpec,
    is_model,
    parts,
    sample_of,
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


def test_every_name_is_a_model_of_the_library():
    for name, entry in MODELS.items():
        assert type(spec(name).model(rng=0)).__name__ == entry.model
        assert is_model(name)
    assert not is_model("propensity")
    assert len(FORMS) == len(MODELS)
    assert "naive-bayes=SAMPLE" in FORMS


def test_calibrations_are_those_of_the_model():
    assert ("none", *METHODS) == CALIBRATIONS
    assert (*EXAMINED_BY, "known") == tuple(examination.METHODS)


def test_only_a_model_that_needs_a_sample_names_one():
    assert sample_of("naive-bayes=s.csv") == "s.csv"
    assert [sample_of(text) for text in ("naive-bayes", "naive-bayes=", "uniform=s.csv", "p=s.csv")] == [None] * 4


def test_settings_reach_the_model():
    assert spec("popularity", gamma=1.5).model(rng=0).gamma == 1.5
    assert [spec(name).model(rng=7).rng for name in ("logistic", "low-rank", "boosted", "naive-bayes")] == [7] * 4
    wrapped = spec("logistic", calibrate="platt", floor=0.1, quantile=0.2).model(rng=7)
    assert isinstance(wrapped, ol.propensity.Calibrated)
    assert (wrapped.method, wrapped.floor, wrapped.quantile) == ("platt", 0.1, 0.2)
    assert wrapped.rng == wrapped.model.rng == 7
    assert spec("naive-bayes", floor=0.1).model(rng=0).method is None


def test_counts_suffice_for_models_of_items_as_they_are():
    assert [name for name in MODELS if spec(name).counts] == ["uniform", "popularity"]
    assert spec("popularity", gamma=1.0, floor=0.1).counts
    assert not spec("popularity", calibrate="platt").counts
    assert not spec("uniform", quantile=0.1).counts


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


def test_boosted_takes_features_of_one_side():
    assert spec("boosted", item_features="i.csv").item_features == "i.csv"


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


def test_balanced_is_around_logistic_unless_another_model_is_named():
    plain, named = (ModelSpec.parse(text) for text in ("balanced=s.csv", "balanced:popularity=s.csv"))
    assert isinstance(plain.model(rng=3), ol.propensity.Balanced)
    assert isinstance(plain.model(rng=3).model, ol.propensity.Logistic)
    assert plain.model(rng=3).model.rng == 3
    assert isinstance(named.model(rng=0).model, ol.propensity.Popularity)
    assert sample_of("balanced:popularity=s.csv") == "s.csv"
    assert "balanced=SAMPLE" in FORMS


def test_what_is_done_to_p_is_done_before_balancing():
    made = ModelSpec.parse("balanced:popularity=s.csv", gamma=2.0, calibrate="platt", floor=0.1).model(rng=5)
    assert isinstance(made, ol.propensity.Balanced)
    assert isinstance(made.model, ol.propensity.Calibrated)
    assert (made.model.method, made.model.floor, made.model.model.gamma) == ("platt", 0.1, 2.0)
    assert isinstance(ModelSpec.parse("balanced=s.csv", floor=0.1).bare(0).model, ol.propensity.Logistic)
