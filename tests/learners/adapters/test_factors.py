"""Factors: arrays of any library, found by id, with unknown users and items said."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import openloop as ol
from openloop.core.feedback import Feedback, Vocabulary
from openloop.data.simulate import movie_lovers
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


class TestFactorsById(TestFactors):
    """The rows in another order, found by id."""

    def make(self):
        ids = np.random.default_rng(1).permutation(self.size)
        parity = (-1.0) ** ids
        return Factors(parity[:, None], parity[:, None], users=ids, items=list(ids))


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


def test_without_offsets_it_is_the_product():
    np.testing.assert_allclose(Factors(V, W).fit(log()).scores(range(3)), V @ W.T)


def test_rows_are_found_by_id():
    # The log's users are a, b, c in this order; the rows stand for c, a, b.
    model = Factors(V, W, A, B, 0.5, users=["c", "a", "b"], items=[30, 10, 40, 20])
    model.fit(log(words("a", "b", "c"), Vocabulary.of([10, 20, 30, 40])))
    np.testing.assert_allclose(model.scores(range(3)), SCORES[[1, 2, 0]][:, [1, 3, 0, 2]])


def test_before_a_fit_the_codes_are_those_of_the_sorted_ids():
    model = Factors(V, W, users=["c", "a", "b"])
    np.testing.assert_allclose(model.scores([0]), V[[1]] @ W.T)
    assert model.users_ == words("a", "b", "c")
    assert model.items_ == Vocabulary.range(4)
    np.testing.assert_allclose(model.predict(model.users_.codes(["c"]), [2]), [V[0] @ W[2]])
    np.testing.assert_array_equal(Factors(V, W, users=["c", "a", "b"]).factor_arrays()[0], V[[1, 2, 0]])


def test_it_has_no_other_attributes():
    for name in ("user_factors__", "fitted_", "factors"):
        with pytest.raises(AttributeError, match=facts("'Factors'", f"'{name}'")):
            getattr(Factors(V, W), name)
    with pytest.raises(AlignmentError, match=facts("user_factors", (3, 2), "item_factors", (4, 1))):
        _ = Factors(V, W[:, :1]).users_


def test_a_fit_forgets_the_order_before_it():
    model = Factors(V, W, users=["c", "a", "b"])
    model.scores([0])
    model.fit(log(words("a", "b", "c")))
    np.testing.assert_allclose(model.scores([2]), V[[0]] @ W.T)


@given(st.permutations(range(6)), st.permutations(range(5)))
def test_the_order_of_the_rows_does_not_matter(user_order, item_order):
    rng = np.random.default_rng(3)
    P, Q, a, b = rng.normal(size=(6, 3)), rng.normal(size=(5, 3)), rng.normal(size=6), rng.normal(size=5)
    full = Feedback.from_arrays([0, 5], [4, 0], [1, 1], users=6, items=5)
    plain = Factors(P, Q, a, b).fit(full)
    u, i = list(user_order), list(item_order)
    mixed = Factors(P[u], Q[i], a[u], b[i], users=u, items=np.array(i)).fit(full)
    np.testing.assert_array_equal(mixed.scores(range(6)), plain.scores(range(6)))


def test_later_training_of_the_arrays_does_not_reach_a_fitted_model():
    mine = V.copy()
    model = Factors(mine, W).fit(log())
    mine[:] = 0
    np.testing.assert_allclose(model.scores(range(3)), V @ W.T)


# -- other vocabularies, and predictions within a range ------------------------------------------------------


def test_rows_may_be_placed_on_other_ids_again():
    model = Factors(V, W, A, B, 0.5, users=["c", "a", "b"], items=[30, 10, 40, 20])
    placed = model.placed(words("b", "c"), Vocabulary.of([20, 40]))
    np.testing.assert_allclose(placed.scores(range(2)), SCORES[[2, 0]][:, [3, 2]])
    assert model.users_ == words("a", "b", "c")
    fitted = Factors(V, W, A, B, 0.5).fit(log(words("a", "b", "c")))  # rows are the codes of that log
    np.testing.assert_allclose(fitted.placed(words("c"), Vocabulary.of([1])).scores([0]), SCORES[[2]][:, [1]])
    with pytest.raises(UnknownIdError, match=facts("1 of the log's 2 users", "'x'")):
        model.placed(words("b", "x"), Vocabulary.of([20]))


def test_rows_have_the_ids_of_the_log_that_they_were_fitted_to():
    assert Factors(V, W).by_position("users")
    assert not Factors(V, W, users=["c", "a", "b"]).by_position("users")
    fitted = Factors(V, W, unknown="zero").fit(log(words("a", "b", "c")))
    assert not fitted.by_position("users")
    more = log(words("a", "b", "c", "d"))
    found = ol.evaluate({"m": fitted}, more, metrics=["mae"], estimators=["naive"])
    assert any("1 of 4 users" in note for note in found.notes)


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


@pytest.mark.parametrize("clip", [(1, 1), (5, 1), (1, 2, 3)])
def test_a_range_has_two_ends(clip):
    with pytest.raises(InputError, match=facts("Factors", "clip", "low < high")):
        Factors(V, W, clip=clip).fit(log())


def test_items_by_factors_are_told_apart():
    with pytest.raises(AlignmentError, match=facts((3, 2), (2, 4), "item_factors.T")):
        Factors(V, W.T).fit(log())


# -- unknown ids ---------------------------------------------------------------------------------------------


def test_users_without_a_row_are_named():
    model = Factors(V, W, users=["a", "b", "x"])
    with pytest.raises(UnknownIdError, match=facts("Factors", 2, "4 users", "'c'", "'d'", "'a'")):
        model.fit(log(words("a", "b", "c", "d")))


def test_items_without_a_row_are_named():
    with pytest.raises(UnknownIdError, match=facts("Factors", 1, "4 items", 9, 'unknown="zero"')):
        Factors(V, W, items=[0, 1, 2, 3]).fit(log(items=Vocabulary.of([0, 1, 2, 9])))


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


def test_what_becomes_of_the_unknown_is_one_of_two():
    with pytest.raises(InputError, match=facts("Factors", "unknown", "'error'", "'zero'", "'drop'")):
        Factors(V, W, unknown="drop").fit(log())


def test_without_ids_the_sizes_must_agree():
    with pytest.raises(AlignmentError, match=facts("user_factors", "3 rows", "5 users", "users=")):
        Factors(V, W).fit(log(users=5))
    with pytest.raises(AlignmentError, match=facts("item_factors", "4 rows", "9 items", "items=")):
        Factors(V, W).fit(log(items=9))


@pytest.mark.parametrize(
    ("users", "error", "told"),
    [
        pytest.param(["a", "b"], AlignmentError, ((2,), "user_factors", "3 rows"), id="too few"),
        pytest.param(["a", "b", "a"], DuplicateError, (1, "'a'"), id="twice"),
        pytest.param([1.5, 2.5, 3.5], InputError, ("float64", 1.5), id="floats"),
        pytest.param(["a", None, "b"], InputError, ("object",), id="none"),
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
        pytest.param("user_factors", V[0], AlignmentError, ((2,),), id="one row"),
        pytest.param("item_factors", W[:, :1], AlignmentError, ("user_factors", (3, 2), (4, 1)), id="fewer columns"),
        pytest.param("user_factors", np.zeros((0, 2)), InputError, ((0, 2),), id="no rows"),
        pytest.param("user_bias", A[:2], AlignmentError, ("2 values", "3 rows"), id="fewer biases"),
        pytest.param("item_bias", W, AlignmentError, ((4, 2),), id="table of biases"),
        pytest.param("intercept", [1.0], AlignmentError, ((1,),), id="list of intercepts"),
        pytest.param("intercept", np.nan, InputError, ("1 of 1", "finite"), id="nan"),
        pytest.param("item_factors", np.full((4, 2), np.inf), InputError, ("8 of 8", "finite", (0, 0)), id="inf"),
        pytest.param("user_factors", [["a", "b"]] * 3, InputError, ("numbers", "<U1"), id="text"),
        pytest.param("user_factors", V.astype(complex), InputError, ("numbers", "complex128"), id="complex"),
        pytest.param("user_factors", [[1, 2], [3]], InputError, ("numbers",), id="ragged"),
        pytest.param("user_factors", None, InputError, ("numbers", "object"), id="none"),
    ],
)
def test_arrays_that_make_no_model_are_refused(name, value, error, told):
    with pytest.raises(error, match=facts("Factors", name, *told)):
        Factors(**({"user_factors": V, "item_factors": W} | {name: value})).fit(log())


@pytest.mark.parametrize(
    ("given", "kept"),
    [(np.float16, np.float32), (np.float32, np.float32), (np.float64, np.float64), (np.int8, np.float64)],
)
def test_single_precision_stays_single(given, kept):
    model = Factors(V.astype(given), W.astype(given), A.astype(given), None, 0.5).fit(log())
    assert model.scores([0]).dtype == kept
    assert model.predict([0], [0]).dtype == kept


def test_columns_of_lists_as_spark_exports_them():
    # als.fit(frame).userFactors.toPandas() has columns id and features.
    users = pd.DataFrame({"id": [2, 0, 1], "features": [row.astype(np.float32).tolist() for row in V[[2, 0, 1]]]})
    items = pl.DataFrame({"id": [3, 1, 0, 2], "features": W[[3, 1, 0, 2]].tolist()})
    model = Factors(users["features"], items["features"], users=users["id"], items=items["id"]).fit(log())
    np.testing.assert_allclose(model.scores(range(3)), V @ W.T, rtol=1e-6)


def test_frames_of_numbers_are_read():
    model = Factors(pd.DataFrame(V), pl.DataFrame(W), pd.Series(A), pl.Series(B), users=pd.Index([0, 1, 2])).fit(log())
    np.testing.assert_allclose(model.scores(range(3)), SCORES - 0.5)


class Tensor:
    """As PyTorch's: it waits for its gradient, on a device, and refuses to become an array before it is let go."""

    def __init__(self, values, free=False):
        self.values, self.free = values, free

    def detach(self):
        return Tensor(self.values, free=False)

    def cpu(self):
        return Tensor(self.values, free=True)

    def __array__(self, dtype=None, copy=None):
        if not self.free:
            raise RuntimeError("call detach first")
        return np.asarray(self.values, dtype)


