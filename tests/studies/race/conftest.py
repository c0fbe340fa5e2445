"""A small world in the place of Coat: a log that people chose, p of all cells, and cells drawn for everyone."""

from __future__ import annotations

import re

import numpy as np
import pytest

import openloop as ol
from openloop.data.simulate import World, low_rank, observation_model
from openloop.studies.kit.running import Run
from openloop.studies.kit.trials import Trials
from openloop.studies.race.finishing import Ground
from tests.facts import facts

U, I, DRAWN = 60, 40, 8


@pytest.fixture(scope="session")
def ground():
    rng = np.random.default_rng(0)
    Y = low_rank(U, I, 2, (0.2, 0.2, 0.3, 0.2, 0.1), rng=0)
    P = observation_model(Y, 0.5, 0.25)
    log = World(ratings=Y, propensities=P).observe(rng=0)
    user = np.repeat(np.arange(U), DRAWN)
    item = np.concatenate([np.sort(rng.choice(I, DRAWN, replace=False)) for _ in range(U)])
    test = ol.Feedback.from_arrays(user, item, Y[user, item], users=U, items=I)
    covariates = {"user_covariates": rng.normal(size=(U, 2)), "item_covariates": rng.normal(size=(I, 3))}
    return Ground(name="small", log=log, p=P, test=test, covariates=covariates, notes=("a small world",))


@pytest.fixture(scope="session")
def kept(tmp_path_factory):
    return tmp_path_factory.mktemp("trials")


@pytest.fixture
def run(kept):
    """A quick run in this process."""
    with Trials(kept, 0) as trials:
        yield Run(folder=kept, quick=True, seed=0, trials=trials)


def claim_about(claims, *parts):
    """The one claim whose text has all these parts."""
    (found,) = (claim for claim in claims if re.search(facts(*parts), claim.text))
    return found
