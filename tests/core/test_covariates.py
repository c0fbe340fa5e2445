"""One row of finite numbers an id: what is refused, and what is said of columns that carry nothing."""

from __future__ import annotations

import dataclasses
import re

import numpy as np
import pytest

from openloop.core.covariates import Covariates
from openloop.core.feedback import Vocabulary
from openloop.errors import AlignmentError, InputError, UnknownIdError
from tests.facts import facts

IDS = Vocabulary.of([10, 20, 30])


def made(values, names=None, ids=IDS, **fields) -> Covariates:
    values = np.asarray(values, float)
    names = names or tuple(f"x{c}" for c in range(values.shape[1]))
    return Covariates(values=values, names=names, ids=ids, **fields)


# -- by hand -------------------------------------------------------------------------------------------------


def test_rows_stand_in_the_order_of_the_ids_and_cannot_be_written():
    given = made([[1, 0], [2, 1], [3, 0]], notes=("one was left out",))
    assert given.values.dtype == np.float64
    assert given.values[:, 0].tolist() == [1, 2, 3]
    assert given.notes == ("one was left out",)
    with pytest.raises(ValueError, match="read-only"):
        given.values[0, 0] = 9
    with pytest.raises(dataclasses.FrozenInstanceError):
        given.names = ()


def test_it_says_how_large_it_is_and_what_it_holds():
    assert repr(made(np.eye(3), ("age", "tall", "old"))) == "Covariates(3 × 3: 'age', 'tall', 'old')"


def test_names_may_come_as_a_list():
    assert made(np.eye(3), ["a", "b", "c"]).names == ("a", "b", "c")


# -- of: as given, or from an array ----------------------------------------------------------------------------


def test_of_nothing_is_nothing_and_of_covariates_is_the_same():
    given = made(np.eye(3))
    assert Covariates.of(None, IDS, "user") is None
    assert Covariates.of(given, IDS, "user") is given
    assert Covariates.of(given, Vocabulary.of([30, 20, 10]), "user") is given  # the same ids, another object


@pytest.mark.parametrize("kind", [np.asarray, list, tuple])
def test_of_an_array_names_the_columns_by_side_and_position(kind):
    found = Covariates.of(kind([[1, 2], [3, 4], [5, 6]]), IDS, "item")
    assert found.names == ("item_0", "item_1")
    assert found.values.tolist() == [[1, 2], [3, 4], [5, 6]]
    assert found.ids is IDS


def test_covariates_of_other_ids_are_refused():
    with pytest.raises(UnknownIdError, match=facts("item covariates", 3, "log.items")):
        Covariates.of(made(np.eye(3)), Vocabulary.range(3), "item")


@pytest.mark.parametrize("given", [{"age": [1, 2, 3]}, "users.csv", 7])
def test_a_table_is_sent_to_the_door(given):
    with pytest.raises(InputError, match=facts("user covariates", type(given).__name__, "log.users")):
        Covariates.of(given, IDS, "user")


@pytest.mark.parametrize("shape", [(3,), (2, 1), (4, 1), (3, 1, 1)])
def test_an_array_of_another_shape_is_refused(shape):
    with pytest.raises(AlignmentError, match=facts("user covariates", "3 users", shape)):
        Covariates.of(np.ones(shape), IDS, "user")


@pytest.mark.parametrize("given", [[["a"], ["b"], ["c"]], [[1], [2, 3], [4]], [[None], [{}], [1]]])
def test_an_array_of_something_else_than_numbers_is_refused(given):
    with pytest.raises(InputError, match=facts("user covariates", "numbers", "ol.covariates")):
        Covariates.of(given, IDS, "user")


# -- errors --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "names"),
    [(np.ones((2, 1)), ("a",)), (np.ones((3, 2)), ("a",)), (np.ones(3), ("a",)), (np.ones((3, 0)), ())],
)
def test_one_row_an_id_and_one_name_a_column(values, names):
    with pytest.raises(AlignmentError, match=facts("Covariates", "3 ids", f"{len(names)} names", values.shape)):
        Covariates(values=values, names=names, ids=IDS)


def test_a_name_stands_once():
    with pytest.raises(InputError, match=facts("names", "'age', 'age'")):
        made(np.eye(3)[:, :2], ("age", "age"))


@pytest.mark.parametrize("hole", [np.nan, np.inf, -np.inf])
def test_holes_are_named_by_column_number_and_first_id(hole):
    values = np.ones((3, 2))
    values[1:, 1] = hole
    with pytest.raises(InputError, match=facts("'b'", "2 of 3", "id 20")):
        made(values, ("a", "b"))
    with pytest.raises(InputError, match=facts("'b'", "2 of 3", "id 'y'")):
        made(values, ("a", "b"), ids=Vocabulary.of(["x", "y", "z"]))


def test_numbers_too_large_for_products_are_refused():
    with pytest.raises(InputError, match=facts("'x1'", 1e16)):
        made([[1.0, 1e16], [2.0, 0.0], [3.0, 1.0]])


# -- columns that carry nothing --------------------------------------------------------------------------------


def test_constant_columns_are_named():
    values = [[0.1, 1, 1e15], [0.1, 2, -1e15], [0.1, 3, 0]]
    assert made(values, ("same", "varies", "wild")).constant == ("same",)
    assert made([[1.0], [1.0], [1.0]]).constant == ("x0",)


def test_rank_counts_columns_that_are_no_combination_of_others():
    levels = np.eye(3)  # one column a level: the three sum to 1
    assert made(levels).rank == 2
    assert made(np.column_stack([[1, 2, 4], [2, 4, 8]])).rank == 1
    assert made(np.full((3, 2), 0.1)).rank == 0


def test_rank_does_not_depend_on_scale_or_origin():
    X = np.random.default_rng(0).standard_normal((3, 2)) * [1e14, 1e-200] + [0, 1e-195]
    assert made(X).rank == 2
    assert made(np.array([[1990.0, 1e-9], [1991.0, 3e-9], [1993.0, 2e-9]])).rank == 2


def test_remarks_are_the_notes_and_the_columns_that_carry_nothing():
    given = made([[7, 1, 2], [7, 2, 4], [7, 4, 8]], ("same", "one", "twice"), notes=("one was left out",))
    note, constant, rank = given.remarks("user")
    assert note == "one was left out"
    assert re.search(facts("user", "constant", "'same'"), constant)
    assert re.search(facts("3 user", "rank 1"), rank)
    assert made([[1], [2], [4]]).remarks("item") == []
