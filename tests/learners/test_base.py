"""What learners share: weights at the door, codes, scores that are one product, and saving."""

from __future__ import annotations

import re

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from openloop.core.feedback import Feedback
from openloop.core.propensities import Propensities
from openloop.core.protocols import FactorModel, Recommender
from openloop.data.simulate import movie_lovers
from openloop.errors import AlignmentError, InputError, UnknownIdError
from openloop.learners import MF, WMF, Bias, GlobalAverage, Popularity, PureSVD
from openloop.learners.base import (
    FactorLearner,
    Learner,
    check_number,
    check_rank,
    check_whole,
    unseen_notes,
    weights,
)
from openloop.learners.model_files import saving
from openloop.propensity import Uniform
from tests.facts import facts


class Made(FactorLearner):
    """Factors drawn at random: a learner in all but learning."""

    def fit(self, feedback, sample_weight=None):
        rng, U, I = np.random.default_rng(0), feedback.n_users, feedback.n_items
        weights(self, feedback, sample_weight)
        self.user_factors_, self.item_factors_ = rng.normal(size=(U, 3)), rng.normal(size=(I, 3))
        self.user_bias_, self.item_bias_, self.intercept_ = rng.normal(size=U), rng.normal(size=I), 2.5
        return self._remember(feedback, "nothing was learned")


class Parameters:
    """Holds what the checks look at."""

    def __init__(self, **values):
        vars(self).update(values)


def three(**columns) -> Feedback:
    return Feedback.from_arrays([2, 0, 1], [0, 1, 3], [5, 1, 3], users=4, items=5, **columns)


# -- weights -------------------------------------------------------------------------------------------------


def test_weights_have_mean_one():
    assert weights(Made(), three(), [1, 2, 6]).tolist() == [1 / 3, 2 / 3, 2]
    assert weights(Made(), three(), np.array([7, 7, 7], np.int8)).tolist() == [1, 1, 1]
    assert weights(Made(), three(), None).tolist() == [1, 1, 1]


@pytest.mark.parametrize("share", [0.75, None])
def test_weights_of_a_part_have_mean_one_too(share):
    assert weights(Made(), three(share=share), [3, 1, 2]).mean() == 1


@pytest.mark.parametrize("scale", [1e-320, 1e-300, 1e300, 1.7e308])
def test_a_factor_on_all_weights_changes_nothing(scale):
    np.testing.assert_allclose(weights(Made(), three(), np.full(3, scale)), [1, 1, 1], rtol=1e-12)


def test_weights_too_far_apart_are_refused():
    with pytest.raises(InputError, match=facts("Made", "sample_weight", "largest")):
        weights(Made(), three(), [1e-300, 1.0, 1e300])


def test_weights_are_the_logs_own_where_none_are_given():
    log = three(weight=np.array([6.0, 1, 2]))  # in input order; Feedback sorts by user
    assert weights(Made(), log, None).tolist() == [1 / 3, 2 / 3, 2]
    assert weights(Made(), log, [1, 1, 1]).tolist() == [1, 1, 1]


def test_the_logs_own_weights_multiply_those_of_propensities():
    log = three(weight=np.array([6.0, 1, 2]))
    p = Propensities(values=np.array([1.0, 0.5, 0.25]))
    expected = log.weight * [1, 2, 4]
    np.testing.assert_allclose(weights(Made(), log, p), expected / expected.mean(), rtol=1e-12)
    np.testing.assert_allclose(weights(Made(), three(), p), np.array([1, 2, 4]) * 3 / 7, rtol=1e-12)


def test_propensities_weigh_by_their_inverse_and_belong_to_the_log():
    log = three()
    p = Propensities(values=np.array([1, 0.5, 0.1]), floor=0.25)
    np.testing.assert_allclose(weights(Made(), log, p), np.array([1, 2, 4]) * 3 / 7)
    with pytest.raises(AlignmentError):
        weights(Made(), log, Propensities(values=np.full(3, 0.5), fingerprint="another"))


