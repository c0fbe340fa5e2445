"""Worlds and comparisons that tests of audits share."""

from __future__ import annotations

import numpy as np

from openloop.audits.strata import strata_tables
from openloop.data.simulate import World
from openloop.evaluation import prepared
from openloop.moments.question import Question
from tests.examples import small_world

WORLD = small_world(users=80)
LOG = WORLD.observe(1)
BY = "propensity (2 of equal width)"


def found(models=WORLD.predictions, log=LOG, metrics=("mae",), groupings=None, p=None, **options):
    asked = Question(metrics=metrics, estimators=["naive", "ips", "snips"], **options)
    ready = prepared(models, log, p, asked)
    result = ready.compare("all")
    tables = strata_tables(ready.source, result, ready.metrics, groupings or {BY: (2, "width")})
    return ready, result, tables


def popular_world(gap_tail=-0.2, gap_head=1.5, users=400, rng=0):
    """Three items that nearly all have rated, and 57 that few have; model a errs less by `gap` than b."""
    rng = np.random.default_rng(rng)
    head = np.arange(60) < 3
    Y = rng.integers(1, 6, (users, 60)).astype(np.float32)
    error = rng.normal(0, 0.3, Y.shape)
    a, b = Y + 2 + error, Y + 2 + error + np.where(head, gap_head, gap_tail) + rng.normal(0, 0.3, Y.shape)
    p = np.broadcast_to(np.where(head, 0.9, 0.08), Y.shape)
    return World(ratings=Y, propensities=p, predictions={"a": a, "b": b})
