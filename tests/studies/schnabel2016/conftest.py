"""A run of items on a small world in the place of the completed ML100K."""

from __future__ import annotations

import numpy as np
import pytest

from openloop.data.simulate import low_rank
from openloop.studies.kit.running import Run
from openloop.studies.kit.trials import Trials
from openloop.studies.schnabel2016 import evaluation, tightness
from openloop.studies.schnabel2016.worlds import Completion

SHARES = np.array([0.06, 0.11, 0.27, 0.35, 0.21])  # of the stars, as the paper prints them for ML100K


@pytest.fixture(scope="session")
def small_cache(tmp_path_factory):
    return tmp_path_factory.mktemp("trials")


@pytest.fixture
def small_run(monkeypatch, small_cache):
    """A quick run, in this process, whose Y has 250 users and 420 items of low rank."""
    Y = low_rank(250, 420, 5, rng=0).astype(np.int8)

    def complete(run):
        return Completion(ratings=Y, shares=SHARES, factors=5, reg=1.0, accuracy=0.5)

    for module in (evaluation, tightness):
        monkeypatch.setattr(module, "complete", complete)
    with Trials(small_cache, 0) as trials:
        yield Run(folder=small_cache, quick=True, seed=0, trials=trials)