@pytest.mark.parametrize("value", [0, -1, np.nan, np.inf])
def test_weights_that_are_not_positive_and_finite_are_refused(value):
    with pytest.raises(InputError, match=facts("Made", "sample_weight", "1 of 3", float(value), "index 1")):
        weights(Made(), three(), [1, value, 2])


@pytest.mark.parametrize("value", [[1, 2], [[1], [2], [3]], 1.0, []])
def test_weights_of_another_shape_are_refused(value):
    with pytest.raises(AlignmentError, match=facts("Made", "sample_weight", np.shape(value), "3 rows")):
        weights(Made(), three(), value)


@pytest.mark.parametrize("value", ["ips", [1, "a", 2], [None, {}, 1]])
def test_weights_that_are_no_numbers_are_refused(value):
    with pytest.raises(InputError, match=facts("sample_weight", "numbers", "Propensities")):
        weights(Made(), three(), value)


def test_a_table_is_no_feedback():
    with pytest.raises(InputError, match=facts("Made", "Feedback", "dict", "ol.read")):
        weights(Made(), {"user": [1]}, None)


# -- codes ---------------------------------------------------------------------------------------------------


def test_codes_outside_the_grid_are_refused():
    model = Made().fit(three())
    for users in ([4], [-1], [0, 99]):
        with pytest.raises(UnknownIdError, match=facts("Made", "user", 0, 3, min(users), max(users))):
            model.scores(users)
    with pytest.raises(UnknownIdError, match=facts("Made", "item", 0, 4, 5)):
        model.predict([0], [5])


@pytest.mark.parametrize("users", [[0.0], ["a"], [True]])
def test_codes_are_whole_numbers(users):
    with pytest.raises(InputError, match=facts("Made", "user", np.asarray(users).dtype, "model.users_.codes(ids)")):
        Made().fit(three()).scores(users)


@pytest.mark.parametrize("users", [0, [[0, 1]]])
def test_codes_are_a_list(users):
    with pytest.raises(AlignmentError, match=facts("Made", "user", np.shape(users))):
        Made().fit(three()).scores(users)
    with pytest.raises(AlignmentError, match=facts("Made", "user", np.shape(users))):
        Made().fit(three()).predict(users, users)


def test_a_pair_is_a_user_and_an_item():
    with pytest.raises(AlignmentError, match=facts("Made.predict", (2,), (1,))):
        Made().fit(three()).predict([0, 1], [0])


def test_nobody_has_no_scores():
    model = Made().fit(three())
    assert model.predict([], []).shape == (0,)
    assert model.scores([]).shape == (0, 5)


# -- factors -------------------------------------------------------------------------------------------------


def test_a_score_is_the_product_and_the_offsets():
    model = Made().fit(three())
    expected = model.user_factors_ @ model.item_factors_.T + model.user_bias_[:, None] + model.item_bias_ + 2.5
    np.testing.assert_allclose(model.scores(range(4)), expected, rtol=1e-12)
    u, i = np.indices((4, 5)).reshape(2, -1)
    np.testing.assert_allclose(model.predict(u, i), expected[u, i], rtol=1e-12)


def test_factor_arrays_order_the_items_as_scores_do():
    model = Made().fit(three())
    V, W, b = model.factor_arrays()
    np.testing.assert_array_equal((V @ W.T + b).argsort(axis=1), model.scores(range(4)).argsort(axis=1))
    assert isinstance(model, FactorModel)
    assert isinstance(model, Recommender)


def test_factors_without_columns_leave_the_offsets():
    model = Made().fit(three())
    model.user_factors_, model.item_factors_ = np.zeros((4, 0)), np.zeros((5, 0))
    offsets = model.user_bias_[:, None] + model.item_bias_ + 2.5
    np.testing.assert_allclose(model.scores(range(4)), offsets)
    np.testing.assert_allclose(model.predict([3, 1], [0, 4]), offsets[[3, 1], [0, 4]])


