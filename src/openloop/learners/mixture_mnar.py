"""`MixtureMNAR`: users in components, ratings by level, and being observed by the rating; fitted by EM."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal, Self

import numpy as np
from scipy.special import expit, logit
from scipy.stats import chi2, norm

from openloop.core.feedback import Array, Feedback, Floats, check_feedback, check_fitted
from openloop.errors import AlignmentError, InputError, UndefinedError, did_you_mean
from openloop.kernels.mixture_em import RatedCells, components, expected
from openloop.learners.base import Weights, check_number, check_whole, unseen_notes
from openloop.learners.rating_levels import Levels, check_unweighted, level_codes, levels_of_log, plain
from openloop.learners.rating_propensities import JointModel
from openloop.learners.solvers.mixture import (
    ClimbPlan,
    MixtureFit,
    Parameters,
    Priors,
    ascend,
    information,
    log_prior,
    start,
)
from openloop.support.arguments import check_level, generator
from openloop.support.progress import progress

MISSING = ("cpt-v", "logit-vd")
FAR, MOSTLY = 3.0, 0.5  # a level's rate over the log's density, and one's share of the unobserved: of a false maximum
SAME = 1e-6  # of the log-likelihood: a log that it is not equal on is another one


class MixtureMNAR(JointModel):
    """User u has component z with chance θ_z, and rates i as v with chance β_{z,i,v} (Marlin & Zemel 2009).

    A rating v is observed with chance μ_v (`missing="cpt-v"`), or with σ(s_v + ω_i), by item (`"logit-vd"`). EM, with
    the jumps of SQUAREM (Varadhan & Roland 2008), fits them to all cells, observed or not.

    `predict_proba` is Σ_z P(z | row of u) β_{z,i,v}: the user's row says which cells she rated, how, and which she did
    not. Whether the cell itself was observed affects P(z | row) only.

    Which ratings go unobserved follows from the model alone: how its components rate, what they leave out, and the
    assumption that the chance of being observed is the same for all users. Where a log has few rows per user, or the
    model has too many components, many β and μ explain the log almost equally well; the priors and the start (missing
    at random) then decide. `missing_interval` shows how well μ is known, given the model.

    Args:
        components: The number Z of components.
        missing: "cpt-v" or "logit-vd".
        component_prior: How many users the prior adds to each component.
        rating_prior: How many ratings the prior adds to each item in a component, by level as in the whole log.
        observed_prior: How many observed, and as many unobserved, cells the prior adds to each level.
        offset_sd: The standard deviation of the prior of ω.
        restarts: The number of starts, of which the best is kept.
        iterations: The largest number of steps per start.
        tol: The relative change of the objective at which EM stops.
        rng: A seed or generator for the starts.
        progress: Whether to show progress.

    Attributes:
        levels_: The rating levels (L,), rising.
        component_shares_: θ (Z,).
        item_levels_: β (I, L, Z).
        user_components_: P(z | row) (U, Z).
        observed_chances_: μ_v or σ(s_v) (L,).
        item_offsets_: ω (I,).
        propensities_: P(observed | rating), a fitted propensity model.
        history_: The objective F of the best start at every step.
        ends_: F at the end of each start.
        settled_: Whether EM converged at the best start.
        users_: The users of the log, a `Vocabulary`.
        items_: The items of the log, a `Vocabulary`.
        notes_: What the fit reports, a tuple of sentences.

    Examples:
        >>> import openloop as ol
        >>> log = ol.simulate.movie_lovers().observe(rng=0)
        >>> model = ol.learners.MixtureMNAR(components=2, restarts=1, iterations=50, rng=0).fit(log)
        >>> model.predict([0], [0]).round(1)
        array([4.6])
        >>> model.missing_interval(log).shape
        (3, 2)
    """

    component_shares_: Floats
    item_levels_: Floats
    user_components_: Floats
    observed_chances_: Floats
    item_offsets_: Floats
    history_: Floats
    ends_: Floats
    settled_: bool

    def __init__(
        self,
        components: int = 5,
        missing: Literal["cpt-v", "logit-vd"] = "cpt-v",
        component_prior: float = 1.0,
        rating_prior: float = 20.0,
        observed_prior: float = 1.0,
        offset_sd: float = 1.0,
        restarts: int = 4,
        iterations: int = 1000,
        tol: float = 1e-8,
        rng: int | np.random.Generator = 0,
        *,
        progress: bool = False,
    ) -> None:
        self.components = components
        self.missing = missing
        self.component_prior = component_prior
        self.rating_prior = rating_prior
        self.observed_prior = observed_prior
        self.offset_sd = offset_sd
        self.restarts = restarts
        self.iterations = iterations
        self.tol = tol
        self.rng = rng
        self.progress = progress

    def fit(self, feedback: Feedback, sample_weight: Weights = None, propensities: Any = None) -> Self:
        """Fit the mixture to the observed and the unobserved cells.

        Args:
            feedback: The training rows.
            sample_weight: Refused: the likelihood covers all cells, so rows have no weights.
            propensities: Refused for the same reason.

        Returns:
            The fitted learner itself.
        """
        check_unweighted(self, feedback, sample_weight, propensities)
        levels = levels_of_log("MixtureMNAR", feedback)
        if check_whole(self, "components") > feedback.n_users:
            raise InputError(
                f"MixtureMNAR: components must be at most the number of users, {feedback.n_users:,}, got "
                f"{self.components}; pass fewer."
            )
        found = self._restarted(_cells(feedback, levels))
        ends, best = [one.history[-1] for one in found], max(found, key=lambda one: one.history[-1])
        self.levels_, self.ends_, self.history_ = levels, np.array(ends), np.array(best.history)
        self.component_shares_, self.item_levels_, self.user_components_ = best.at.theta, best.at.beta, best.given
        self.observed_chances_, self.item_offsets_, self.settled_ = expit(best.at.s), best.at.omega, best.settled
        return self._remember(feedback, *self._notes(feedback))

    @property
    def fits_items(self) -> bool:
        """Whether P(observed | rating) differs by item."""
        return self.missing == "logit-vd"

    def missing_interval(self, feedback: Feedback, level: float = 0.9) -> Floats:
        """Intervals of `observed_chances_`, from the log that was fitted.

        s = logit μ, plus and minus normal quantiles times its standard error. The error is from the inverse profile
        information: the penalised likelihood as s moves, with all other parameters fitted again.

        Args:
            feedback: The log that was fitted.
            level: The confidence level.

        Returns:
            Lower and upper limits (L, 2).
        """
        check_level("MixtureMNAR.missing_interval", level)
        cells, at = self._fitted_cells(feedback), self._parameters()
        if not self.settled_:
            raise UndefinedError(
                f"MixtureMNAR.missing_interval: EM had not settled after iterations={self.iterations} steps, so the "
                "maximum that an interval is around is unknown; fit with more iterations=."
            )
        J = information(cells, self._priors(cells), at, ClimbPlan(iterations=10 * self.iterations, tol=self.tol / 10))
        if np.linalg.eigvalsh(J)[0] <= 0:
            raise UndefinedError(
                "MixtureMNAR.missing_interval: the likelihood is not at a maximum in s, so there is no interval; fit "
                f"with more restarts= (they were {self.restarts}), or a smaller tol= ({self.tol:g})."
            )
        half = norm.ppf((1 + level) / 2) * np.sqrt(np.diag(np.linalg.inv(J)))  # (L,)
        return expit(np.stack([at.s - half, at.s + half], axis=1))

    def _proba(self, user: Array, item: Array) -> Floats:
        return np.einsum("nz,nlz->nl", self.user_components_[user], self.item_levels_[item])

    def _means(self, users: Array) -> Floats:
        means = np.einsum("l,ilz->zi", self.levels_.astype(np.float64), self.item_levels_)  # (Z, I)
        return self.user_components_[users] @ means

    def _observed(self, user: Array, item: Array) -> Floats:
        return expit(logit(self.observed_chances_) + self.item_offsets_[item][:, None])

    # -- the fit

    def _priors(self, cells: RatedCells) -> Priors:
        if self.missing not in MISSING:
            raise InputError(
                f"MixtureMNAR: missing={self.missing!r} is unknown.{did_you_mean(str(self.missing), MISSING)}"
            )
        users, ratings, observed, sd = (
            check_number(self, name, positive=True)
            for name in ("component_prior", "rating_prior", "observed_prior", "offset_sd")
        )
        return Priors(
            users=users, ratings=ratings * cells.shares, cells=observed, offset_sd=sd if self.fits_items else None
        )

    def _restarted(self, cells: RatedCells) -> list[MixtureFit]:
        priors = self._priors(cells)
        size, count, steps = (check_whole(self, name) for name in ("components", "restarts", "iterations"))
        tol, seeds = check_number(self, "tol"), generator("MixtureMNAR", self.rng).integers(2**63, size=count)
        with progress("MixtureMNAR", count * steps, show=self.progress) as advance:

            def found(k: int) -> MixtureFit:
                plan = ClimbPlan(iterations=steps, tol=tol, report=lambda n, F: advance(k * steps + n, f"F {F:.6g}"))
                return ascend(cells, priors, start(cells, size, np.random.default_rng(seeds[k])), plan)

            return [found(k) for k in range(count)]

    def _parameters(self) -> Parameters:
        s = logit(self.observed_chances_)
        return Parameters(theta=self.component_shares_, beta=self.item_levels_, s=s, omega=self.item_offsets_)

    def _fitted_cells(self, feedback: Feedback) -> RatedCells:
        """The cells of the log that was fitted: on another one the likelihood is another."""
        check_fitted(self)
        check_feedback("MixtureMNAR.missing_interval", feedback)
        same = self.users_ == feedback.users and self.items_ == feedback.items
        if same and bool(np.isin(feedback.rating, self.levels_).all()):
            cells, at = _cells(feedback, self.levels_), self._parameters()
            F, wanted = (
                float(components(cells, at.mixture)[1].sum()) + log_prior(at, self._priors(cells)),
                self.history_[-1],
            )
            if abs(F - wanted) <= SAME * abs(wanted):
                return cells
        raise AlignmentError(
            f"MixtureMNAR.missing_interval: this log of {len(feedback):,} rows is not the one that was fitted; pass it."
        )

    def _notes(self, feedback: Feedback) -> list[str]:
        notes = [*unseen_notes(feedback, "what others rate, and the priors"), *self._doubts(feedback)]
        if not self.settled_:
            notes.append(f"EM had not settled after iterations={self.iterations} steps; raise it")
        return notes

    def _doubts(self, feedback: Feedback) -> Iterator[str]:
        """What makes the chances of being observed, and their intervals, more a matter of the model than of the log."""
        rows = len(feedback) / (feedback.n_items * self.components)
        if len(feedback) == feedback.n_users * feedback.n_items:
            yield (
                f"all {len(feedback):,} cells of the grid are observed, so the chances of being observed rest on "
                "observed_prior alone; read the log with users= and items= if the grid is larger"
            )
        yield from self._one_sided(_cells(feedback, self.levels_))
        if rows < self.rating_prior:
            yield (
                f"rating_prior={self.rating_prior:g} outweighs the log, which has {rows:.1f} ratings per item and "
                "component: the chances of being observed rest on it"
            )
        if not self.fits_items and _popularity_varies(feedback):
            yield (
                'items are observed unequally often, and missing="cpt-v" has no effect of items, so it may take an '
                'unpopular item for one of seldom observed ratings; use missing="logit-vd"'
            )

    def _one_sided(self, cells: RatedCells) -> Iterator[str]:
        """Where one level takes most of what is unobserved, and another is observed far more often than cells are.

        EM ends there, at a false maximum, on many worlds whose users or items are observed unequally often.
        """
        counts = expected(cells, self._parameters().mixture, self.user_components_)
        all_, seen = counts.all.sum(axis=(0, 2)), counts.observed.sum(axis=(0, 2))  # (L,)
        rates, missing, density = seen / all_, (all_ - seen) / max(1.0, (all_ - seen).sum()), seen.sum() / all_.sum()
        most, sink = int(rates.argmax()), int(missing.argmax())
        named = plain(self.levels_)
        if rates[most] > FAR * density and missing[sink] > MOSTLY:
            yield (
                f"the fit says that rating {named[sink]:g} is {missing[sink]:.0%} of what is unobserved, and that "
                f"{rates[most]:.0%} of the ratings {named[most]:g} are observed, where {density:.0%} of all cells are: "
                "this is more often a false maximum than the truth; raise rating_prior= or restarts=, or use OrdinalMF"
            )


def _popularity_varies(feedback: Feedback) -> bool:
    """Whether the items' counts vary more than chance lets them, p < 0.001 (Pearson's χ² of one rate for all)."""
    counts, rate = np.bincount(feedback.item, minlength=feedback.n_items), len(feedback) / feedback.n_items
    if rate == feedback.n_users:  # nothing is missing
        return False
    return bool(chi2.sf(np.sum((counts - rate) ** 2) / (rate * (1 - rate / feedback.n_users)), len(counts) - 1) < 1e-3)


def _cells(feedback: Feedback, levels: Levels) -> RatedCells:
    shape = (feedback.n_users, feedback.n_items, len(levels))
    return RatedCells.of(feedback.user, feedback.item, level_codes(feedback, levels), shape)
