"""Cornac's models as learners here: Cornac's own numbers, under our codes, and rules for what it never saw."""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module

import numpy as np
import pytest

from openloop.core.feedback import Feedback, Vocabulary
from openloop.data.simulate import checkerboard, movie_lovers
from openloop.errors import InputError
from openloop.learners import CornacModel
from tests.contracts import PersonalRecommenderContract, RecommenderContract
from tests.facts import facts

pytestmark = pytest.mark.usefixtures("cornac")


class CornacsModels:
    """The module `cornac.models`, imported at its first use: without Cornac this file is read, and its tests skip."""

    def __getattr__(self, name):
        return getattr(import_module("cornac.models"), name)


models = CornacsModels()


@pytest.fixture
def Dataset(cornac):
    return cornac.data.Dataset


class TestMF(PersonalRecommenderContract):
    def make(self):
        return CornacModel(models.MF(k=3, max_iter=200, learning_rate=0.05, lambda_reg=0.001, seed=0))


@pytest.mark.usefixtures("torch")
class TestNeuMF(RecommenderContract):
    implicit = True

    def make(self):
        options = {"num_factors": 2, "layers": (4, 2), "num_epochs": 2, "batch_size": 64}
        return CornacModel(models.NeuMF(**options, backend="pytorch", verbose=False, seed=0))


def log() -> Feedback:
    return movie_lovers(users=12, items=9).observe(3)


# Users 0, 2 and items 1, 2 of a 3 × 4 grid: user 1 and items 0, 3 have no row.
HOLES = Feedback.from_arrays([0, 2, 2], [1, 1, 2], [5.0, 3.0, 1.0], users=3, items=4)


# -- by hand -------------------------------------------------------------------------------------------------


def test_unseen_users_and_items_are_an_error_where_that_is_asked_for():
    with pytest.raises(InputError, match=facts("1 user", "2 items", 'unknown="lowest"')):
        CornacModel(models.MostPop(), unknown="error").fit(HOLES)
    model = CornacModel(models.MostPop(), unknown="error").fit(checkerboard(4).everything())
    assert model.notes_ == ()


def test_an_unseen_user_is_the_mean_of_the_others():
    model = CornacModel(models.SVD(k=2, learning_rate=0.1, seed=1)).fit(HOLES)
    scores = model.scores([0, 1, 2])
    np.testing.assert_allclose(scores[1, 1:3], (scores[0, 1:3] + scores[2, 1:3]) / 2, rtol=1e-12)
    np.testing.assert_array_equal(scores[:, 0], scores.min(axis=1))
    np.testing.assert_array_equal(model.predict([1, 0, 1], [2, 3, 0]), scores[[1, 0, 1], [2, 3, 0]])


# -- Cornac's own numbers ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("BaselineOnly", {}),
        ("MF", {"k": 2, "learning_rate": 0.05}),
        ("PMF", {"k": 2, "learning_rate": 0.05, "variant": "linear"}),
        ("PMF", {"k": 2, "learning_rate": 0.05, "variant": "non_linear"}),
        ("WBPR", {"k": 2, "max_iter": 50}),
        ("EASE", {}),
    ],
)
def test_predictions_are_cornacs_under_our_ids(Dataset, name, options):
    model = getattr(models, name)(**options, seed=1)
    feedback = replace(log(), users=Vocabulary.of([f"user {n:02}" for n in range(12)]))
    feedback = feedback.take(feedback.user != 3)  # from there on our codes and Cornac's indices differ
    users, items = (
        v.ids[np.unique(c)].tolist() for v, c in ((feedback.users, feedback.user), (feedback.items, feedback.item))
    )
    columns = feedback.users.ids[feedback.user], feedback.items.ids[feedback.item].tolist(), feedback.rating.tolist()
    maps = {
        "global_uid_map": dict(zip(users, range(11), strict=True)),
        "global_iid_map": dict(zip(items, range(9), strict=True)),
    }
    theirs = model.clone().fit(Dataset.build(list(zip(*columns, strict=True)), **maps, seed=1))
    ours = CornacModel(model).fit(feedback)
    wanted = [[float(np.squeeze(theirs.score(theirs.uid_map[u], theirs.iid_map[i]))) for i in items] for u in users]
    np.testing.assert_allclose(ours.scores(feedback.users.codes(users)), wanted, rtol=1e-5, atol=1e-6)
    assert np.ptp(wanted) > 0.01
    assert ours.model_.recommend("user 05") == theirs.recommend("user 05")


# -- the door ------------------------------------------------------------------------------------------------


def test_what_is_no_model_of_users_and_items_is_refused():
    for given in ("BPR", models.BPR, None, models.GRU4Rec()):
        with pytest.raises(InputError, match=facts("CornacModel", type(given).__name__)):
            CornacModel(given).fit(log())
