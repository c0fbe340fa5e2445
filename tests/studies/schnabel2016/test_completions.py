"""Other completions, users with few ones, other samples of SKEWED: what they change in DCG, computed and by hand."""

from __future__ import annotations

import numpy as np
import pytest

import openloop as ol
from openloop.data.simulate import MARGINALS
from openloop.studies.schnabel2016 import completions, table1, worlds
from openloop.studies.schnabel2016.worlds import ALPHA, MODELS


def test_a_trial_has_the_dcg_of_the_completed_world(small_run):
    given = table1.complete(small_run).log
    found = completions.dcg_of_completion(given, factors=3, reg=2.0, seed=0, alpha=ALPHA, marginals=MARGINALS)
    Y = worlds.completed(given, factors=3, reg=2.0, seed=0)["Y"]
    world = worlds.semi_synthetic({"Y": Y}, ALPHA, seed=0)
    everything = ol.evaluate(world.predictions, world.everything(), metrics=["dcg@50"], estimators=["naive"])
    truth = [everything[model, "dcg@50", "naive"].value for model in MODELS]
    assert found["truth"] == pytest.approx(truth, rel=1e-12)
    drawn = [world.observe(np.random.default_rng(seed)) for seed in range(20)]
    delta = worlds.losses(world, ["dcg@50"])[0]
    naive = np.array([delta[:, log.cell].mean(axis=1) for log in drawn])  # (draws, models)
    far = np.abs(naive.mean(axis=0) - found["naive"]) / (naive.std(axis=0, ddof=1) / np.sqrt(20))
    assert far.max() < 4


def test_rivals_move_a_dcg_by_the_farthest_and_marginals_by_all_together():
    ours = np.array([1.0, 2.0])
    rivals = np.array([[1.0, 2.0], [4.0, 2.0]])
    marginals = ours + np.array([[0.5, 0.1], [-0.5, 0.1], [0.2, 0.1], [0.0, 0.1], [0.0, 0.1]])
    truth = np.vstack([rivals, marginals])
    found = completions.OtherCompletions(rivals=2, truth=truth, naive=truth, few=np.array([3, 4]))
    # By hand: two marginals up and two down. Where all move a DCG alike, moves that keep their sum change nothing.
    assert found.moves("truth", ours) == pytest.approx([3.0 + 0.5 + 0.5 + 0.2, 0.0])
