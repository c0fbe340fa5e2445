"""Logs that projected fits are tried on, as Feedback and as a Polars frame of ids and weights in another order."""

from __future__ import annotations

import numpy as np
import polars as pl

from openloop.core.feedback import Feedback


def small_log(users=60, items=25, factors=3, seed=0, share=0.4):
    """Feedback with weights, rated by factors that differ; every user and item has a row."""
    rng = np.random.default_rng(seed)
    V, W = rng.normal(0, 0.7, (users, factors)), rng.normal(0, 0.7, (items, factors))
    seen = rng.random((users, items)) < share
    seen[np.arange(users), np.arange(users) % items] = True
    u, i = np.nonzero(seen)
    y = np.round(3 + np.sum(V[u] * W[i], axis=1) + rng.normal(0, 0.3, len(u)), 1).astype(np.float32)
    return Feedback.from_arrays(u, i, y, users=users, items=items), rng.uniform(0.2, 3, len(u))


def as_frame(log, w, *, text=False, seed=1):
    """Its rows in random order, with columns uid, sku, stars, w, p."""
    users, items = log.user.astype(np.int64), log.item.astype(np.int64)
    frame = pl.DataFrame({"uid": users, "sku": items, "stars": log.rating, "w": w, "p": 1 / (1 + w)})
    if text:
        frame = frame.with_columns(
            ("u" + pl.col("uid").cast(pl.String).str.zfill(4)).alias("uid"),
            ("i" + pl.col("sku").cast(pl.String).str.zfill(4)).alias("sku"),
        )
    return frame.sample(fraction=1, shuffle=True, seed=seed)


COLUMNS = {"user": "uid", "item": "sku", "rating": "stars", "sample_weight": "w"}
