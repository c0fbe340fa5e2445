"""One row of finite numbers an id: what is refused, and what is said of columns that carry nothing."""

from __future__ import annotations

import numpy as np
import pytest

from openloop.core.covariates import Covariates
from openloop.core.feedback import Vocabulary
from openloop.errors import InputError, UnknownIdError
from tests.facts import facts

IDS = Vocabulary.of([10, 20, 30])


def made(values, names=None, ids=IDS, **fields) -> Covariates:
    values = np.asarray(values, float)
    names = names or tuple(f"x{c}" for c in range(values.shape[1]))
    return Covariates(values=values, names=names, ids=ids, **fields)


# -- of: as given, or from an array ----------------------------------------------------------------------------


def test_covariates_of_other_ids_are_refused():
    with pytest.raises(UnknownIdError, match=facts("item covariates", 3, "log.items")):
        Covariates.of(made(np.eye(3)), Vocabulary.range(3), "item")


# -- errors --------------------------------------------------------------------------------------------------


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


def test_rank_counts_columns_that_are_no_combination_of_others():
    levels = np.eye(3)  # one column a level: the three sum to 1
    assert made(levels).rank == 2
    assert made(np.column_stack([[1, 2, 4], [2, 4, 8]])).rank == 1
    assert made(np.full((3, 2), 0.1)).rank == 0


def test_rank_does_not_depend_on_scale_or_origin():
    X = np.random.default_rng(0).standard_normal((3, 2)) * [1e14, 1e-200] + [0, 1e-195]
    assert made(X).rank == 2
    assert made(np.array([[1990.0, 1e-9], [1991.0, 3e-9], [1993.0, 2e-9]])).rank == 2
