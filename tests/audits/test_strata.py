"""Strata tables, and paradoxes in logs."""

from __future__ import annotations

import numpy as np
import pytest

import openloop as ol
from openloop.audits.strata import paradoxes
from openloop.data.simulate import World
from tests.audits.cases import LOG, WORLD, found, popular_world
from tests.examples import same


@pytest.mark.parametrize(
    ("name", "estimator"), [("mae", "snips"), ("recall@3", "snips"), ("ndcg@3", "naive")]
)  # no weights debias ndcg
def test_each_stratum_is_the_estimate_of_its_rows(name, estimator):
    _, _, (table,) = found(metrics=[name])
    middle = (LOG.propensity.min() + LOG.propensity.max()) / 2
    for line, mask in zip(table.strata, (LOG.propensity <= middle, LOG.propensity > middle), strict=True):
        alone = ol.evaluate(WORLD.predictions, LOG.take(mask), metrics=[name], estimators=[estimator, "naive"])
        for model in WORLD.predictions:
            same(line.estimates[model].value, alone[model, name, estimator].value)
            same(line.estimates[model].stderr, alone[model, name, estimator].stderr)
            same(line.plain[model].value, alone[model, name, "naive"].value)  # the paper's
            same(line.plain[model].stderr, alone[model, name, "naive"].stderr)


def test_the_paradox_of_a_constructed_log_is_found():
    world = popular_world()
    _, result, tables = found(world.predictions, world.observe(1), p=world.propensities)
    assert result.ranking("mae", "naive")[0] == "a"  # which most rows, and most items, do not prefer
    (one,) = paradoxes(tables, result)
    assert (one.kind, one.preferred, one.majority.name) == ("reversal", "b", "Q1")
    assert result.ranking("mae", "snips")[0] == "b"


def test_no_paradox_is_found_where_all_strata_agree():
    world = popular_world(gap_tail=0.3, gap_head=0.1)
    _, result, tables = found(world.predictions, world.observe(1), p=world.propensities)
    assert paradoxes(tables, result) == ()


@pytest.mark.parametrize("gap", [0.0, 0.05])
def test_false_alarms_are_rare(gap):
    # Where the difference is the same in both strata there is no paradox: a reversal would need two errors of the
    # test in opposite directions, a masking one in the majority against the sign of the rest. None in 200 logs at
    # either gap was measured; 5 % would be allowed.
    alarms = 0
    for draw in range(200):
        world = popular_world(gap_tail=gap, gap_head=gap, users=60, rng=draw)
        _, result, tables = found(world.predictions, world.observe(draw), p=world.propensities)
        alarms += bool(paradoxes(tables, result))
    assert alarms <= 0.05 * 200


def test_selection_inside_a_stratum_does_not_turn_its_weighted_means():
    # One wide stratum: p is 0.05 where model a errs less, 0.5 elsewhere. Its plain means have b ahead, which is the
    # selection; by weighted means a is ahead, as over all cells.
    rng = np.random.default_rng(0)
    rare = np.broadcast_to(np.arange(40) < 30, (300, 40))
    Y = rng.integers(1, 6, rare.shape).astype(np.float32)
    error = 1 + rng.normal(0, 0.1, Y.shape)
    world = World(
        ratings=Y, propensities=np.where(rare, 0.05, 0.5),
        predictions={"a": Y + error, "b": Y + error + np.where(rare, 0.3, -0.3)},
    )  # fmt: skip
    log = world.observe(0)
    _, _, (table,) = found(world.predictions, log, groups={"all": np.full(len(log), "one")}, groupings={"all": "all"})
    (line,) = table.strata
    assert line.difference("a", "b").value < 0 < line.plain["a"].value - line.plain["b"].value
    assert line.best == "a"
