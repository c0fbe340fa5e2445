"""Estimators against an open loop."""

from __future__ import annotations

import numpy as np

import openloop as ol
from openloop.audits.open_loop import against_open_loop, with_open_loop
from openloop.core.feedback import Feedback
from tests.audits.cases import found, popular_world


def test_estimators_are_scored_against_the_open_loop():
    world = popular_world()
    log = world.observe(1)
    rng = np.random.default_rng(2)
    cells = np.sort(rng.choice(world.ratings.size, 4000, replace=False))
    user, item = np.divmod(cells, 60)
    sample = Feedback.from_arrays(user, item, world.ratings[user, item], users=log.users, items=log.items)
    third = world.ratings + 2.5
    models = {**world.predictions, "c": third}
    _, result, (table,) = found(models, log, p=world.propensities)
    open_loop = ol.evaluate(models, sample, metrics=["mae"], estimators=["naive"])
    scored = against_open_loop(result, open_loop, len(sample))
    by = {score.estimator: score for score in scored.scores}
    assert by["snips"].right == by["snips"].pairs == 3
    assert by["naive"].right < 3
    assert by["snips"].error < by["naive"].error / 5
    assert by["snips"].tau.value == 1 > by["naive"].tau.value
    line = with_open_loop(table, scored).lines[-1]
    assert (line.name, line.rows) == ("open loop", 4000)
    assert line.estimates["c"].value == open_loop["c", "mae", "naive"].value


def test_a_sample_says_by_how_much_weights_must_be_off():
    rng = np.random.default_rng(0)
    Y = rng.integers(1, 6, (200, 50)).astype(float)
    p = np.where(Y >= 4, 0.4, 0.1)
    seen = rng.random(Y.shape) < p
    log = Feedback.from_arrays(*np.nonzero(seen), Y[seen], users=200, items=50)
    user, item = np.divmod(np.sort(rng.choice(Y.size, 1500, replace=False)), 50)
    sample = Feedback.from_arrays(user, item, Y[user, item], users=log.users, items=log.items)
    models = {"a": Y + rng.normal(0, 1, Y.shape), "b": Y + rng.normal(0, 1.5, Y.shape)}
    right, wrong, none = (
        ol.audit(models, log, q, metrics=["mae"], estimators=["naive"] if q is None else ["snips"], sample=sample)
        for q in (p, np.full(Y.shape, 0.2), None)
    )
    assert right.open_loop.gamma_min == 1
    assert 1.5 < wrong.open_loop.gamma_min < 2  # odds of a high rating are off by 4, and 2 is the root of that
    assert none.open_loop.gamma_min is None
    assert wrong.records()["open_loop"]["gamma_min"] == wrong.open_loop.gamma_min
