"""A propensity model as options describe it: its sample, its covariates, and values that cannot be."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import openloop as ol
from openloop.commands.fitting import FitRequest, fit
from openloop.data.simulate import movie_lovers
from openloop.errors import ColumnError, InputError
from openloop.propensity.naming import ModelSpec
from tests.facts import facts

LOG = movie_lovers(users=24, items=18).observe(3)
COLUMNS = {"user": "uid", "item": "mid", "rating": "stars"}


def test_a_request_makes_the_model_with_all_that_it_was_given():
    wanted = FitRequest(log="log.csv", gamma=2.0, calibrate="platt", floor=0.1, quantile=0.2)
    assert wanted.spec("popularity") == ModelSpec(
        name="popularity", gamma=2.0, calibrate="platt", floor=0.1, quantile=0.2
    )
    assert wanted.corrections == ", calibrated (platt), the smallest 20 % raised, raised to at least 0.1"
    assert FitRequest(log="log.csv").corrections == ""


@pytest.mark.parametrize("columns", [("uid", "mid", "stars"), ("user_id", "item_id", "rating"), ("stars",)])
def test_a_sample_shares_the_names_of_the_log_or_has_obvious_ones(tmp_path, columns):
    values = {"uid": LOG.user, "mid": LOG.item, "stars": LOG.rating}
    names = dict(zip(columns, values if len(columns) > 1 else ["stars"], strict=True))
    pl.DataFrame({name: values[role] for name, role in names.items()}).write_csv(tmp_path / "sample.csv")
    found = fit(ModelSpec.parse(f"naive-bayes={tmp_path / 'sample.csv'}"), LOG, COLUMNS, 0)
    assert found.propensity_by_rating_ == ol.propensity.NaiveBayes().fit(LOG, uniform=LOG.rating).propensity_by_rating_


def test_the_users_of_a_sample_are_those_of_the_log_as_in_python(tmp_path):
    pl.DataFrame({"uid": LOG.user, "mid": LOG.item, "stars": LOG.rating}).write_csv(tmp_path / "sample.csv")
    found = fit(ModelSpec.parse(f"naive-bayes={tmp_path / 'sample.csv'}"), LOG, COLUMNS, 0)
    np.testing.assert_array_equal(found.sample_.user, LOG.user)


def test_a_sample_of_something_else_is_refused_by_its_name(tmp_path):
    (tmp_path / "sample.csv").write_text("mid,stars\n1,4\n")
    with pytest.raises(ColumnError, match=facts("naive-bayes=", "sample.csv", "'mid'", "'stars'")):
        fit(ModelSpec.parse(f"naive-bayes={tmp_path / 'sample.csv'}"), LOG, COLUMNS, 0)


def test_features_of_one_side_may_do(tmp_path):
    pl.DataFrame({"mid": LOG.items.ids, "z": np.arange(LOG.n_items) % 4}).write_csv(tmp_path / "items.csv")
    found = fit(ModelSpec.parse("boosted", item_features=tmp_path / "items.csv"), LOG, COLUMNS, 0)
    assert found.user_covariates_ is None
    assert found.item_covariates_.names == ("z",)


@pytest.mark.parametrize(
    ("option", "value"),
    [("floor", -0.1), ("floor", float("nan")), ("quantile", 1.5), ("gamma", float("inf")), ("seed", -1),
     ("calibrate", "both")],
)  # fmt: skip
def test_values_that_cannot_be_are_refused_with_their_option(option, value):
    with pytest.raises(InputError, match=facts(f"--{option}", value)):
        FitRequest(**{"log": "log.csv", option: value})


def test_a_log_without_ratings_is_asked_for_and_cannot_name_some():
    assert FitRequest(log="log.csv", no_rating=True).columns["rating"] is False
    assert FitRequest(log="log.csv", rating="stars").columns["rating"] == "stars"
    with pytest.raises(InputError, match=facts("--no-rating", "--rating stars")):
        FitRequest(log="log.csv", rating="stars", no_rating=True)