def test_tensors_that_wait_for_a_gradient_are_read():
    np.testing.assert_allclose(Factors(Tensor(V), Tensor(W)).fit(log()).scores(range(3)), V @ W.T)


def test_an_array_that_cannot_be_read_is_an_error_with_its_reason():
    class Locked:
        def __array__(self, dtype=None, copy=None):
            raise RuntimeError("on another machine")

    with pytest.raises(InputError, match=facts("Factors", "user_factors", "on another machine")):
        Factors(Locked(), W).fit(log())


# -- weights and evaluation ----------------------------------------------------------------------------------


def test_weights_change_nothing_and_the_fit_says_so():
    model = Factors(V, W).fit(log(), sample_weight=[1, 2, 3])
    np.testing.assert_allclose(model.scores(range(3)), V @ W.T)
    (note,) = model.notes_
    assert re.search(facts("weights", "nothing"), note)


def test_factors_in_any_order_are_evaluated_as_their_scores_are():
    world = movie_lovers(users=60, items=40)
    seen = world.observe(2)
    names = words(*(f"u{u:02}" for u in range(60)))
    train, test = ol.split(
        Feedback.from_arrays(seen.user, seen.item, seen.rating, users=names, items=40), test=0.3, rng=0
    )
    rng = np.random.default_rng(0)
    P, Q, b, order = rng.normal(size=(60, 4)), rng.normal(size=(40, 4)), rng.normal(size=40), rng.permutation(60)
    given = Factors(P[order], Q, None, b, 3.0, users=names.ids[order]).fit(train)
    models = {"als": given, "array": P @ Q.T + b + 3}
    result = ol.evaluate(models, test, metrics=["mse", "ndcg@5", "recall@5"], estimators=["naive"], exclude=train)
    for metric in ("mse", "ndcg@5", "recall@5"):
        assert np.isclose(*(result[name, metric, "naive"].value for name in models), rtol=1e-6)