def test_a_fit_remembers_the_grid_and_what_it_had_to_say():
    log = three()
    model = Made().fit(log)
    assert model.users_ is log.users
    assert model.items_ is log.items
    assert model.notes_ == ("nothing was learned",)


def test_unfitted_it_says_so():
    for ask in (lambda m: m.scores([0]), lambda m: m.predict([0], [0]), lambda m: m.factor_arrays()):
        with pytest.raises(NotFittedError, match=facts("Made", "fit(feedback)")):
            ask(Made())


def test_a_bare_learner_does_nothing():
    for ask in (lambda m: m.fit(three()), lambda m: m.predict([0], [0]), lambda m: m.scores([0])):
        with pytest.raises(NotImplementedError):
            ask(Learner())


def test_save_hands_the_model_on(monkeypatch):
    seen = []
    monkeypatch.setattr(saving, "save", lambda model, path: seen.append((model, path)))
    model = Made()
    model.save("somewhere")
    assert seen == [(model, "somewhere")]


# -- parameters ----------------------------------------------------------------------------------------------


def test_whole_numbers():
    assert check_whole(Parameters(n=np.int64(3)), "n") == 3
    assert check_whole(Parameters(n=0), "n", least=0) == 0
    for bad in (0, -1, 1.0, "1", None, True):
        with pytest.raises(InputError, match=facts("Parameters", "n", 1, repr(bad))):
            check_whole(Parameters(n=bad), "n")


def test_numbers():
    assert check_number(Parameters(x=np.float32(0.5)), "x") == 0.5
    assert check_number(Parameters(x=0), "x") == 0
    for bad in (-1, np.nan, np.inf, "1", None, True):
        with pytest.raises(InputError, match=facts("Parameters", "x", 0, repr(bad))):
            check_number(Parameters(x=bad), "x")
    with pytest.raises(InputError, match=facts("Parameters", "x", "above 0")):
        check_number(Parameters(x=0), "x", positive=True)


def test_a_grid_bounds_the_rank():
    check_rank(Made(), 4, 4, 5)
    with pytest.raises(InputError, match=facts("Made", "factors", "4 × 5", 5)):
        check_rank(Made(), 5, 4, 5)


def test_those_without_a_rating_are_counted():
    users, items = unseen_notes(three(), "the mean")
    assert re.search(facts("1 user", "rating", "the mean"), users)
    assert re.search(facts("2 items", "rating", "the mean"), items)
    assert unseen_notes(Feedback.from_arrays([0, 1], [1, 0], [1, 1]), "the mean") == []


# -- propensities --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [MF, WMF, Bias, Popularity, GlobalAverage, PureSVD], ids=lambda kind: kind.__name__)
def test_propensities_are_weights_one_over_p(make):
    log = movie_lovers(users=20, items=16).observe(3)
    model = {"factors": 2} if "factors" in make().get_params() else {}
    wanted = make(**model).fit(log, sample_weight=1 / log.propensity).scores([0, 5])
    seen = Uniform().fit(log)
    grid = np.full((20, 16), 0.5)
    grid[log.user, log.item] = log.propensity
    for given in (log.propensity, Propensities(values=log.propensity), grid):
        np.testing.assert_array_equal(make(**model).fit(log, propensities=given).scores([0, 5]), wanted)
    equal = make(**model).fit(log).scores([0, 5])
    np.testing.assert_allclose(make(**model).fit(log, propensities=seen).scores([0, 5]), equal, rtol=1e-5, atol=1e-6)


def test_weights_and_propensities_at_once_are_refused():
    log = movie_lovers(users=20, items=16).observe(3)
    with pytest.raises(InputError, match=facts("Bias", "sample_weight", "propensities")):
        Bias().fit(log, sample_weight=1 / log.propensity, propensities=log.propensity)
    with pytest.raises(InputError, match=facts("Bias", "propensities", "str")):
        Bias().fit(log, propensities="p")
