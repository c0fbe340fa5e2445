"""Columns of a log frame: chosen, typed, and ratings as Feedback holds them."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from openloop.core.feedback import Feedback
from openloop.errors import ColumnError, InputError
from openloop.propensity import Boosted, Logistic
from openloop.propensity.frames.opening import ITEM, RATING, USER, FrameOptions, OpenedLog
from openloop.support.frames import collected
from tests.engines import EAGER, converter
from tests.facts import facts

LOG = pl.DataFrame({"uid": [3, 1], "sku": ["b", "a"], "stars": [0.1, -0.0]})


def opened(frame=LOG, asked=None, known=None, needed=("user", "item", "rating")):
    return OpenedLog.of("Model", frame, asked or {}, known or {}, needed)


def test_what_is_asked_for_goes_before_what_is_known_and_that_before_the_obvious():
    assert opened().chosen == {"user": "uid", "item": "sku", "rating": "stars"}
    more = LOG.with_columns(mine=pl.col("uid"), yours=pl.col("uid"))
    assert opened(more, known={"user": "yours", "item": "gone"}).chosen["user"] == "yours"
    assert opened(more, {"user": "mine"}, {"user": "yours"}).chosen["user"] == "mine"


def test_only_what_is_needed_is_looked_for():
    assert opened(LOG.select("uid"), needed=("user",)).chosen == {"user": "uid"}
    with pytest.raises(ColumnError, match=facts("Model", "item=")):
        opened(LOG.select("uid"))


@pytest.mark.parametrize("engine", EAGER)
def test_ratings_are_of_32_bits_with_one_zero(engine):
    log = opened(converter(engine)(LOG))
    keys = collected(log.frame.select(*log.keys(["user", "item", "rating"])))
    found = dict(zip(keys[USER].to_list(), keys[RATING].to_list(), strict=True))
    assert found == {3: float(np.float32(0.1)), 1: 0.0}
    assert np.copysign(1, found[1]) == 1
    assert set(keys[ITEM].to_list()) == {"a", "b"}


def test_categories_are_text():
    log = opened(LOG.with_columns(pl.col("sku").cast(pl.Categorical)))
    assert log.frame.select(log.key("item")).collect()[ITEM].to_list() == ["b", "a"]


def test_options_are_those_of_a_frame():
    assert FrameOptions.of(Boosted(), {"user": "uid"}).columns == {"user": "uid", "item": None, "rating": None}
    with pytest.raises(TypeError, match=facts("Boosted.fit", "'populaton'", "'population'")):
        FrameOptions.of(Boosted(), {"populaton": (1, 2)})


@pytest.mark.parametrize("model", [Boosted(), Logistic()])
def test_a_mistyped_keyword_is_told_by_its_name(model):
    log = Feedback.from_arrays([0, 1], [0, 1], [1, 2])
    with pytest.raises(TypeError, match=facts(f"{type(model).__name__}.fit", "'user_feature'", "'user_features'")):
        model.fit(log, user_feature=np.ones((2, 1)))


def test_rows_are_counted_once_they_are_whole():
    assert opened().check() == 2
    with pytest.raises(InputError, match=facts("Model", 1, 2, "'uid'")):
        opened(LOG.with_columns(uid=pl.Series([None, 1]))).check()
