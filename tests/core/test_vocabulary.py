"""A vocabulary knows its ids and no others."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from openloop.core.vocabulary import Vocabulary
from openloop.errors import EmptyError, InputError, UnknownIdError
from tests.facts import facts


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


def test_ids_are_looked_up_at_the_ends_of_64_bits_and_in_any_type_of_integers():
    last = np.iinfo(np.int64).max
    assert Vocabulary(np.array([last - 2, last])).find(np.array([last - 2, last, 5])).tolist() == [0, 1, -1]
    assert Vocabulary.range(3).find(np.array([0, 2, 1, 7], np.uint64)).tolist() == [0, 2, 1, -1]
