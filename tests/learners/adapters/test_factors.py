"""Factors: arrays of any library, found by id, with unknown users and items said."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import openloop as ol
from openloop.core.feedback import Feedback, Vocabulary
from openloop.errors import AlignmentError, DuplicateError, InputError, UnknownIdError
from openloop.learners.adapters.factors import Factors
from tests.contracts import PersonalRecommenderContract
from tests.facts import facts

RNG = np.random.default_rng(0)
V, W, A, B = RNG.normal(size=(3, 2)), RNG.normal(size=(4, 2)), RNG.normal(size=3), RNG.normal(size=4)
SCORES = V @ W.T + A[:, None] + B + 0.5  # (3, 4)


class TestFactors(PersonalRecommenderContract):
    """The checkerboard's own factors: users and items of one parity like each other."""

    def make(self):
        parity = (-1.0) ** np.arange(self.size)
        return Factors(parity[:, None], parity[:, None])

    def test_unfitted_it_says_so(self):
        """It can be asked at once: its rows are the codes."""
        assert self.make().predict([0, 0], [0, 1]).tolist() == [1, -1]
        assert self.make().scores([1])[0, :2].tolist() == [-1, 1]


def log(users: Any = 3, items: Any = 4) -> Feedback:
    return Feedback.from_arrays([0, 1, 2], [1, 0, 1], [1, 2, 3], users=users, items=items)


def words(*ids: str) -> Vocabulary:
    return Vocabulary.of(list(ids))


# -- by hand -------------------------------------------------------------------------------------------------


def test_a_score_is_the_product_and_the_offsets():
    model = Factors(V, W, A, B, 0.5).fit(log())
    np.testing.assert_allclose(model.scores(range(3)), SCORES)
    np.testing.assert_allclose(model.predict([2, 0], [3, 1]), SCORES[[2, 0], [3, 1]])
    assert model.notes_ == ()


def test_rows_are_found_by_id():
    # The log's users are a, b, c in this order; the rows stand for c, a, b.
    model = Factors(V, W, A, B, 0.5, users=["c", "a", "b"], items=[30, 10, 40, 20])
    model.fit(log(words("a", "b", "c"), Vocabulary.of([10, 20, 30, 40])))
    np.testing.assert_allclose(model.scores(range(3)), SCORES[[1, 2, 0]][:, [1, 3, 0, 2]])


# -- other vocabularies, and predictions within a range ------------------------------------------------------


def test_predictions_may_be_cut_and_scores_are_not(tmp_path):
    model = Factors(V, W, A, B, 0.5, clip=(0, 1)).fit(log())
    assert (SCORES.min(), SCORES.max()) != (0, 1)
    np.testing.assert_allclose(model.predictions(range(3)), np.clip(SCORES, 0, 1))
    np.testing.assert_allclose(model.predict([2, 0], [3, 1]), np.clip(SCORES, 0, 1)[[2, 0], [3, 1]])
    np.testing.assert_allclose(model.scores(range(3)), SCORES)
    assert model.linked
    assert not Factors(V, W).linked
    model.save(tmp_path / "m.safetensors")
    assert ol.load(tmp_path / "m.safetensors").clip == (0, 1)
    np.testing.assert_allclose(
        model.placed(Vocabulary.of([2]), Vocabulary.range(4)).predictions([0]), np.clip(SCORES, 0, 1)[[2]]
    )


# -- unknown ids ---------------------------------------------------------------------------------------------


def test_users_without_a_row_are_named():
    model = Factors(V, W, users=["a", "b", "x"])
    with pytest.raises(UnknownIdError, match=facts("Factors", 2, "4 users", "'c'", "'d'", "'a'")):
        model.fit(log(words("a", "b", "c", "d")))


def test_unknown_users_and_items_may_count_as_zero():
    model = Factors(V, W, A, B, 0.5, users=["a", "b", "x"], items=[0, 1, 2, 3], unknown="zero")
    model.fit(log(words("a", "b", "c"), Vocabulary.of([0, 1, 2, 3, 9])))
    expected = np.zeros((3, 5))
    expected[:2, :4] = (V @ W.T)[:2]
    expected += np.array([A[0], A[1], 0])[:, None] + np.append(B, 0) + 0.5
    np.testing.assert_allclose(model.scores(range(3)), expected)
    zero_users, unused_users, zero_items = model.notes_
    assert re.search(facts("1 of 3", "users", "no row", 0), zero_users)
    assert re.search(facts("1 of 3", "users", "left out"), unused_users)
    assert re.search(facts("1 of 5", "items", "no row", 0), zero_items)


def test_ids_of_another_kind_are_refused_even_as_zero():
    with pytest.raises(UnknownIdError, match=facts("3 users", 0, 1, 2, "'a'")):
        Factors(V, W, users=["a", "b", "c"], unknown="zero").fit(log())


@pytest.mark.parametrize(
    ("users", "error", "told"),
    [
        pytest.param(["a", "b"], AlignmentError, ((2,), "user_factors", "3 rows"), id="too few"),
        pytest.param(["a", "b", "a"], DuplicateError, (1, "'a'"), id="twice"),
        pytest.param([1.5, 2.5, 3.5], InputError, ("float64", 1.5), id="floats"),
        pytest.param([True, False, True], InputError, ("bool",), id="booleans"),
    ],
)
def test_ids_are_one_a_row_and_distinct(users, error, told):
    with pytest.raises(error, match=facts("Factors", "users", *told)):
        Factors(V, W, users=users).fit(log())


# -- arrays --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "value", "error", "told"),
    [
        pytest.param("item_factors", W[:, :1], AlignmentError, ("user_factors", (3, 2), (4, 1)), id="fewer columns"),
        pytest.param("user_bias", A[:2], AlignmentError, ("2 values", "3 rows"), id="fewer biases"),
        pytest.param("intercept", np.nan, InputError, ("1 of 1", "finite"), id="nan"),
        pytest.param("item_factors", np.full((4, 2), np.inf), InputError, ("8 of 8", "finite", (0, 0)), id="inf"),
        pytest.param("user_factors", [["a", "b"]] * 3, InputError, ("numbers", "<U1"), id="text"),
    ],
)
def test_arrays_that_make_no_model_are_refused(name, value, error, told):
    with pytest.raises(error, match=facts("Factors", name, *told)):
        Factors(**({"user_factors": V, "item_factors": W} | {name: value})).fit(log())


# -- what is predicted ---------------------------------------------------------------------------------------


def test_predictions_may_be_a_function_of_the_scores():
    chances = Factors(V, W, output="logistic").fit(log())
    np.testing.assert_allclose(chances.scores(range(3)), V @ W.T)
    np.testing.assert_allclose(chances.predictions(range(3)), 1 / (1 + np.exp(-V @ W.T)))
    line = Factors(V, W, output=[[-1.0, 1.0], [1.0, 5.0]]).fit(log())
    np.testing.assert_allclose(line.predictions(range(3)), np.clip(3 + 2 * (V @ W.T), 1, 5))
    assert (chances.linked, line.linked, Factors(V, W).linked) == (True, True, False)
