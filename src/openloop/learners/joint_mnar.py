"""`JointMNAR`: ratings as ordered levels, and what is observed by the rating, in one Bayesian model."""

from __future__ import annotations

from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from threadpoolctl import threadpool_limits

from openloop.core.feedback import Array, Feedback, Floats
from openloop.errors import InputError, UndefinedError
from openloop.kernels.joint_predicting import ObservingDraws, Pairs, Singles, posterior_chances, posterior_observed
from openloop.learners.base import Weights, check_rank, check_whole, unseen_notes
from openloop.learners.chains import ChainPlan, ChainRun, SweepKey, run_chains
from openloop.learners.posterior import OrdinalPosterior, Watch, kept_parts, one_draw, state_draws
from openloop.learners.rating_levels import check_unweighted, level_codes, levels_of_log
from openloop.learners.rating_propensities import JointModel
from openloop.learners.solvers import joint_state, ordinal_gibbs
from openloop.learners.solvers.joint_gibbs import sweep
from openloop.learners.solvers.joint_state import JointRows, JointState
from openloop.learners.solvers.ordinal_gibbs import OrdinalRows
from openloop.support.arguments import is_number
from openloop.support.atomic import FilePath

CELLS = 20_000_000  # of a grid: beyond, a share of the unobserved is looked at in a sweep
WARM = 100  # sweeps of the ordinal model, from which a chain begins
OF_WARM = 2**32  # added to a chain's number for their random numbers


class JointMNAR(JointModel, OrdinalPosterior):
    """Ratings, and what is observed of them: level l is observed with chance σ(e_iᵀf_j + λ_{i,l} + ψ_{j,l}).

    The model is HL-MNAR of Hernández-Lobato et al. (2014). Ratings follow `OrdinalMF`, with `factors` numbers in u and
    v. λ_{i,l} ~ N(m_l, s²), ψ_{j,l} ~ N(0, t²), m_l ~ N(logit of the log's density, 2²), s², t² ~ InvGamma(3, .5); e, f
    ~ N(0, 1) have `missing_factors` numbers. Sweeps visit every cell, observed or not. The ratings of unobserved cells
    are summed out, except in the logistic part.

    `predict_proba` of a cell outside the log is the chance of each level given that it was not observed; of a cell in
    the log, the chance of another rating. S is the number of kept draws.

    Args:
        factors: The number of factors of the ratings.
        missing_factors: The number d′ of factors of what is observed.
        unobserved: The share of the unobserved cells that a sweep visits. None visits all, up to 20 million cells, and
            as many of a larger grid. With a share below 1, a sweep draws that share of the users and of the items, each
            with all its cells, so more sweeps are needed. Thresholds and m are then moved by a fresh sample of
            unobserved cells, each counted 1/share times, so their draws spread slightly more than the posterior.
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
        propensities_: P(observed | rating, cell), a fitted propensity model.
        diagnostics_: The split R̂ and the effective sample size of identified quantities.
        level_mean_draws_: m (S, L).
        spread_draws_: s², t² (S, 2).
        user_effect_draws_: λ (U, S, L).
        item_effect_draws_: ψ (I, S, L).
        user_missing_draws_: e (U, S, d′).
        item_missing_draws_: f (I, S, d′).
        users_: The users of the log, a `Vocabulary`.
        items_: The items of the log, a `Vocabulary`.
        notes_: What the fit reports, a tuple of sentences.

    Examples:
        >>> import openloop as ol
        >>> log = ol.simulate.movie_lovers(users=12, items=8).observe(rng=0)
        >>> model = ol.learners.JointMNAR(factors=2, missing_factors=1, sweeps=20, burn=10, thin=5, chains=1, rng=0)
        >>> model.fit(log).propensities_.predict(log).values.shape == (len(log),)
        True
    """

    user_missing_draws_: Singles
    item_missing_draws_: Singles
    user_effect_draws_: Singles
    item_effect_draws_: Singles
    level_mean_draws_: Singles
    spread_draws_: Singles
    cells_: Array  # observed ones, user · I + item, rising

    def __init__(
        self,
        factors: int = 10,
        missing_factors: int = 3,
        *,
        unobserved: float | None = None,
        sweeps: int = 1200,
        burn: int = 400,
        thin: int = 8,
        chains: int = 2,
        threads: int | None = None,
        progress: bool = False,
        checkpoint: FilePath | None = None,
        rng: int | np.random.Generator = 0,
    ) -> None:
        self.factors = factors
        self.missing_factors = missing_factors
        self.unobserved = unobserved
        self.sweeps = sweeps
        self.burn = burn
        self.thin = thin
        self.chains = chains
        self.threads = threads
        self.progress = progress
        self.checkpoint = checkpoint
        self.rng = rng

    def fit(self, feedback: Feedback, sample_weight: Weights = None, propensities: Any = None) -> Self:
        """Draw from the posterior given all cells, observed or not.

        Args:
            feedback: The training rows.
            sample_weight: Refused: the likelihood covers all cells, so rows have no weights.
            propensities: Refused for the same reason.

        Returns:
            The fitted learner itself.
        """
        check_unweighted(self, feedback, sample_weight, propensities)
        levels, factors, beside = levels_of_log("JointMNAR", feedback), *self._ranks(feedback)
        share, plan = self._share(feedback), ChainPlan.of(self, feedback)
        ordinal = OrdinalRows.of(feedback, level_codes(feedback, levels), len(levels))
        watch, cells = Watch.of(ordinal, levels, feedback), feedback.cell.astype(np.int64)
        asked = _marked(cells, feedback.n_items, watch.user, watch.item)
        with threadpool_limits(1, "blas"), ThreadPoolExecutor(plan.threads) as pool:
            rows = JointRows.of(ordinal, share, _logit_density(feedback), pool)
            chain = _JointChain(rows=rows, factors=factors, beside=beside, watch=watch, asked=asked, pool=pool)
            run = run_chains(chain, plan)
        self.levels_, self.cells_ = levels, cells
        self._keep_missing_draws(run)
        notes = [*_share_notes(share, self.unobserved), *self._keep_draws(run)]
        return self._remember(feedback, *unseen_notes(feedback, "the prior and what was not observed"), *notes)

    def _ranks(self, feedback: Feedback) -> tuple[int, int]:
        factors, beside = check_whole(self, "factors"), check_whole(self, "missing_factors")
        check_rank(self, factors, feedback.n_users, feedback.n_items)
        if beside > min(feedback.n_users, feedback.n_items):
            raise InputError(
                f"JointMNAR: missing_factors must be at most min(users, items) = "
                f"{min(feedback.n_users, feedback.n_items):,}, got {beside}; pass fewer."
            )
        return factors, beside

    def _share(self, feedback: Feedback) -> float:
        """The share of the unobserved cells that sweeps look at."""
        cells = feedback.n_users * feedback.n_items
        if len(feedback) == cells:
            raise UndefinedError(
                f"JointMNAR: all {cells:,} cells of the grid are observed, so nothing can be learned about what goes "
                "unobserved; use OrdinalMF, or read the log with users= and items= if the grid is larger."
            )
        if self.unobserved is None:
            return min(1.0, CELLS / cells)
        if not (is_number(self.unobserved) and 0 < self.unobserved <= 1):
            raise InputError(
                f"JointMNAR: unobserved must be a share above 0 and up to 1, or None, got {self.unobserved!r}."
            )
        return float(self.unobserved)

    def _keep_missing_draws(self, run: ChainRun) -> None:
        names = {
            "e": "user_missing_draws_", "f": "item_missing_draws_", "by_user": "user_effect_draws_",
            "by_item": "item_effect_draws_",
        }  # fmt: skip
        for of, name in names.items():
            setattr(self, name, np.ascontiguousarray(run.draws[of].transpose(1, 0, 2)))
        self.level_mean_draws_, self.spread_draws_ = run.draws["level_mean"], run.draws["spread"]

    @property
    def fits_items(self) -> bool:
        """Whether P(observed | rating) differs by item: it does."""
        return True

    @property
    def fits_cells(self) -> bool:
        """Whether P(observed | rating) differs by cell: it does."""
        return True

    def _proba(self, user: Array, item: Array) -> Floats:
        with self._threads() as pool:
            return posterior_chances(self._draws(), self._observing(), self._asked(user, item), pool)

    def _observed(self, user: Array, item: Array) -> Floats:
        with self._threads() as pool:
            return posterior_observed(self._observing(), self._asked(user, item), pool)

    def _observing(self) -> ObservingDraws:
        return ObservingDraws(
            e=self.user_missing_draws_, f=self.item_missing_draws_, by_user=self.user_effect_draws_,
            by_item=self.item_effect_draws_,
        )  # fmt: skip

    def _asked(self, user: Array, item: Array) -> Pairs:
        return _marked(self.cells_, len(self.items_), user, item)


