"""`OrdinalPosterior`: predictions from kept draws of an ordinal factor model, and what its chains watch.

A model file holds the kept draws in single precision, so a loaded model predicts as the saved one did.
"""

from __future__ import annotations

from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from openloop.core.feedback import Array, Feedback, Floats
from openloop.kernels.ordinal import level_log_likelihoods, row_moments
from openloop.kernels.ordinal_prediction import OrdinalDraws, level_chances
from openloop.learners.chains import ChainRun, mixing_notes, thread_count
from openloop.learners.rating_levels import RatingDistribution
from openloop.learners.solvers.ordinal_gibbs import OrdinalRows, OrdinalState

Singles = npt.NDArray[np.float32]

WATCHED_CELLS = 500  # of the grid, whose mean prediction is watched


class OrdinalPosterior(RatingDistribution):
    """A learner whose chances of levels are averages over S kept draws of u, v, γ and b."""

    user_draws_: Singles  # u, (U, S, d)
    item_draws_: Singles  # v, (I, S, d)
    user_scale_draws_: Singles  # γ_i, (U, S)
    item_scale_draws_: Singles  # γ_j, (I, S)
    threshold_draws_: Singles  # b, (S, L - 1)
    diagnostics_: dict[str, dict[str, float]]

    def _keep_draws(self, run: ChainRun) -> list[str]:
        """Take over what chains kept; returns what there is to say about them."""
        for name, of in (("user_draws_", "u"), ("item_draws_", "v")):
            setattr(self, name, np.ascontiguousarray(run.draws[of].transpose(1, 0, 2)))
        self.user_scale_draws_ = np.ascontiguousarray(run.draws["user_scale"].T)
        self.item_scale_draws_ = np.ascontiguousarray(run.draws["item_scale"].T)
        self.threshold_draws_ = run.draws["b"]
        self.diagnostics_ = run.diagnostics
        return mixing_notes(self.diagnostics_)

    def _proba(self, user: Array, item: Array) -> Floats:
        with self._threads() as pool:
            return level_chances(self._draws(), user, item, pool)

    def _draws(self) -> OrdinalDraws:
        return OrdinalDraws(
            u=self.user_draws_, v=self.item_draws_, user_scale=self.user_scale_draws_,
            item_scale=self.item_scale_draws_, b=self.threshold_draws_,
        )  # fmt: skip

    def _threads(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(thread_count(self))


def kept_parts(state: OrdinalState) -> dict[str, Array]:
    """What a kept draw of the ordinal part holds."""
    return {"u": state.u, "v": state.v, "user_scale": state.user_scale, "item_scale": state.item_scale, "b": state.b}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Watch:
    """Identified quantities of the ordinal part: factors rotate, and thresholds and scores have a common level.

    So thresholds are watched relative to the mean score m of the rows, and beside them the log-likelihood of the rows
    and the mean prediction of some cells of the grid, by the chances of their levels, (n, L).
    """

    rows: OrdinalRows
    levels: Floats
    user: Array
    item: Array

    @classmethod
    def of(cls, rows: OrdinalRows, levels: Array, feedback: Feedback) -> Watch:
        """With cells drawn at random, the same for all chains and seeds."""
        rng = np.random.default_rng(0)
        user, item = (rng.integers(n, size=WATCHED_CELLS) for n in (feedback.n_users, feedback.n_items))
        return cls(rows=rows, levels=levels.astype(np.float64), user=user, item=item)

    def __call__(self, state: OrdinalState, chances: Floats, pool: Executor) -> dict[str, float]:
        """Of a state and what it predicts for the cells, by name."""
        moments = row_moments(self.rows.users, state.u, state.v, state.scales, pool)
        log = level_log_likelihoods(self.rows.code, state.b, moments, pool).sum()
        relative = state.b - moments[0].mean()
        return {
            **{f"threshold {l + 1} - mean score": float(x) for l, x in enumerate(relative)},
            "log-likelihood": float(log),
            "mean prediction": float((chances @ self.levels).mean()),
        }


def state_draws(state: OrdinalState) -> OrdinalDraws:
    """The ordinal part of a state as the only one of its draws."""
    parts = {name: one_draw(x) for name, x in kept_parts(state).items() if name != "b"}
    return OrdinalDraws(**parts, b=state.b.astype(np.float32)[None])


def one_draw(x: Floats) -> Singles:
    """An array of users or items as the only one of its draws."""
    return x.astype(np.float32)[:, None]
