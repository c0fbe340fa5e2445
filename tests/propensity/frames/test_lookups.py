"""Numbers by id, by count and by rating, joined to rows of any engine."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import openloop as ol
from openloop.errors import InputError, RatingError, UnknownIdError
from openloop.propensity.frames.frame_ids import FrameIds
from openloop.propensity.frames.lookups import ITEM, RATING, USER, Lookup
from openloop.support.frames import collected, lazy
from tests.engines import EAGER, converter
from tests.facts import facts

ROWS = pl.DataFrame({USER: [2, 1, 2, 9], ITEM: ["a", "b", "b", "c"], RATING: [1.0, 5.0, 5.0, 1.0]})


ITEMS = ol.Vocabulary.of(["a", "b", "c"])


@pytest.mark.parametrize("engine", EAGER)
def test_ids_ratings_and_counts_bring_their_numbers(engine):
    frame = lazy(converter(engine)(ROWS))
    expected = {
        ITEM: (ITEMS, {"a": 1.0, "b": 2.0, "c": 3.0}),
        RATING: (np.array([1.0, 5.0]), {1.0: 1.0, 5.0: 2.0}),
        USER: (FrameIds.of(frame, USER), {1: 1.0, 2: 2.0, 9: 1.0}),  # by their numbers of rows, 1 and 2
    }
    for key, (of, numbers) in expected.items():
        values = np.arange(1.0, 1 + len(of if key != USER else of.count))
        found = collected(Lookup(key=key, of=of, columns={"x": values}).onto(frame))
        assert dict(zip(found[key].to_list(), found["x"].to_list(), strict=True)) == numbers


def test_rows_of_polars_keep_their_order():
    many = ROWS.sample(1000, with_replacement=True, seed=0).lazy()
    items = Lookup(key=ITEM, of=ITEMS, columns={"x": np.arange(3.0)})
    assert collected(items.onto(lazy(many)))[ITEM].to_list() == many.collect()[ITEM].to_list()


def test_keys_that_are_not_known_are_an_error_unless_others_are_allowed():
    frame = lazy(ROWS)
    few = ol.Vocabulary.of(["a", "b"])
    with pytest.raises(UnknownIdError, match=facts("1 item", "'c'")):
        Lookup(key=ITEM, of=few).check(frame)
    free = Lookup(key=ITEM, of=few, columns={"x": np.zeros(2)}, others=True, otherwise={"x": 7.0})
    free.check(frame)
    assert collected(free.onto(frame))["x"].to_list() == [0, 0, 0, 7]
    with pytest.raises(RatingError, match=facts(5.0, 1.0)):
        Lookup(key=RATING, of=np.array([1.0])).check(frame)
    with pytest.raises(InputError, match=facts("text", "numbers", "cast")):
        Lookup(key=ITEM, of=ol.Vocabulary.range(3)).check(frame)


def test_as_many_users_may_be_new_as_have_no_row():
    users = FrameIds.of(lazy(ROWS), USER).among(5)
    new = Lookup(key=USER, of=users, columns={"x": np.array([0.5, 1, 2])})
    rows = lazy(pl.DataFrame({USER: [2, 30, 31]}))
    new.check(rows)
    assert collected(new.onto(rows))["x"].to_list() == [2, 0.5, 0.5]
    with pytest.raises(UnknownIdError, match=facts(3, 30, 2)):
        new.check(lazy(pl.DataFrame({USER: [30, 31, 32]})))
