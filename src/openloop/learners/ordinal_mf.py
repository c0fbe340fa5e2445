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
    """Ordinal factors: level l when b_{l-1} < a ≤ b_l, a ~ N(u_iᵀv_j, γ_i γ_j).

    The model is HL-MAR of Hernández-Lobato et al. (2014). Rows are assumed missing at random. Priors: u_i ~ N(μ_U, diag
    σ_U²), v_j likewise, μ ~ N(0, 1), σ² ~ InvGamma(3, 2), γ ~ InvGamma(5, 4), b_l ~ N(l - L/2, 1) in rising order.
    Thresholds are common to all items; the published ones differ by item, around common ones. The levels are the log's
    distinct ratings. Users and items without a row are drawn from the prior. The same `rng` gives the same bits for any
    `threads`.

    Args:
        factors: The number of factors.
        sweeps: The number of sweeps of each chain.
        burn: How many of the first sweeps are dropped.
        thin: Every so many sweeps after these, one draw is kept.
        chains: The number of chains.
        threads: The number of threads; None takes all cores.
        progress: Whether to show progress.
        checkpoint: A path from which the same call continues an interrupted fit; with more sweeps, a finished one.
        rng: A seed or generator.

    Attributes:
        levels_: The rating levels (L,), rising.
        diagnostics_: The split R̂ and the effective sample size of identified quantities (Vehtari et al. 2021); a note
            says where they are poor.
        users_: The users of the log, a `Vocabulary`.
        items_: The items of the log, a `Vocabulary`.
        notes_: What the fit reports, a tuple of sentences.

    Examples:
        >>> import openloop as ol
        >>> log = ol.simulate.movie_lovers(users=12, items=8).observe(rng=0)
        >>> model = ol.learners.OrdinalMF(factors=2, sweeps=20, burn=10, thin=5, chains=1, rng=0).fit(log)
        >>> model.predict_proba([0], [0]).shape  # the chance of each rating of one cell
        (1, 3)
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
        """Draw from the posterior given the rows.

        Args:
            feedback: The training rows.
            sample_weight: Refused: the likelihood is of single ratings, so rows have no weights.
            propensities: Refused for the same reason.

        Returns:
            The fitted learner itself.
        """
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
