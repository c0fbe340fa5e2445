"""What rounding and chance may do to a MAE: by hand, by worlds with other marginals, and never more than a quarter."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import optimize

from openloop.data.simulate import MARGINALS, low_rank
from openloop.studies.schnabel2016 import tolerances, worlds
from openloop.studies.schnabel2016.estimates import DRAWN
from openloop.studies.schnabel2016.published import PUBLISHED
from openloop.studies.schnabel2016.worlds import ALPHA, MODELS

CELLS = 943 * 1682  # of ML100K


def mae_of_world(marginals):
    """The true MAE, and the naive one in expectation, of a world with these marginals."""
    Y = low_rank(300, 400, 3, marginals, rng=0).astype(np.int8)
    world = worlds.semi_synthetic({"Y": Y}, ALPHA, seed=0)
    delta, P = worlds.losses(world, ["mae"])[0], world.propensities.ravel()
    return delta.mean(axis=-1), delta @ P / P.sum()


@pytest.mark.parametrize("marginals", [MARGINALS, (0.4, 0.3, 0.15, 0.1, 0.05)])
def test_what_marginals_imply_is_what_worlds_have(marginals):
    found = tolerances.expected(np.array(marginals))
    true, naive = mae_of_world(marginals)
    assert found.true == pytest.approx(true, rel=0.01)  # one sample of SKEWED, and whole cells
    assert found.naive == pytest.approx(naive, rel=0.02)


def test_the_truth_by_hand():
    found = tolerances.expected(np.array(MARGINALS))
    by_model = dict(zip(MODELS, found.true, strict=True))
    assert by_model["REC_ONES"] == pytest.approx(4 * 0.026)
    assert by_model["REC_FOURS"] == pytest.approx(0.026)
    assert by_model["ROTATE"] == pytest.approx(1 + 3 * 0.526)
    assert by_model["COARSENED"] == pytest.approx(2 * 0.526 + 0.242 + 0.026)


def test_rounding_moves_a_mae_by_its_sensitivity_to_the_marginals():
    moved = dict(zip(MODELS, tolerances.rounding().true, strict=True))
    # By hand, half a unit h is .0005: 4p₅, p₅, 1 + 3p₁, and 2p₁ + p₂ + p₅ with p₁, p₂ up and p₃, p₄ down.
    assert moved["REC_ONES"] == pytest.approx(4 * 0.0005)
    assert moved["REC_FOURS"] == pytest.approx(0.0005)
    assert moved["ROTATE"] == pytest.approx(3 * 0.0005)
    assert moved["COARSENED"] == pytest.approx((2 + 1) * 0.0005)
    for name, value in vars_of(tolerances.rounding()).items():
        assert np.all(value > 0), name


def test_vertices_are_the_farthest_marginals_that_round_to_the_printed_ones():
    p = np.array(MARGINALS)
    found = tolerances.vertices(p)
    assert len(np.unique(found, axis=0)) == len(found) == 30
    assert found.sum(axis=1) == pytest.approx(np.ones(30))
    assert np.abs(found - p).max() <= 0.0005 * (1 + 1e-9)
    for gradient in np.random.default_rng(0).normal(size=(20, 5)):
        most = optimize.linprog(-gradient, A_eq=np.ones((1, 5)), b_eq=[0], bounds=[(-0.0005, 0.0005)] * 5)
        assert ((found - p) @ gradient).max() == pytest.approx(-most.fun)


def test_a_tolerance_is_capped_by_the_least_of_what_it_must_be_small_against():
    assert tolerances.capped(0.1, 10.0, -2.0) == 0.1
    assert tolerances.capped(1.0, 10.0, -2.0) == pytest.approx(0.4)


def vars_of(found):
    return {name: getattr(found, name) for name in ("true", "naive", "shares")}


def test_two_samples_of_skewed_differ_by_no_more_than_is_allowed_and_often_by_a_third_of_it():
    Y = low_rank(100, 150, 3, rng=0).astype(np.int8)
    maes = []
    for seed in range(40):
        world = worlds.semi_synthetic({"Y": Y}, ALPHA, seed=seed)
        delta, P = worlds.losses(world, ["mae"])[0, MODELS.index("SKEWED")], world.propensities.ravel()
        maes.append((delta.mean(), delta @ P / P.sum()))
    gaps = np.abs(np.diff(np.array(maes)[::1], axis=0))[::2]  # independent pairs
    allowed = [tolerances.sampling(Y.size, alpha)[MODELS.index("SKEWED")] for alpha in (None, ALPHA)]
    assert np.all(gaps <= allowed)
    assert np.all(gaps.max(axis=0) > np.array(allowed) / 4)
    assert tolerances.sampling(Y.size)[MODELS.index("ROTATE")] == 0


def test_what_is_allowed_for_a_mae_is_less_than_a_quarter_of_it():
    moved = tolerances.rounding()
    for j, model in enumerate(MODELS):
        printed = PUBLISHED["table1"]["mae"][model]
        true = 0.0005 + moved.true[j] + tolerances.sampling(CELLS)[j]
        naive = 0.0005 + moved.naive[j] + tolerances.sampling(CELLS, ALPHA)[j]
        assert true < printed["true"] / 4
        for name, world in (("ips", true), ("snips", true), ("naive", naive)):
            mean, deviation = printed[name]
            assert world + tolerances.ERRORS * math.sqrt(2 / DRAWN) * deviation < mean / 4
