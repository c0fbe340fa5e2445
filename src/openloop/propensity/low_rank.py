"""`LowRank`: P = σ(A) with A of small norm, by one-bit matrix completion, for logs without covariates."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Literal

import numpy as np
from scipy.special import expit
from sklearn.base import clone
from threadpoolctl import threadpool_limits

from openloop.core.feedback import LEAST, Array, Feedback, Floats, check_fitted, distinct, frozen
from openloop.errors import InputError, UndefinedError, did_you_mean
from openloop.kernels.products import factor_products
from openloop.propensity.base import MAX_GRID, CellModel, refuse_frame, row_counts
from openloop.propensity.solvers.one_bit import (
    PROJECTIONS,
    WINDOW,
    Found,
    GridPart,
    LogitFactors,
    ObservedGrid,
    maximise,
    nudged,
    settled,
)
from openloop.support.arguments import generator

RANKS = (1, 2, 4, 8, 16, 32)  # candidates; the search ends between two of them
RADII = tuple(2.0**e for e in range(-4, 7))  # candidates; the search begins at 1, and ends likewise
WORTH = 0.001  # of the gain over one p for all cells: by less, no candidate is better than a smaller one
SLACK = 0.01  # of that gain, which a looser bound may cost
ENOUGH = 2**17  # held-out cells that tell candidates apart
LOOSE = 1e-3  # relative change of the likelihood at which a fit that only chooses may stop
THREADS = min(os.cpu_count() or 1, 8)

Scores = dict[tuple[int, float], float]


class LowRank(CellModel):
    """One-bit matrix completion: a few tastes decide who sees what (Davenport et al. 2014; Ma & Chen 2019).

    P = σ(A), A = μ + LRᵀ, maximises Σ (O/s)·A − log(1 + e^A) over all cells under ‖A − μ‖_* ≤ τ√(U·I) ("nuclear") or ‖A
    − μ‖_max ≤ τ ("max", which also keeps every |A_ui − μ| below τ). The intercept μ is not bounded, since the logits of
    a sparse log are far below 0 and their mean alone would use up τ. For the same reason Σp = |O|.

    Rank and radius are chosen by the likelihood of held-out cells, unless they are given. A small rank keeps p from
    following the accidents of the log, which would harm IPS. Each iteration visits all U·I cells about twice. Users and
    items without a row get a p too, because the bound keeps it above 0.

    Args:
        constraint: The norm that is bounded, "nuclear" or "max".
        radius: τ; None chooses it on held-out cells.
        rank: The number of columns of L and R; None chooses it on held-out cells.
        folds: How many random parts of the grid are held out in turn; of a large grid, fewer parts are used.
        tol: A fit stops when the likelihood changes by no more than this share.
        max_iter: The largest number of iterations.
        rng: A seed or generator for the parts and the start.

    Attributes:
        mu_: μ.
        user_factors_: L (U, rank).
        item_factors_: R (I, rank).
        radius_: The τ that was used.
        rank_: The rank that was used.
        scores_: The log-likelihood per held-out cell by rank and radius; empty where both were given.
        path_: The log-likelihood by iteration.
        log_likelihood_: The log-likelihood at the end.
        users_: The users of the log, a `Vocabulary`.
        items_: The items of the log, a `Vocabulary`.
        notes_: What the fit reports, a tuple of sentences.

    Examples:
        >>> import openloop as ol
        >>> log = ol.simulate.movie_lovers(users=30, items=20).observe(rng=0)
        >>> seen = ol.propensity.LowRank(rank=2, radius=2.0).fit(log)
        >>> round(float(seen.matrix().sum())) == len(log)
        True
    """

    assumes = "being observed depends on a taste that many share, and not on the rating"
    fits_items = True
    fits_cells = True

    def __init__(
        self,
        constraint: Literal["nuclear", "max"] = "nuclear",
        radius: float | None = None,
        rank: int | None = None,
        folds: int = 5,
        tol: float = 1e-6,
        max_iter: int = 1000,
        rng: int | np.random.Generator = 0,
    ) -> None:
        self.constraint: Literal["nuclear", "max"] = constraint
        self.radius = radius
        self.rank = rank
        self.folds = folds
        self.tol = tol
        self.max_iter = max_iter
        self.rng: Any = rng

    def fit(self, feedback: Feedback, **columns: Any) -> LowRank:
        """Choose rank and radius, unless they are given, and maximise the likelihood.

        Args:
            feedback: A log in memory.
            **columns: Refused: this model does not take frames.

        Returns:
            The fitted model itself.
        """
        refuse_frame(self, feedback, columns)
        rows = row_counts(self, feedback)
        _check(self, feedback)
        if rows.sum() >= feedback.n_users * feedback.n_items:
            return self._complete(feedback)
        choosing, fitting = generator("LowRank", self.rng).spawn(2)
        with threadpool_limits(1, "blas"), ThreadPoolExecutor(THREADS) as pool:
            cells = ObservedGrid.of(feedback, rows, pool.map)
            self.rank_, self.radius_, self.scores_ = self._choose(cells, choosing)
            found = self._maximise(cells, cells.start(self.rank_), self.radius_, self.tol, fitting)
            at = settled(cells, found.at)
            self.log_likelihood_ = -cells.loss(at)
        self._learn(at, found.path)
        return self._remember(feedback, *_notes(self, feedback, found))

    def refit(self, feedback: Feedback) -> LowRank:
        """A fresh copy, fitted on another part of the log with the rank and radius chosen here.

        Args:
            feedback: Another part of the log.

        Returns:
            The new fitted model; this one is unchanged.
        """
        check_fitted(self)
        fresh: Any = clone(self)
        chosen = {"rank": self.rank_, "radius": self.radius_} if self.scores_ else {}
        return fresh.set_params(**chosen).fit(feedback)

    def _maximise(
        self, cells: ObservedGrid, start: LogitFactors, radius: float, tol: float, rng: np.random.Generator
    ) -> Found:
        near = nudged(start, radius, rng)
        return maximise(cells, near, PROJECTIONS[self.constraint], radius, tol, self.max_iter)

    def _choose(self, cells: ObservedGrid, rng: np.random.Generator) -> tuple[int, float, Scores]:
        """Rank, radius, and the scores of what was tried: ranks from the smallest up, until their best score falls."""
        if self.rank is not None and self.radius is not None:
            return self.rank, float(self.radius), {}

        def fit(cells: ObservedGrid, start: LogitFactors, radius: float) -> LogitFactors:
            return self._maximise(cells, start, radius, max(self.tol, LOOSE), rng).at

        search = Search(cells, self.folds, fit, rng)
        ranks = [rank for rank in RANKS if rank <= min(cells.U, cells.I)] if self.rank is None else [self.rank]
        return *search.best(ranks, self.radius), search.scores

    def _complete(self, feedback: Feedback) -> LowRank:
        self.scores_, self.rank_, self.radius_, self.log_likelihood_ = {}, 1, 0.0, 0.0
        L, R = np.zeros((feedback.n_users, 1)), np.zeros((feedback.n_items, 1))
        self._learn(LogitFactors(mu=np.inf, L=L, R=R), np.zeros(0))
        return self._remember(feedback, "the log fills its grid, so every p is 1")

    def _learn(self, at: LogitFactors, path: Floats) -> None:
        self.mu_, self.user_factors_, self.item_factors_ = at.mu, frozen(at.L), frozen(at.R)
        self.path_ = frozen(path)

    def _at(self, user: Array, item: Array) -> Floats:
        A = factor_products(self.user_factors_, self.item_factors_, user, item) + self.mu_  # (B, I) or (n,)
        return np.maximum(expit(A), LEAST)


class Search:
    """The log-likelihood a held-out cell by rank and radius 2^power; each fit starts from the last."""

    def __init__(
        self,
        cells: ObservedGrid,
        folds: int,
        fit: Callable[[ObservedGrid, LogitFactors, float], LogitFactors],
        rng: np.random.Generator,
    ) -> None:
        size = cells.U * cells.I / folds
        parts = GridPart.draw(cells.U, cells.I, folds, rng)[: int(np.ceil(ENOUGH / size))]
        self._cells, self._fit, self._size = cells, fit, size * len(parts)
        self._rests = [cells.without(part) for part in parts]
        self._at = {1: [cells.start(1)] * len(parts)}  # by rank
        self.scores: Scores = {}
        p = float(cells.O.sum()) / (cells.U * cells.I)
        self.nothing = p * np.log(p) + (1 - p) * np.log1p(-p)  # the score of one p for all cells

    def score(self, rank: int, power: float) -> float:
        """The score, computed when it is first asked for."""
        radius = 2.0**power
        if (rank, radius) not in self.scores:
            last = self._at[max(known for known in self._at if known <= rank)]
            pairs = zip(self._rests, last, strict=True)
            fits = [(rest, self._fit(rest, at.widened(rank), radius)) for rest, at in pairs]
            lost = sum(self._cells.loss(at) - rest.loss(at) for rest, at in fits)
            self._at[rank] = [at for _, at in fits]
            self.scores[rank, radius] = -lost / self._size
        return self.scores[rank, radius]

    def best(self, ranks: list[int], radius: float | None) -> tuple[int, float]:
        """The rank and radius to use, found one step at a time: what is far better lies between what is worse."""
        fixed = None if radius is None else float(np.log2(radius))
        found = self._climb(ranks[0], fixed, 0.0)
        for rank in ranks[1:]:
            other = self._climb(rank, fixed, found[1])
            if not self._better(other, found):
                break
            found = other
        between = {found[0] * 3 // 4, found[0] * 3 // 2} - {0, *RANKS} if len(ranks) > 1 else ()
        for rank in sorted(between):
            if rank < ranks[-1] and self._better(other := self._climb(rank, fixed, found[1]), found):
                found = other
        rank, power = found
        return rank, 2.0 ** self._relax(rank, power) if radius is None else radius

    def _better(self, one: tuple[int, float], other: tuple[int, float]) -> bool:
        return self.score(*one) - self.score(*other) > WORTH * abs(self.score(*other) - self.nothing)

    def _climb(self, rank: int, fixed: float | None, power: float) -> tuple[int, float]:
        """The radius doubled while that is better, or else halved."""
        if fixed is not None:
            return rank, fixed
        self.score(rank, power)  # from here the others start
        for step in (1, -1):
            while 2.0 ** (power + step) in RADII and self._better((rank, power + step), (rank, power)):
                power += step
        return rank, power

    def _relax(self, rank: int, power: float) -> float:
        """Between two candidates, the best; from there up to four times the radius, as long as that costs little.

        A tight bound draws p to their mean, which leaves IPS a part of naive's bias.
        """
        near = [p for p in (power, power - 0.5, power + 0.5) if RADII[0] <= 2.0**p <= RADII[-1]]
        power = max(near, key=lambda p: self.score(rank, p))
        least = self.score(rank, power) - SLACK * (self.score(rank, power) - self.nothing)
        for more in (0.5, 1.0, 1.5, 2.0):
            if 2.0 ** (power + more) > RADII[-1] or self.score(rank, power + more) < least:
                return power + more - 0.5
        return power + 2.0


def _check(model: LowRank, feedback: Feedback) -> None:
    if model.constraint not in PROJECTIONS:
        hint = did_you_mean(str(model.constraint), PROJECTIONS)
        raise InputError(f"LowRank: constraint {model.constraint!r} is unknown.{hint}")
    if model.radius is not None and not 0 < model.radius < np.inf:
        raise InputError(f"LowRank: radius must be positive, got {model.radius}; leave it out to have it chosen.")
    for name, value, least in (("rank", model.rank, 1), ("folds", model.folds, 2), ("max_iter", model.max_iter, 1)):
        if value is not None and value < least:
            raise InputError(f"LowRank: {name} must be at least {least}, got {value}; leave it out for the default.")
    if not 0 < model.tol < 1:
        raise InputError(f"LowRank: tol must lie between 0 and 1, got {model.tol}; 1e-6 is exact enough.")
    U, I = feedback.n_users, feedback.n_items
    if U * I > MAX_GRID:
        raise UndefinedError(
            f"LowRank: visits all cells about a hundred times and takes at most {MAX_GRID:,} of them; {U:,} × {I:,} "
            "would take hours; use Popularity, Logistic or Boosted."
        )


def _notes(model: LowRank, feedback: Feedback, found: Found) -> Iterator[str]:
    U, I = feedback.n_users, feedback.n_items
    for what, codes, size in (("users", feedback.user, U), ("items", feedback.item, I)):
        if empty := size - len(distinct(codes)):
            yield f"{empty:,} of {size:,} {what} have no row; the bound keeps their p above 0"
    if model.radius is None and model.radius_ == RADII[0]:
        yield f"the radius {model.radius_:.3g} is the smallest tried: held-out cells show hardly any structure"
    if model.radius is None and model.radius_ == RADII[-1]:
        yield f"the radius {model.radius_:.3g} is the largest tried; a larger one, if given, may do better"
    if model.rank is None and model.rank_ == RANKS[-1]:
        yield f"the rank {model.rank_} is the largest tried; a larger one, if given, may do better"
    if not found.converged:
        change = 1 - found.path[-1] / found.path[max(-WINDOW - 1, -len(found.path))]
        yield (
            f"the likelihood had not converged after {model.max_iter:,} iterations (the last {WINDOW} changed it by "
            f"a share of {change:.1g}); raise max_iter="
        )
