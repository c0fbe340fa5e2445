"""θ as the literature fits it, for studies: all pairs (Agarwal et al. 2019) and EM (Wang et al. 2018)."""

from __future__ import annotations

from typing import Any

import numpy as np

from openloop.core.feedback import Floats
from openloop.kernels.harvesting import Cells

ROUNDS = 300  # of EM


def all_pairs(cells: Cells, depth: int) -> Floats:
    """Agarwal et al. 2019, AllPairs: the likelihood of click rates p_k r_kj of groups that were shown at k and j.

    Row k of `hit` has Σ c_gk/n_gk over the groups that were shown at j too, `miss` the rest.
    """
    from scipy.optimize import minimize
    from scipy.special import expit

    hit, miss = _pair_rates(cells, depth)
    off = ~np.eye(depth, dtype=np.bool_)
    above, below = np.triu_indices(depth, 1)
    pair = np.zeros((depth, depth), np.int64)
    pair[above, below] = pair[below, above] = np.arange(len(above))

    def loss(x: Floats) -> tuple[float, Floats]:
        p, r = expit(x[:depth]), expit(x[depth:])
        m = (p[:, None] * r[pair]).clip(1e-12, 1 - 1e-12)  # (K, K)
        slope = np.where(off, miss / (1 - m) - hit / m, 0.0)
        by_p = (slope * r[pair]).sum(axis=1) * p * (1 - p)
        by_r = np.bincount(pair[off], (slope * p[:, None])[off], minlength=len(r)) * r * (1 - r)
        return -float((hit * np.log(m) + miss * np.log1p(-m))[off].sum()), np.concatenate([by_p, by_r])

    start = np.zeros(depth + len(above))
    found: Any = minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": 2000, "ftol": 1e-13})
    p = expit(found.x[:depth])
    return p / p[0]


def _pair_rates(cells: Cells, depth: int) -> tuple[Floats, Floats]:
    from scipy.sparse import csr_array

    def table(values: Floats) -> Any:
        return csr_array((values, cells.position, cells.start), shape=(len(cells.start) - 1, depth))

    rate = cells.clicks / cells.shown
    on: Any = table(np.ones(len(rate)))
    return (table(rate).T @ on).toarray(), (table(1 - rate).T @ on).toarray()


def em(cells: Cells, depth: int, rounds: int = ROUNDS) -> Floats:
    """Wang et al. 2018, with one relevance γ_g per group: posteriors of examination and relevance where none clicked.

    It has an answer for every log, also where none is identified: the answer then is what it started from.
    """
    k, n, c, first = cells.position, cells.shown, cells.clicks, cells.start[:-1]
    g = np.repeat(np.arange(len(first)), np.diff(cells.start))  # (cells,)
    by_position, by_group = np.bincount(k, n, minlength=depth), np.add.reduceat(n, first)
    theta, gamma = np.linspace(1, 0.5, depth), np.full(len(first), 0.3)
    for _ in range(rounds):
        miss = (n - c) / (1 - theta[k] * gamma[g])
        examined = c + miss * theta[k] * (1 - gamma[g])
        relevant = c + miss * gamma[g] * (1 - theta[k])
        theta = (np.bincount(k, examined, minlength=depth) / by_position).clip(1e-6, 1 - 1e-9)
        gamma = (np.add.reduceat(relevant, first) / by_group).clip(1e-6, 1 - 1e-6)
    return theta / theta[0]
