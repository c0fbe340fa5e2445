"""The population is as said, or counted, and never smaller than what was seen."""

from __future__ import annotations

import re

import polars as pl
import pytest

import openloop as ol
from openloop.errors import InputError
from tests.facts import facts

LOG = pl.DataFrame({"user": [0, 0, 7], "item": [1, 2, 2], "rating": [1.0, 2.0, 5.0]})
MODEL = LOG.select("user", "item", score="rating")


def evaluated(log=LOG, **options):
    return ol.evaluate({"a": MODEL.lazy()}, log.lazy(), metrics=["mae"], estimators=["naive"], **options)


def test_what_nobody_said_is_counted_and_noted():
    found = evaluated()
    assert any(re.search(facts("2 users", "2 items", "population="), note) for note in found.notes)
    assert found["a", "mae", "naive"].n_users == 2
    assert evaluated(population=(9, 4))["a", "mae", "naive"].n_users == 9


def test_excluded_users_and_items_count_too():
    train = pl.DataFrame({"user": [0, 8], "item": [5, 6]}).lazy()
    assert any(re.search(facts("3 users", "4 items"), note) for note in evaluated(exclude=train).notes)


@pytest.mark.parametrize(
    ("given", "told"),
    [((2, 1), ("1 items", "2", "catalogue")), ((1, 2), ("1 users", "2")), ((2.5, 2), ("population=", "2.5"))],
)
def test_a_population_that_cannot_be_is_refused(given, told):
    with pytest.raises(InputError, match=facts(*told)):
        evaluated(population=given)
