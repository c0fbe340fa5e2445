"""Logs of a world of clicks that tests of values share, and an examination in a few lines."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from openloop.core.feedback import Vocabulary
from openloop.core.impression_columns import PER_REQUEST, PER_ROW
from openloop.core.impressions import Impressions
from openloop.data.click_worlds import ClickWorld, click_world

ALL = (
    "sips", "snsips", "rips", "snrips", "rips_dr", "iips", "sniips", "iips_dr", "pbm", "snpbm", "pbm_dr", "pi",
)  # fmt: skip


@cache
def world(**settings) -> ClickWorld:
    return click_world(**({"users": 400} | settings))


@cache
def log_of(seed=0, **settings) -> Impressions:
    return world(**settings).observe(seed)


def taken(log: Impressions, rows, **changes) -> Impressions:
    """Some rows of a log, as a log; requests that lose all their rows are gone."""
    rows = np.flatnonzero(rows) if np.asarray(rows).dtype == bool else rows
    kept, request = np.unique(log.request[rows], return_inverse=True)
    given = {name: getattr(log, name) for name in (*PER_ROW, *PER_REQUEST) if getattr(log, name) is not None}
    found = {name: values[rows] if name in PER_ROW else values[kept] for name, values in given.items()}
    found |= {"request": request.astype(np.int32), "row": np.arange(len(rows))}
    return replace(log, **(found | {"requests": Vocabulary.range(len(kept)), "input_rows": 0} | changes))


def cut(log: Impressions, seed=0) -> Impressions:
    """The log with lists cut at 1 … K, whoever asks: what lies below was not shown."""
    depth = np.random.default_rng(seed).integers(1, log.depth + 1, log.n_requests)
    kept = log.position <= depth[log.request]
    found = taken(log, kept)
    inside = np.arange(log.depth) < depth[log.request][kept][:, None]
    last = np.append(np.diff(found.request) > 0, True)
    return replace(found, exposure=found.exposure * inside, slate=found.prefix[last])


def apart(log: Impressions, shares, seed=0) -> Impressions:
    """Rows drawn one by one, with these shares at each position; no requests and no users are named."""
    rows = np.flatnonzero(np.random.default_rng(seed).random(len(log)) < np.asarray(shares)[log.position - 1])
    n = np.arange(len(rows), dtype=np.int32)
    given = {name: getattr(log, name)[rows] for name in ("position", "item", "reward", "propensity", "exposure")}
    users = log.user[log.request[rows]]
    return Impressions(request=n, items=log.items, users=log.users, user=users, **given)


@dataclass
class Fitted:
    """θ with its influence, as a fitted examination has them."""

    theta_: np.ndarray
    influence_: np.ndarray | None = None
    fingerprint_: str = ""


def randomised(log: Impressions) -> Fitted:
    """θ_k = Σc/Σ1 at k over that at 1, from shuffled requests."""
    rows = log.shuffled[log.request]
    user, k, U = log.user[log.request][rows], log.position[rows] - 1, log.n_clusters
    shape = (U, log.depth)
    c, n = np.zeros(shape), np.zeros(shape)
    np.add.at(c, (user, k), log.reward[rows])
    np.add.at(n, (user, k), 1.0)
    rate = c.sum(0) / n.sum(0)
    psi = U * (c - rate * n) / c.sum(0)
    return Fitted(theta_=rate / rate[0], influence_=psi - psi[:, :1], fingerprint_=log.fingerprint)
