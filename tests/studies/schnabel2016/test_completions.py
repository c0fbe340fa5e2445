"""Other completions, users with few ones, other samples of SKEWED: what they change in DCG, computed and by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import openloop as ol
from openloop.data.simulate import MARGINALS, low_rank
from openloop.studies.schnabel2016 import completions, table1, tolerances, worlds
from openloop.studies.schnabel2016.worlds import ALPHA, DRAWS, MODELS


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


def test_rotate_without_users_of_few_ones_is_naive_among_the_others():
    Y = low_rank(60, 120, 3, rng=0).astype(np.int8)
    Y[:5] = np.where(Y[:5] == 1, 2, Y[:5])  # five users without a one
    assert np.flatnonzero(completions.few_ones(Y)).tolist()[:5] == [0, 1, 2, 3, 4]
    found = completions.rotate_without_few({"Y": Y}, alpha=ALPHA, seed=0, draws=3)
    world = worlds.semi_synthetic({"Y": Y}, ALPHA, seed=0)
    delta = worlds.losses(world, ["dcg@50"])[0, MODELS.index("ROTATE")].reshape(Y.shape)
    many = np.sum(Y == 1, axis=1) >= 50
    assert found["truth"] == pytest.approx(delta[many].mean())
    log = world.observe(np.random.default_rng([0, DRAWS, 1]))
    rows = many[log.user]
    assert found["naive"][1] == pytest.approx(delta[log.user[rows], log.item[rows]].mean())


def test_rivals_move_a_dcg_by_the_farthest_and_marginals_by_all_together():
    ours = np.array([1.0, 2.0])
    rivals = np.array([[1.0, 2.0], [4.0, 2.0]])
    marginals = ours + np.array([[0.5, 0.1], [-0.5, 0.1], [0.2, 0.1], [0.0, 0.1], [0.0, 0.1]])
    truth = np.vstack([rivals, marginals])
    found = completions.OtherCompletions(rivals=2, truth=truth, naive=truth, few=np.array([3, 4]))
    # By hand: two marginals up and two down. Where all move a DCG alike, moves that keep their sum change nothing.
    assert found.moves("truth", ours) == pytest.approx([3.0 + 0.5 + 0.5 + 0.2, 0.0])


def test_marginals_move_what_is_linear_in_them_as_far_as_the_farthest_vertex():
    gradient, p = np.random.default_rng(0).normal(size=(5, 2)), np.array(MARGINALS)
    moved = np.array(completions._moved()) @ gradient  # (5, 2)
    found = completions.OtherCompletions(rivals=0, truth=moved, naive=moved, few=np.zeros(0, np.int64))
    farthest = np.abs((tolerances.vertices(p) - p) @ gradient).max(axis=0)
    assert found.moves("truth", p @ gradient) == pytest.approx(farthest, rel=2e-3)  # _moved divides by 1.0005


def test_a_full_run_moves_every_marginal(small_run):
    world, full = table1.complete(small_run), replace(small_run, quick=False)
    found = completions.other_completions(full, world)
    assert found.truth.shape == found.naive.shape == (1 + 5, len(MODELS))
    assert found.few.shape == (1,)
    for p in completions._moved():
        assert sum(p) == pytest.approx(1)
        assert np.sum(np.array(p) > MARGINALS) == 1


def test_without_rivals_there_is_no_other_completion(small_run):
    world = replace(table1.complete(small_run), rivals=())
    found = completions.other_completions(small_run, world)
    assert found.truth.shape == (0, len(MODELS))
    assert found.moves("truth", np.ones(len(MODELS))).tolist() == [0.0] * len(MODELS)


def test_two_samples_of_skewed_differ_in_dcg_by_no_more_than_is_allowed_and_often_by_a_third_of_it(small_run):
    Y = low_rank(100, 150, 3, rng=0).astype(np.int8)
    dcgs = []
    for seed in range(1, 41):
        world = worlds.semi_synthetic({"Y": Y}, ALPHA, seed=seed)
        skewed = replace(world, predictions={"SKEWED": world.predictions["SKEWED"]})
        delta, P = worlds.losses(skewed, ["dcg@50"])[0, 0], world.propensities.ravel()
        dcgs.append((delta.mean(), delta @ P / P.sum()))
    gaps = np.abs(np.diff(np.array(dcgs), axis=0))[::2]  # independent pairs, (20, 2)
    small = replace(table1.complete(small_run), ratings=Y)
    found = completions.other_samples(replace(small_run, quick=False), small)
    allowed = np.array([found[name][MODELS.index("SKEWED")] for name in ("truth", "naive")])
    assert np.all(gaps <= allowed)
    assert np.all(gaps.max(axis=0) > allowed / 3)
    assert all(np.count_nonzero(found[name]) == 1 for name in found)  # the other models have no sample


def test_a_quick_run_draws_no_other_sample(small_run):
    found = completions.other_samples(small_run, table1.complete(small_run))
    assert not any(found[name].any() for name in ("truth", "naive"))
