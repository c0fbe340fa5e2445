"""Runs of items on a small world in the place of the completed ML100K, and on songs in the place of Yahoo! R3."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

import numpy as np
import pytest

import openloop as ol
from openloop.data.simulate import World, low_rank, observation_model
from openloop.studies.kit.results import Claim
from openloop.studies.kit.running import Run
from openloop.studies.kit.trials import Trials, columns
from openloop.studies.schnabel2016 import bounds, figure2, figure3left, figure3right, figure4, table1
from openloop.studies.schnabel2016.worlds import Completion
from tests.facts import facts

U, I = 150, 60  # of `songs`
SHARES = np.array([0.06, 0.11, 0.27, 0.35, 0.21])  # of the stars, as the paper prints them for ML100K


@pytest.fixture(scope="session")
def small_cache(tmp_path_factory):
    return tmp_path_factory.mktemp("trials")


@pytest.fixture
def small_run(monkeypatch, small_cache):
    """A quick run, in this process, whose Y has 250 users and 420 items of low rank."""
    Y = low_rank(250, 420, 5, rng=0).astype(np.int8)
    log = columns(World(ratings=Y, propensities=np.full(Y.shape, 0.1)).observe(rng=0))

    def complete(run):
        return Completion(ratings=Y, log=log, shares=SHARES, factors=5, reg=1.0, accuracy=0.5, rivals=((3, 2.0),))

    for module in (table1, figure2, figure3left, figure3right, figure4, bounds):
        monkeypatch.setattr(module, "complete", complete)
    with Trials(small_cache, 0) as trials:
        yield Run(folder=small_cache, quick=True, seed=0, trials=trials)


@pytest.fixture(scope="module")
def songs():
    """In the shape of Yahoo! R3: what people chose to rate, and ten items each that were drawn for some of them."""
    Y = low_rank(U, I, 2, rng=0)
    log = World(ratings=Y, propensities=observation_model(Y, 0.25, 0.12)).observe(rng=0)
    rng = np.random.default_rng(1)
    user = np.repeat(np.arange(100), 10)
    item = np.concatenate([np.sort(rng.choice(I, 10, replace=False)) for _ in range(100)])
    drawn = ol.Feedback.from_arrays(user, item, Y[user, item], users=U, items=I)
    return replace(log, propensity=None), drawn


@pytest.fixture
def run(tmp_path):
    with Trials(tmp_path, 0) as trials:
        yield Run(folder=tmp_path, quick=True, seed=0, trials=trials)


def claim_about(claims: Iterable[Claim], *parts: object) -> Claim:
    """The one claim whose text has all these parts."""
    (found,) = (claim for claim in claims if re.search(facts(*parts), claim.text))
    return found
