"""`LowRank`: P = σ(A) with A of small norm, by one-bit matrix completion, for logs without covariates."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Literal

import numpy as np
from scipy.special import expit
from threadpoolctl import threadpool_limits

from openloop.core.feedback import LEAST, Array, Feedback, Floats, distinct, frozen
from openloop.errors import InputError, UndefinedError, did_you_mean
from openloop.propensity.base import BLOCK, MAX_GRID, CellModel, row_counts
from openloop.propensity.one_bit import PROJECTIONS, WINDOW, Cells, Factors, Found, Part, maximise, nudged, settled

RANKS = (1, 2, 4, 8, 16, 32)  # candidates
RADII = tuple(2.0**e for e in range(-4, 7))  # candidates; the search begins at 1 and ends between two of them
SLACK = 0.01  # of what the best radius gains
ENOUGH = 2**18  # held-out cells that tell candidates apart
LOOSE = 3e-4  # relative change of the likelihood at which a fit that only chooses may stop
THREADS = min(os.cpu_count() or 1, 8)

Scores = dict[tuple[int, float], float]


class LowRank(CellModel):
    """One-bit matrix completion (Davenport et al. 2014; Ma & Chen 2019): a few tastes decide who sees what.

    P = σ(A), A = μ + LRᵀ, maximises Σ (O/s)·A − log(1 + e^A) over all cells under ‖A − μ‖_* ≤ τ√(U·I) ("nuclear")
    or ‖A − μ‖_max ≤ τ ("max", which also keeps every |A_ui − μ| below τ). The intercept μ is free: the logits of a
    sparse log lie far below 0, and their mean alone would use up τ. Being free, it makes Σp = |O|.

    `radius` is τ and `rank` the columns of L and R. By default they have the best likelihood of held-out cells, which
    are `folds` random parts of the grid in turn (of a large grid, fewer of them). With a rank that the data do not
    use up, the bound alone decides; a small one makes p less prone to follow the log's own accidents, which IPS
    suffers from. Each iteration walks through all U·I cells about twice. Users and items without a row get a p as
    well, because the bound keeps it from 0.

    Learned: `mu_`, `user_factors_`, `item_factors_`, `radius_`, `rank_`, `scores_` (log-likelihood a held-out cell by
    rank and radius), `path_` (log-likelihood by iteration), `log_likelihood_`.
    """

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

    def fit(self, feedback: Feedback) -> LowRank:
        """Choose the radius, unless it is given, and maximise the likelihood."""
        rows = row_counts(self, feedback)
        _check(self, feedback)
        if rows.sum() >= feedback.n_users * feedback.n_items:
            return self._complete(feedback)
        choosing, fitting = np.random.default_rng(self.rng).spawn(2)
        with threadpool_limits(1, "blas"), ThreadPoolExecutor(THREADS) as pool:
            cells = Cells.of(feedback, rows, pool.map)
            self.rank_, self.radius_, self.scores_ = self._choose(cells, choosing)
            found = self._maximise(cells, cells.start(self.rank_), self.radius_, self.tol, fitting)
            at = settled(cells, found.at)
            self.log_likelihood_ = -cells.loss(at)
        self._learn(at, found.path)
        return self._remember(feedback, *_notes(self, feedback, found))

    def _maximise(self, cells: Cells, start: Factors, radius: float, tol: float, rng: np.random.Generator) -> Found:
        near = nudged(start, radius, rng)
        return maximise(cells, near, PROJECTIONS[self.constraint], radius, tol, self.max_iter)

    def _choose(self, cells: Cells, rng: np.random.Generator) -> tuple[int, float, Scores]:
        """Rank, radius, and the scores of what was tried: ranks from the smallest up, until their best score falls."""
        if self.rank is not None and self.radius is not None:
            return self.rank, float(self.radius), {}

        def fit(cells: Cells, start: Factors, radius: float) -> Factors:
            return self._maximise(cells, start, radius, max(self.tol, LOOSE), rng).at

        search = Search(cells, self.folds, fit, rng)
        ranks = [rank for rank in RANKS if rank <= min(cells.U, cells.I)] if self.rank is None else [self.rank]
        return *search.best(ranks, self.radius), search.scores

    def _complete(self, feedback: Feedback) -> LowRank:
        self.scores_, self.rank_, self.radius_, self.log_likelihood_ = {}, 1, 0.0, 0.0
        L, R = np.zeros((feedback.n_users, 1)), np.zeros((feedback.n_items, 1))
        self._learn(Factors(mu=np.inf, L=L, R=R), np.zeros(0))
        return self._remember(feedback, "The log fills its grid, so every p is 1.")

    def _learn(self, at: Factors, path: Floats) -> None:
        self.mu_, self.user_factors_, self.item_factors_ = at.mu, frozen(at.L), frozen(at.R)
        self.path_ = frozen(path)

    def _at(self, user: Array, item: Array) -> Floats:
        L, R = self.user_factors_, self.item_factors_
        A = L[user[:, 0]] @ R[item].T if user.ndim == 2 else _products(L, R, user, item)  # (B, I) or (n,)
        return np.maximum(expit(A + self.mu_), LEAST)


class Search:
    """The log-likelihood a held-out cell by rank and radius 2^power; each fit starts from the last."""

    def __init__(
        self, cells: Cells, folds: int, fit: Callable[[Cells, Factors, float], Factors], rng: np.random.Generator
    ) -> None:
        size = cells.U * cells.I / folds
        parts = Part.draw(cells.U, cells.I, folds, rng)[: int(np.ceil(ENOUGH / size))]
        self._cells, self._fit, self._size = cells, fit, size * len(parts)
        self._rests = [cells.without(part) for part in parts]
        self._at = {1: [cells.start(1)] * len(parts)}  # by rank
        self.scores: Scores = {}

    def score(self, rank: int, power: float) -> float:
        """Fitted and judged when first asked for."""
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
        """The rank and radius to use; ranks from the smallest up until their best score falls."""
        if radius is not None:
            return self._climb(ranks, lambda _, power: power, float(np.log2(radius)))[0], radius
        rank, power = self._climb(ranks, self._double, 0.0)
        between = [near for near in (power, power - 0.5, power + 0.5) if RADII[0] <= 2.0**near <= RADII[-1]]
        power = max(between, key=lambda near: self.score(rank, near))
        return rank, 2.0 ** self._relax(rank, power)

    def _climb(self, ranks: list[int], tune: Callable[[int, float], float], power: float) -> tuple[int, float]:
        found = ranks[0], tune(ranks[0], power)
        for rank in ranks[1:]:
            other = rank, tune(rank, found[1])
            if self.score(*other) <= self.score(*found):
                break
            found = other
        return found

    def _double(self, rank: int, power: float) -> float:
        """Doubled while that is better, or else halved."""
        for step in (1, -1):
            score = self.score(rank, power)
            while 2.0 ** (power + step) in RADII and self.score(rank, power + step) > score:
                power, score = power + step, self.score(rank, power + step)
        return power

    def _relax(self, rank: int, power: float) -> float:
        """The largest radius, up to four times the best, that gains nearly as much over one p for all cells.

        A tight bound draws p to their mean. It costs little likelihood, but leaves IPS a part of naive's bias.
        """
        p, best = float(self._cells.O.sum()) / (self._cells.U * self._cells.I), self.score(rank, power)
        nothing = p * np.log(p) + (1 - p) * np.log1p(-p)
        for more in (0.5, 1.0, 1.5, 2.0):
            if 2.0 ** (power + more) > RADII[-1] or self.score(rank, power + more) < best - SLACK * (best - nothing):
                return power + more - 0.5
        return power + 2.0


def _products(L: Floats, R: Floats, user: Array, item: Array) -> Floats:
    """L_u·R_i of single cells, a part at a time."""
    out, size = np.empty(len(user)), max(1, BLOCK // L.shape[1])
    for first in range(0, len(user), size):
        part = slice(first, first + size)
        np.einsum("nk,nk->n", L[user[part]], R[item[part]], out=out[part])
    return out


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
            f"LowRank: walks through all cells some hundred times, at most {MAX_GRID:,} of them; {U:,} × {I:,} would "
            "take hours; use Popularity, Logistic or Boosted."
        )


def _notes(model: LowRank, feedback: Feedback, found: Found) -> Iterator[str]:
    U, I = feedback.n_users, feedback.n_items
    for what, codes, size in (("users", feedback.user, U), ("items", feedback.item, I)):
        if empty := size - len(distinct(codes)):
            yield f"{empty:,} of {size:,} {what} have no row; the bound keeps their p from 0."
    if model.radius is None and model.radius_ == RADII[0]:
        yield f"The radius {model.radius_:.3g} is the smallest tried: held-out cells show hardly any structure."
    if model.radius is None and model.radius_ == RADII[-1]:
        yield f"The radius {model.radius_:.3g} is the largest tried; a larger one, if given, may do better."
    if model.rank is None and model.rank_ == RANKS[-1]:
        yield f"The rank {model.rank_} is the largest tried; a larger one, if given, may do better."
    if not found.converged:
        change = 1 - found.path[-1] / found.path[max(-WINDOW - 1, -len(found.path))]
        yield (
            f"The likelihood had not settled after {model.max_iter:,} iterations (the last {WINDOW} changed it by "
            f"{change:.1g} of itself); raise max_iter=."
        )
