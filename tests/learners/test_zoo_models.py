"""The zoo: 104 models by name, set as the paper's code sets them, each of which learns."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone

from openloop.core.protocols import Recommender
from openloop.data.simulate import movie_lovers
from openloop.errors import InputError
from openloop.learners import zoo
from openloop.learners.zoo_models import SETTINGS
from tests.facts import facts

pytestmark = pytest.mark.usefixtures("cornac", "torch")  # WMF, GMF, MLP and NeuMF learn on torch


def log():
    return movie_lovers(users=20, items=12).observe(5)


def small(family: str, seed: int = 123):
    """The family's one model with 2 factors and few epochs."""
    (model,) = zoo(families=[family], sizes=[2], seed=seed).values()
    for epochs in {"max_iter", "num_epochs"} & set(vars(model.model)):
        setattr(model.model, epochs, 3)
    return model


def test_there_are_104_by_the_papers_names():
    names = list(zoo())
    assert len(names) == 104
    assert names[:6] == ["GA", "MostPop", "BO", "MLP", "MF10", "MF20"]
    sized = ["MF", "SVD", "PMFL", "PMFNL", "WMF", "MMMF", "BPR", "WBPR", "GMF", "NeuMF"]
    assert names[4:] == [f"{family}{k}" for family in sized for k in range(10, 101, 10)]


def test_what_the_papers_code_sets_is_set():
    models = {name: model.model for name, model in (zoo() | zoo(families=["NMF"])).items()}
    rates = {"MF40": 0.001, "SVD40": 0.001, "PMFL40": 0.001, "BPR40": 0.001, "BO": 0.01}
    assert {name: models[name].learning_rate for name in rates} == rates
    assert (models["MF40"].use_bias, models["SVD40"].use_bias, models["NMF40"].use_bias) == (False, True, True)
    assert (models["MF40"].early_stop, models["SVD40"].early_stop) == (True, False)
    assert (models["PMFL40"].variant, models["PMFNL40"].variant) == ("linear", "non_linear")
    assert (models["NeuMF40"].layers, models["MLP"].layers) == ((64, 32, 16, 8), (64, 32, 16, 8))
    assert {models[name].backend for name in ("MLP", "GMF40", "NeuMF40")} == {"pytorch"}
    wmf = {"a": 1, "b": 0.01, "lambda_u": 0.01, "lambda_v": 0.01, "learning_rate": 0.001, "max_iter": 100}
    assert {name: getattr(models["WMF40"], name) for name in wmf} == wmf
    assert {model.seed for model in models.values() if hasattr(model, "seed")} == {123}


@pytest.mark.parametrize("family", SETTINGS)
def test_every_family_learns_and_scores_the_same_under_a_seed(family):
    model, feedback = small(family), log()
    assert isinstance(model, Recommender)
    scores = model.fit(feedback).scores(np.arange(20))
    assert scores.shape == (20, 12)
    assert np.isfinite(scores).all()
    assert np.ptp(scores) > 0 or family == "GA"
    np.testing.assert_array_equal(clone(model).fit(feedback).scores(np.arange(20)), scores)
    other = small(family, seed=5).fit(feedback).scores(np.arange(20))
    assert np.array_equal(other, scores) == (family in {"GA", "MostPop", "BO"})  # in which nothing is drawn


@pytest.mark.parametrize(
    ("options", "told"),
    [
        pytest.param({"families": ["BRP"]}, ("family", "'BRP'", "'BPR'"), id="family"),
        pytest.param({"sizes": [10, 0]}, ("sizes", 1, 0), id="size 0"),
        pytest.param({"sizes": [2.5]}, ("sizes", 1, 2.5), id="size 2.5"),
        pytest.param({"seed": -1}, ("seed", 0, -1), id="seed"),
    ],
)
def test_what_cannot_be_is_refused(options, told):
    with pytest.raises(InputError, match=facts("zoo", *told)):
        zoo(**options)
