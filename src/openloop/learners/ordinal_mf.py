"""`OrdinalMF`: Bayesian matrix factorisation of ratings as ordered levels, sampled by Gibbs sweeps."""

from __future__ import annotations

from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from openloop.core.feedback import Array, Feedback
from openloop.kernels.ordinal_prediction import level_chances
from openloop.learners.base import Weights, check_rank, check_whole, unseen_notes
from openloop.learners.chains import ChainPlan, SweepKey, run_chains
from openloop.learners.posterior import OrdinalPosterior, Watch, kept_parts, state_draws
from openloop.learners.rating_levels import check_unweighted, level_codes, levels_of_log
from openloop.learners.solvers.ordinal_gibbs import OrdinalRows, OrdinalState, begin, sweep
from openloop.support.atomic import FilePath

if TYPE_CHECKING:
    import numpy as np


class OrdinalMF(OrdinalPosterior):
    """Level l when b_{l-1} < a ≤ b_l, a ~ N(u_iᵀv_j, γ_i γ_j): HL-MAR of Hernández-Lobato et al. 2014.

    Rows are taken as missing at random. Priors: u_i ~ N(μ_U, diag σ_U²), v_j likewise, μ ~ N(0, 1), σ² ~
    InvGamma(3, 2), γ ~ InvGamma(5, 4), b_l ~ N(l - L/2, 1) in rising order. Thresholds are common to all items;
    the published ones differ by item, around common ones. The levels are the log's distinct ratings.

    `chains` chains make `sweeps` sweeps each; the first `burn` are dropped, and of the others every `thin`-th is kept.
    Predictions are averages over all kept draws: `predict_proba` of the chances of levels, `predict` of the rating. Who
    has no row is drawn from the prior. `diagnostics_` has the split R̂ and the effective sample size of identified
    quantities, and a note says where they are poor. With a path as `checkpoint`, a fit that was interrupted goes on
    from there by the same call, and one with more sweeps from where the last ended. Same `rng`, same bits, whatever
    `threads`.
    """

    def __init__(
        self,
        factors: int = 10,
        *,
        sweeps: int = 2500,
        burn: int = 500,
        thin: int = 40,
        chains: int = 4,
        threads: int | None = None,
        progress: bool = False,
        checkpoint: FilePath | None = None,
        rng: int | np.random.Generator = 0,
    ) -> None:
        self.factors = factors
        self.sweeps = sweeps
        self.burn = burn
        self.thin = thin
        self.chains = chains
        self.threads = threads
        self.progress = progress
        self.checkpoint = checkpoint
        self.rng = rng

    def fit(self, feedback: Feedback, sample_weight: Weights = None, propensities: Any = None) -> Self:
        """Draw from the posterior given the rows, which have no weights."""
        check_unweighted(self, feedback, sample_weight, propensities)
        factors, levels = check_whole(self, "factors"), levels_of_log("OrdinalMF", feedback)
        check_rank(self, factors, feedback.n_users, feedback.n_items)
        rows = OrdinalRows.of(feedback, level_codes(feedback, levels), len(levels))
        plan, watch = ChainPlan.of(self, feedback), Watch.of(rows, levels, feedback)
        with ThreadPoolExecutor(plan.threads) as pool:
            run = run_chains(_Chain(rows=rows, factors=factors, watch=watch, pool=pool), plan)
        self.levels_ = levels
        notes = self._keep_draws(run)
        return self._remember(feedback, *unseen_notes(feedback, "draws from the prior"), *notes)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Chain:
    """A chain of the ordinal model, as `run_chains` wants it."""

    rows: OrdinalRows
    factors: int
    watch: Watch
    pool: Executor

    def begin(self, seed: int, chain: int) -> OrdinalState:
        return begin(self.rows, self.factors, seed, chain)

    def sweep(self, state: OrdinalState, key: SweepKey) -> OrdinalState:
        return sweep(self.rows, state, key, self.pool)

    def watched(self, state: OrdinalState) -> dict[str, float]:
        chances = level_chances(state_draws(state), self.watch.user, self.watch.item, self.pool)
        return self.watch(state, chances, self.pool)

    def kept(self, state: OrdinalState) -> dict[str, Array]:
        return kept_parts(state)
