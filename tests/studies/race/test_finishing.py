"""From predictions to metrics, tables and paired differences."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from openloop.studies.race.entrants import RACERS, raced
from openloop.studies.race.finishing import Finish, counts_of, finishes, standing
from openloop.studies.race.measures import AUC, MSE


def made_up(ground, name, *noises):
    rng = np.random.default_rng(0)
    truth = ground.test.rating
    predictions = np.array([truth + noise * rng.normal(size=len(truth)) for noise in noises])
    return Finish(name=name, predictions=predictions, chosen=("λ",))


@pytest.fixture
def found(ground, run):
    counts = counts_of(run, ground.test)
    entrants = {"MF-IPS": made_up(ground, "MF-IPS", 1.0, 1.0), "better": made_up(ground, "better", 0.5)}
    return {name: standing(ground.test, one, 3, ground.everywhere, counts) for name, one in entrants.items()}


def test_metrics_are_means_over_seeds(ground, run):
    one = made_up(ground, "x", 0.5, 2.0)
    got = standing(ground.test, one, 3, ground.everywhere, counts_of(run, ground.test))
    truth, scores = ground.test.rating, one.predictions
    assert got[MSE].value == pytest.approx(np.mean((scores - truth) ** 2))
    assert got[AUC].value == pytest.approx(np.mean([roc_auc_score(truth >= 3, score) for score in scores]))


def test_every_entrant_finishes_with_every_seed(ground, run):
    entrants = {name: RACERS[name] for name in ("Bias-IPS", "Bias naive")}
    found = finishes(run, ground, entrants, 2)
    assert [(one.name, one.predictions.shape) for one in found] == [(name, (2, len(ground.test))) for name in entrants]
    alone = raced(ground.given, entrant="Bias naive", seed=1, quick=True)["prediction"]
    assert found[1].predictions[1].tolist() == alone.tolist()
