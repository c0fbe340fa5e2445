"""A vocabulary knows its ids and no others."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from openloop.core.feedback import Feedback
from openloop.core.grids import check_shape, check_vocabulary
from openloop.core.vocabulary import Vocabulary
from openloop.errors import AlignmentError, EmptyError, InputError, PredictionError, UnknownIdError
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


def test_an_unsorted_or_empty_vocabulary_is_refused():
    with pytest.raises(InputError, match=facts("sorted", "Vocabulary.of")):
        Vocabulary(np.array([2, 1]))
    with pytest.raises(EmptyError, match=facts("Vocabulary", "ids")):
        Vocabulary(np.array([], int))


def test_ids_are_looked_up_at_the_ends_of_64_bits_and_in_any_type_of_integers():
    last = np.iinfo(np.int64).max
    assert Vocabulary(np.array([last - 2, last])).find(np.array([last - 2, last, 5])).tolist() == [0, 1, -1]
    assert Vocabulary.range(3).find(np.array([0, 2, 1, 7], np.uint64)).tolist() == [0, 2, 1, -1]


LOG = Feedback.from_arrays([0, 1], [0, 2], [1, 5], users=2, items=3)


def test_an_array_has_a_row_for_each_user_and_a_column_for_each_item():
    check_shape("f", (2, 3), LOG)
    with pytest.raises(PredictionError, match=facts("f", "(3, 2)", "2 users", "3 items")):
        check_shape("f", (3, 2), LOG)


@pytest.mark.parametrize("side", ["users", "items"])
def test_a_model_is_of_the_logs_ids_or_says_nothing_of_them(side):
    own = {"users_": LOG.users, "items_": LOG.items}
    check_vocabulary("f", SimpleNamespace(**own), LOG)
    check_vocabulary("f", SimpleNamespace(), LOG)
    with pytest.raises(AlignmentError, match=facts("f", side, "7 ids")):
        check_vocabulary("f", SimpleNamespace(**own | {f"{side}_": Vocabulary.range(7)}), LOG)