# -- what is predicted ---------------------------------------------------------------------------------------


def test_predictions_may_be_a_function_of_the_scores():
    chances = Factors(V, W, output="logistic").fit(log())
    np.testing.assert_allclose(chances.scores(range(3)), V @ W.T)
    np.testing.assert_allclose(chances.predictions(range(3)), 1 / (1 + np.exp(-V @ W.T)))
    line = Factors(V, W, output=[[-1.0, 1.0], [1.0, 5.0]]).fit(log())
    np.testing.assert_allclose(line.predictions(range(3)), np.clip(3 + 2 * (V @ W.T), 1, 5))
    assert (chances.linked, line.linked, Factors(V, W).linked) == (True, True, False)


@pytest.mark.parametrize("output", ["probit", [[1.0, 2.0]], [[2.0, 1.0], [1.0, 2.0]], [[], []], [[np.nan], [1.0]]])
def test_other_functions_are_refused(output):
    with pytest.raises(InputError, match=facts("Factors", "output")):
        Factors(V, W, output=output).fit(log())


def test_one_function_is_enough():
    with pytest.raises(InputError, match=facts("Factors", "clip", "output")):
        Factors(V, W, output="logistic", clip=(1, 5)).fit(log())


def test_what_is_predicted_goes_along_to_other_codes_and_into_vectors():
    for more in ({"clip": (0.0, 1.0)}, {"output": "logistic"}, {"output": [[-1.0, 1.0], [1.0, 5.0]]}):
        model = Factors(V, W, **more)
        for same in (
            model.placed(Vocabulary.range(3), Vocabulary.range(4)),
            Factors(**model.to_vectors()),
            ol.wrap(model),
        ):
            np.testing.assert_allclose(same.predictions(range(3)), model.predictions(range(3)))
