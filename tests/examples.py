"""Small worlds that tests share, and the plain formulas that results are held against."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from openloop.blocks.block import Outcome
from openloop.core.feedback import Feedback
from openloop.core.metric import Metric
from openloop.core.moments import Moments
from openloop.data.simulate import World
from openloop.moments.reduction import summary_of
from openloop.moments.rows import Rows, base_sums, gains, sums
from openloop.moments.terms import POWERS, Common, Needed, assemble

CELL = ("mae", "mse", "rmse", "accuracy", "dcg", "dcg@3", "prec@3", "precision@3", "rbp", "rbp:0.5")
POOLED = ("adg", "atop", "recall@3")
NORMALISED = ("ndcg", "ndcg@3")
ORDERED = ("map", "mrr", "hit@3", "auc")
METRICS = (*CELL, *POOLED, *NORMALISED, *ORDERED)
ESTIMATORS = (
    "naive", "ips", "snips", "clipped", "clipped@2", "dr", "stratified", "stratified@2:width",
    "stratified@3:observed", "snips_user", "ips_eq3",
)  # fmt: skip


def small_world(users: int = 30, items: int = 12, seed: int = 0) -> World:
    """Ratings 1 … 5, propensities in 0.2 … 0.9, one prediction without ties and one with many."""
    rng = np.random.default_rng(seed)
    Y = rng.integers(1, 6, (users, items)).astype(np.float32)
    Y[:, 0], Y[:, 1] = 5, 1  # every user has a relevant item, and one that is not
    a = np.clip(Y + rng.normal(0, 1.5, Y.shape), 1, 5)
    return World(
        ratings=Y,
        propensities=rng.uniform(0.2, 0.9, Y.shape),
        predictions={"a": a + 1e-3 * rng.random(Y.shape), "b": np.rint(np.clip(Y + rng.normal(0, 1, Y.shape), 1, 5))},
    )


def scaled(log: Feedback, factor: float) -> Feedback:
    """The same rows with all propensities multiplied."""
    return replace(log, propensity=log.propensity * factor)


def same(found: Any, wanted: Any, **tolerance: float) -> None:
    np.testing.assert_allclose(found, wanted, **({"rtol": 1e-10, "atol": 1e-12} | tolerance))


def moments(
    metric: Metric,
    rows: Rows,
    outcome: Outcome,
    *,
    cap: float | None = None,
    ideal: bool = False,
    edges: tuple[float, ...] = (),
    **common: Any,
) -> Moments:
    """The moments of plain rows, with all that the estimators may ask for."""
    powers = POWERS if rows.probability is not None and metric.kind == "cell" else ()
    wanted = Needed(powers=powers, cap=cap, ideal=ideal)
    shared = Common(cells=rows.cells, base=base_sums(rows), weights=summary_of(rows), edges=edges, **common)
    return assemble(metric, sums(metric, rows, gains(metric, rows, outcome), wanted), wanted, shared)


def rows_of(log: Feedback, *, threshold: float = 4, **fields: Any) -> Rows:
    """A log's rows, all items being candidates."""
    given = {
        "user": log.user,
        "user_start": np.array([0, log.n_users]),
        "rating": log.rating.astype(np.float64),
        "relevant": (log.rating >= threshold).astype(np.float64),
        "cells": np.full(log.n_users, float(log.n_items)),
        "probability": log.propensity,
    }
    return Rows(**(given | fields))
