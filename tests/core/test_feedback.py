"""Feedback sorts, checks and remembers; a vocabulary knows its ids and no others."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from openloop.core.feedback import Feedback, Vocabulary
from openloop.errors import (
    AlignmentError,
    DuplicateError,
    EmptyError,
    InputError,
    PropensityError,
    RatingError,
    UnknownIdError,
)
from tests.facts import facts


def three(**changes):
    """Cells (0, 1), (0, 3), (2, 0) of a 3 × 4 grid."""
    columns = {"user": [0, 0, 2], "item": [1, 3, 0], "rating": [5, 1, 3]}
    return Feedback(**({"users": Vocabulary.range(3), "items": Vocabulary.range(4)} | columns | changes))


# -- Vocabulary ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ids", [[7, -2, 7, 5], ["b", "a", "b"]])
def test_a_vocabulary_sorts_and_finds_back(ids):
    known = Vocabulary.of(ids)
    assert known.ids.tolist() == sorted(set(ids))
    np.testing.assert_array_equal(known.ids[known.codes(ids)], ids)


@given(st.lists(st.integers(-(2**62), 2**62), min_size=1), st.lists(st.integers(-(2**62), 2**62)))
def test_find_is_membership(ids, wanted):
    known = Vocabulary.of(ids)
    found = known.find(np.array(wanted, np.int64))
    assert [int(c) >= 0 for c in found] == [w in set(ids) for w in wanted]


def test_an_integer_never_matches_a_string():
    assert Vocabulary.of([1, 2]).find(["1"]).tolist() == [-1]
    assert Vocabulary.of(["1", "2"]).find([1]).tolist() == [-1]


def test_unknown_ids_are_listed_with_an_example_of_a_known_one():
    with pytest.raises(UnknownIdError, match=facts("user", 2, 8, 9, "int64", 3)):
        Vocabulary.of([3, 4]).codes([9, 3, 8, 9], "user")


def test_a_vocabulary_equals_its_ids_and_cannot_be_written():
    one, other = Vocabulary.of([1, 2]), Vocabulary(np.array([1, 2]))
    assert one == other
    assert hash(one) == hash(other)
    assert one != Vocabulary.of([1, 3])
    assert one != [1, 2]
    with pytest.raises(ValueError, match="read-only"):
        one.ids[0] = 5


def test_an_unsorted_or_empty_vocabulary_is_refused():
    with pytest.raises(InputError, match=facts("sorted", "Vocabulary.of")):
        Vocabulary(np.array([2, 1]))
    with pytest.raises(EmptyError, match=facts("Vocabulary", "ids")):
        Vocabulary(np.array([], int))


# -- Feedback ------------------------------------------------------------------------------------------------


def test_from_arrays_sorts_every_column_and_remembers_the_rows():
    log = Feedback.from_arrays(
        [2, 0, 0], [0, 3, 1], [3, 1, 5], users=3, items=4, propensity=[0.3, 0.1, 0.5], time=[30, 10, 50]
    )
    assert log.cell.tolist() == [1, 3, 8]
    assert log.rating.tolist() == [5, 1, 3]
    assert log.propensity.tolist() == [0.5, 0.1, 0.3]
    assert log.time.tolist() == [50, 10, 30]
    assert log.row.tolist() == [2, 1, 0]
    assert log.align([30, 10, 50]).tolist() == log.time.tolist()


def test_the_population_may_be_larger_than_what_was_observed():
    log = three()
    assert (log.n_users, log.n_items, len(log)) == (3, 4, 3)
    assert log.user_ptr.tolist() == [0, 2, 2, 3]
    assert repr(log) == "Feedback(3 of 3 users × 4 items)"


def test_columns_cannot_be_written_and_fields_not_replaced_in_place():
    log = three(propensity=[0.1, 0.2, 0.3])
    for column in (log.user, log.item, log.rating, log.propensity, log.row, log.share):
        with pytest.raises(ValueError, match="read-only"):
            column[0] = 1
    with pytest.raises(FrozenInstanceError):
        log.rating = log.rating


def test_a_part_keeps_its_rows_population_and_place_in_the_input():
    log = Feedback.from_arrays([2, 0, 0], [0, 3, 1], [3, 1, 5], users=3, items=4)
    part = log.take(log.rating > 2, share=np.full(2, 0.5), origin=log.fingerprint)
    assert part.rating.tolist() == [5, 3]
    assert (part.n_users, part.n_items) == (3, 4)
    assert part.align(["x", "y", "z"]).tolist() == ["z", "x"]  # the input still had three rows
    assert part.share.tolist() == [0.5, 0.5]


def test_the_fingerprint_is_that_of_the_cells():
    log = three()
    assert log.fingerprint == three(rating=[1, 1, 1]).fingerprint
    assert log.fingerprint != three(item=[1, 2, 0]).fingerprint
    assert log.fingerprint != three(items=Vocabulary.range(5)).fingerprint


@pytest.mark.parametrize(
    ("changes", "error", "refusal"),
    [
        pytest.param({"user": [], "item": [], "rating": []}, EmptyError, facts("Feedback", "rows"), id="no rows"),
        pytest.param({"rating": [5, 1]}, AlignmentError, facts("rating", (2,), (3,)), id="short rating"),
        pytest.param({"propensity": [0.5]}, AlignmentError, facts("propensity", (1,), (3,)), id="short propensity"),
        pytest.param({"user": [0, 0, 3]}, UnknownIdError, facts("user codes", 2, 3), id="user code too large"),
        pytest.param({"item": [-1, 3, 0]}, UnknownIdError, facts("item codes", -1, 3), id="item code too small"),
        pytest.param({"user": [0, 2, 0]}, InputError, facts("sorted", "Feedback.from_arrays"), id="unsorted"),
        pytest.param(
            {"user": [0, 0, 0], "item": [1, 1, 3]}, DuplicateError, facts("user", "item", 0, 1), id="repeated cell"
        ),
        pytest.param({"rating": [5, np.nan, 3]}, RatingError, facts(1, "ratings", "row 2"), id="rating nan"),
        pytest.param({"rating": [5, np.inf, 3]}, RatingError, facts(1, "ratings", "row 2"), id="rating inf"),
        pytest.param(
            {"propensity": [0.5, 0, 1]},
            PropensityError,
            facts("Feedback.propensity", "1 of 3", "are 0"),
            id="propensity 0",
        ),
        pytest.param(
            {"propensity": [0.5, 1.5, 1]},
            PropensityError,
            facts("Feedback.propensity", "1 of 3", "(0, 1]", 1.5),
            id="propensity above 1",
        ),
        pytest.param(
            {"propensity": [0.5, np.nan, 1]},
            PropensityError,
            facts("Feedback.propensity", "1 of 3", "(0, 1]", np.nan),
            id="propensity nan",
        ),
        pytest.param({"weight": [1, -1, 1]}, InputError, facts("weight", -1.0), id="negative weight"),
        pytest.param({"share": np.array([0.5, 0, 1])}, InputError, facts("share", "(0, 1]", 0.0), id="share 0"),
    ],
)
def test_what_is_not_a_log_is_refused(changes, error, refusal):
    with pytest.raises(error, match=refusal):
        three(**changes)


@pytest.mark.parametrize(
    ("column", "values"),
    [
        ("rating", [5, 1, 3, 4]),
        ("rating", [5, 1]),
        ("item", [1, 3]),
        ("propensity", [0.1, 0.2, 0.3, 0.4]),
        ("time", [1, 2, 3, 4]),
    ],
)
def test_from_arrays_refuses_columns_of_another_length(column, values):
    given_ = {"user": [0, 0, 2], "item": [1, 3, 0], "rating": [5, 1, 3]} | {column: values}
    with pytest.raises(AlignmentError, match=facts(column, len(values), 3)):
        Feedback.from_arrays(given_.pop("user"), given_.pop("item"), given_.pop("rating"), **given_)


@pytest.mark.parametrize("codes", [[0.5, 0, 2], [0, 0, 2**32 + 2], ["0", "0", "2"]])
def test_codes_must_be_whole_numbers_of_the_grid(codes):
    with pytest.raises(InputError, match="user"):
        three(user=np.array(codes))


def test_from_arrays_refuses_an_empty_log():
    with pytest.raises(EmptyError):
        Feedback.from_arrays([], [], [])


def test_an_array_of_another_length_does_not_align():
    with pytest.raises(AlignmentError, match=facts("align", 3, (2,))):
        three().align([1, 2])


def test_a_log_without_shares_stays_without():
    log = replace(three(), share=None)
    assert log.share is None
    assert log.take(np.array([True, False, True])).share is None


def test_ids_are_looked_up_at_the_ends_of_64_bits_and_in_any_type_of_integers():
    last = np.iinfo(np.int64).max
    assert Vocabulary(np.array([last - 2, last])).find(np.array([last - 2, last, 5])).tolist() == [0, 1, -1]
    assert Vocabulary.range(3).find(np.array([0, 2, 1, 7], np.uint64)).tolist() == [0, 2, 1, -1]
