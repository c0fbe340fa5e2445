"""Logistic regression on all pairs of user and item covariates, as Schnabel et al. (2016) trained it for Coat.

    P_ui = σ(x_uᵀ W z_i + c),  W and c maximise  Σ_ui log P(O_ui) − reg/2 ‖W‖².

The paper's "standard regularized logistic regression": a feature for each pair of covariates and one constant, and no
offset for a user or an item. Users with the same covariates, and items, are one class: sums of classes are enough.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize
from scipy.special import expit

from openloop.core.feedback import LEAST, Floats
from openloop.studies.kit.trials import Given

PENALTIES = tuple(10.0 ** (e / 2) for e in range(8, -3, -1))  # in the order in which W grows


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Classes:
    """Covariates of classes of users X (G, k) and items Z (H, l); how many of their cells there are, and are seen."""

    X: Floats
    Z: Floats
    cells: Floats  # (G, H)
    seen: Floats  # (G, H)

    def logits(self, at: Floats) -> Floats:
        """XWZᵀ + c; `at` has W by rows, then c."""
        return self.X @ at[:-1].reshape(self.X.shape[1], -1) @ self.Z.T + at[-1]  # (G, H)

    def log_likelihood(self, z: Floats) -> float:
        """Σ O·z − log(1 + eᶻ) over the cells."""
        return float(np.sum(self.seen * z - self.cells * np.logaddexp(0, z)))

    def fit(self, reg: float, start: Floats | None = None) -> Floats:
        """W and c by L-BFGS."""

        def loss(at: Floats) -> tuple[float, Floats]:
            z = self.logits(at)
            R = self.cells * expit(z) - self.seen  # (G, H)
            slope = np.append((self.X.T @ R @ self.Z).ravel() + reg * at[:-1], R.sum())
            return reg / 2 * float(at[:-1] @ at[:-1]) - self.log_likelihood(z), slope

        first = np.zeros(self.X.shape[1] * self.Z.shape[1] + 1) if start is None else start
        return minimize(loss, first, jac=True, method="L-BFGS-B", options={"maxiter": 1000, "maxfun": 2000}).x


def pair_propensities(given: Given, *, folds: int, seed: int) -> dict[str, npt.NDArray[Any]]:
    """A trial: the p of the log's rows, under the penalty with the best log-likelihood of held-out cells."""
    X, users = np.unique(given["user_covariates"], axis=0, return_inverse=True)  # (G, k), (U,)
    Z, items = np.unique(given["item_covariates"], axis=0, return_inverse=True)  # (H, l), (I,)
    O = np.zeros((len(users), len(items)))
    O[given["user"], given["item"]] = 1.0
    fold = np.random.default_rng([seed, 1]).integers(folds, size=O.shape)

    def part(cells: npt.NDArray[np.bool_]) -> Classes:
        at = users.reshape(-1, 1) * len(Z) + items.reshape(1, -1)  # (U, I)
        counts = (np.bincount(at[cells], w, minlength=len(X) * len(Z)) for w in (None, O[cells]))
        whole, seen = (count.reshape(len(X), len(Z)).astype(np.float64) for count in counts)
        return Classes(X=X, Z=Z, cells=whole, seen=seen)

    scores = sum((path(part(fold != f), part(fold == f)) for f in range(folds)), np.zeros(len(PENALTIES)))
    reg, every = PENALTIES[int(np.argmax(scores))], part(np.ones(O.shape, np.bool_))
    P = np.maximum(expit(every.logits(every.fit(reg))), LEAST)  # (G, H)
    return {"p": P[users.ravel()[given["user"]], items.ravel()[given["item"]]], "reg": np.array(reg), "scores": scores}


def path(train: Classes, held_out: Classes) -> Floats:
    """The log-likelihood of held-out cells by penalty, each fit starting where the one before ended."""
    at, scores = None, np.empty(len(PENALTIES))
    for place, reg in enumerate(PENALTIES):
        at = train.fit(reg, at)
        scores[place] = held_out.log_likelihood(held_out.logits(at))
    return scores