def _marked(cells: Array, n_items: int, user: Array, item: Array) -> Pairs:
    """Pairs of codes, with whether they are among the observed cells, user · I + item, rising."""
    cell = user * n_items + item
    at = np.minimum(np.searchsorted(cells, cell), len(cells) - 1)
    return Pairs(user=user, item=item, seen=cells[at] == cell)


def _logit_density(feedback: Feedback) -> float:
    n = len(feedback)
    return float(np.log(n / (feedback.n_users * feedback.n_items - n)))


def _share_notes(share: float, given: float | None) -> list[str]:
    if share == 1:
        return []
    why = "" if given is not None else f", as the grid has over {CELLS:,} cells"
    note = (
        f"a sweep draws {share:.1%} of the users and items{why}, and moves thresholds and m by a sample of the "
        "unobserved cells, which is approximate; raise sweeps="
    )
    return [note]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _JointChain:
    """A chain of the joint model, as `run_chains` wants it."""

    rows: JointRows
    factors: int
    beside: int
    watch: Watch
    asked: Pairs  # the cells that are watched
    pool: Executor

    def begin(self, seed: int, chain: int) -> JointState:
        ordinal = ordinal_gibbs.begin(self.rows.ordinal, self.factors, seed, chain)
        for number in range(1, WARM + 1):
            key = SweepKey(seed=seed, chain=OF_WARM + chain, sweep=number, burning=True)
            ordinal = ordinal_gibbs.sweep(self.rows.ordinal, ordinal, key, self.pool)
        key = SweepKey(seed=seed, chain=chain, sweep=0, burning=True)
        return joint_state.begin(ordinal, self.rows, self.beside, key)

    def sweep(self, state: JointState, key: SweepKey) -> JointState:
        return sweep(self.rows, state, key, self.pool)

    def watched(self, state: JointState) -> dict[str, float]:
        parts = {name: one_draw(getattr(state, name)) for name in ("e", "f", "by_user", "by_item")}
        chances = posterior_chances(state_draws(state), ObservingDraws(**parts), self.asked, self.pool)  # as predicted
        levels = {f"m of level {l + 1}": float(x) for l, x in enumerate(state.level_mean)}
        s, t = np.sqrt(state.spread)
        return {**self.watch(state, chances, self.pool), **levels, "s": float(s), "t": float(t)}

    def kept(self, state: JointState) -> dict[str, Array]:
        names = ("e", "f", "by_user", "by_item", "level_mean", "spread")
        return kept_parts(state) | {name: getattr(state, name) for name in names}
