"""Ratings of every cell, imputed from a log by a factorisation, with noise like its errors on held-out rows.

Without the noise losses would be too small and too much alike: a rehearsal of a log needs them as they are.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from openloop.core.feedback import Array, Feedback, Floats, distinct
from openloop.kernels.uniforms import block_uniforms
from openloop.learners.mf import MF
from openloop.metrics.rating import midpoints

FACTORS, PENALTY = 10, 5.0
HELD_OUT = 5  # one row in so many tells how far off the factorisation is
ERRORS = 4096  # quantiles that represent the distribution of errors


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Imputed:
    """Y* = Ŷ + e, as a rating of the log's scale; the log's own rows keep theirs.

    e is drawn for each cell from the errors of held-out rows, weighted by 1/π as the population would have them.
    """

    log: Feedback
    model: MF
    errors: Floats  # (ERRORS,) quantiles
    levels: npt.NDArray[np.float32]  # the log's ratings
    seed: int

    def ratings(self, users: Array) -> npt.NDArray[np.float32]:
        """Y* of all items for consecutive users, (B, I)."""
        coin = block_uniforms(self.seed, users, self.log.n_items)  # (B, I)
        guessed = self.model.scores(users) + self.errors[(coin * ERRORS).astype(np.int64)]
        rated = on_scale(guessed, self.levels)
        rows = slice(*np.searchsorted(self.log.user, [users[0], users[-1] + 1]))
        rated[self.log.user[rows] - users[0], self.log.item[rows]] = self.log.rating[rows]
        return rated


def impute(log: Feedback, weights: Floats, seed: int) -> Imputed:
    """Fit the factorisation, once without some rows to see its errors, and once with all."""
    held = np.random.default_rng(seed).permutation(len(log)) < max(1, len(log) // HELD_OUT)
    partly = _fitted(log.take(~held), weights[~held], seed)
    errors = log.rating[held] - partly.predict(log.user[held], log.item[held])
    return Imputed(
        log=log, model=_fitted(log, weights, seed), errors=quantiles(errors, weights[held], ERRORS),
        levels=distinct(log.rating), seed=seed,
    )  # fmt: skip


def _fitted(log: Feedback, weights: Floats, seed: int) -> MF:
    factors = min(FACTORS, log.n_users, log.n_items)
    return MF(factors=factors, reg=PENALTY, tol=1e-4, rng=seed).fit(log, sample_weight=weights)


def quantiles(values: Array, weights: Floats, n: int) -> Floats:
    """n quantiles, at (j + ½)/n, of weighted values."""
    order = np.argsort(values, kind="stable")
    reached = np.cumsum(weights[order])
    at = np.searchsorted(reached, (np.arange(n) + 0.5) / n * reached[-1])
    return np.asarray(values, np.float64)[order[np.minimum(at, len(order) - 1)]]


def on_scale(values: Array, levels: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """The nearest level; where ratings are not levels, within their range."""
    middles = midpoints(levels.astype(np.float64))
    if middles is None:
        return np.clip(values, levels[0], levels[-1]).astype(np.float32)
    return levels[np.searchsorted(middles, values, side="right")]
