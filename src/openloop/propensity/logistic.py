"""`Logistic`: P_ui = σ(wᵀX_ui + β_i + γ_u), X_ui all products of user and item covariates (section 5.1)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import narwhals as nw
import numpy as np

from openloop.core.covariates import Covariates
from openloop.core.feedback import LEAST, Array, Feedback, Floats, Vocabulary, check_fitted
from openloop.errors import InputError
from openloop.kernels.products import factor_products
from openloop.propensity.base import CellModel, check_codes, row_counts
from openloop.propensity.frames.frame_ids import FrameIds
from openloop.propensity.frames.log_frame import LogFrame
from openloop.propensity.frames.lookups import ITEM, USER, Lookup
from openloop.propensity.solvers.collapsing import Collapsed, Counted, CountedIds, CountedRows, collapse
from openloop.propensity.solvers.newton import Grid, Logits, mapped, maximise, sigmoid, sums
from openloop.propensity.solvers.penalty import REGS, validate
from openloop.support.arguments import generator, is_number, is_whole

LOWEST = -500.0  # a smaller logit gives LEAST as well, and engines do not agree on what e⁷⁵⁰ is
CERTAIN = 20.0  # a logit beyond it: no log tells p from 0 or 1 so exactly


class Logistic(CellModel):
    """p by user and item: P_ui = σ(wᵀX_ui + β_i + γ_u) (Schnabel et al. 2016, section 5.1 and appendix).

    Covariates enter as products only, since the offsets already cover what belongs to a user or an item alone. Without
    covariates the model has offsets only. Offsets are not penalised, so Σp of each user and item equals its count. The
    exceptions are users and items without a row, of which half a row is expected, and those with every row, which are
    treated alike; `notes_` says how many there are and what Σp comes to.

    Args:
        reg: λ of the penalty λ/2 ‖w‖² on the products. None chooses the one with the best log-likelihood in
            cross-validation.
        folds: Into how many random parts cross-validation splits the rows.
        rng: A seed or generator for these parts.

    Attributes:
        gamma_: γ, the offset of each user (U,). After a fit on a frame: by count of rows.
        beta_: β, the offset of each item (I,), likewise.
        weights_: w as a matrix (k, l); None without products.
        reg_: The λ that was used.
        scores_: The log-likelihood of held-out cells by candidate λ.
        log_likelihood_: The penalised log-likelihood.
        user_covariates_: The covariates of users; None without.
        item_covariates_: The covariates of items; None without.
        users_: The users of the log, a `Vocabulary`.
        items_: The items of the log, a `Vocabulary`.
        notes_: What the fit reports, a tuple of sentences.

    Examples:
        >>> import openloop as ol
        >>> log = ol.simulate.movie_lovers().observe(rng=0)
        >>> seen = ol.propensity.Logistic().fit(log)
        >>> by_user, by_item = seen.margins()
        >>> round(float(by_user.sum()), 3) == len(log)
        True
    """

    assumes = "being observed depends on who the user is and what the item is, and not on the rating"
    fits_items = True

    def __init__(self, reg: float | None = None, folds: int = 4, rng: int | np.random.Generator = 0) -> None:
        self.reg = reg
        self.folds = folds
        self.rng = rng

    def fit(
        self, feedback: Feedback | Any, user_features: Any = None, item_features: Any = None, **columns: Any
    ) -> Logistic:
        """Maximise the penalised log-likelihood; ratings are not needed.

        Args:
            feedback: A log, or a frame, whose rows are counted in its engine. A frame needs `reg` if there are
                features.
            user_features: `Covariates` of users, or an array (U, k) in the order of the vocabulary. With a frame:
                `Covariates` of the whole population, made by `ol.covariates`.
            item_features: The same for items (I, l).
            **columns: Only for a frame: `user`, `item` and `rating` name its columns, `population` is (users, items)
                where the log does not show everyone, `distinct=True` says that no pair is repeated.

        Returns:
            The fitted model itself.
        """
        log, both = self._opened(feedback, columns), user_features is not None and item_features is not None
        if isinstance(log, LogFrame):
            log = self._on_grid(log, user_features, item_features)
            self.user_covariates_, self.item_covariates_ = user_features, item_features
        else:
            self.user_covariates_ = Covariates.of(user_features, log.users, "user")
            self.item_covariates_ = Covariates.of(item_features, log.items, "item")
        self._check(log.rows if isinstance(log, LogFrame) else len(log), chooses=self.reg is None and both)
        X, Z = self._centred(log)
        self.fit_counts(_counted(self, log, Z), X, Z)
        given = {"user_features": self.user_covariates_, "item_features": self.item_covariates_}
        return self._remember(log, *self._notes(_size(self, log)), **given)

    def _on_grid(self, log: LogFrame, user: Any, item: Any) -> LogFrame:
        """The log on the grid of its covariates, where it has those of both sides."""
        for side, given in (("user", user), ("item", item)):
            if given is not None and not isinstance(given, Covariates):
                raise InputError(
                    f"Logistic: with a frame, {side}_features are Covariates, which know their ids, got "
                    f"{type(given).__name__}; make them with ol.covariates(table, ol.Vocabulary.of(all_ids))."
                )
        if user is None or item is None:
            return log
        if self.reg is None:
            raise InputError(
                "Logistic: the penalty on products of covariates is chosen by holding out rows, and these stay in "
                "their engine; pass reg=, such as the reg_ that Logistic().fit finds on a part of the log in memory."
            )
        return log.known(user.ids, item.ids)

    def refit(self, feedback: Feedback) -> Logistic:
        """A fresh copy, fitted on another part of the log with the same covariates and the penalty chosen here.

        Args:
            feedback: Another part of the log.

        Returns:
            The new fitted model; this one is unchanged.
        """
        check_fitted(self)
        fresh = Logistic(reg=self.reg_ if self.scores_ else self.reg, folds=self.folds, rng=self.rng)
        return fresh.fit(feedback, **self.side_)

    def _check(self, rows: int, *, chooses: bool) -> None:
        if self.reg is not None and not (is_number(self.reg) and 0 < self.reg < np.inf):
            raise InputError(f"Logistic: reg must be positive, got {self.reg!r}; leave it out to have it chosen.")
        if chooses and not (is_whole(self.folds) and 2 <= self.folds <= rows):
            raise InputError(
                f"Logistic: folds must be a whole number in 2 … {rows:,}, the rows of the log, got {self.folds!r}; "
                "leave it out for 4, or pass reg=."
            )

    def _centred(self, log: Feedback | LogFrame) -> tuple[Floats, Floats]:
        """X (U, k) and Z (I, l), without columns if there are no products; centring changes the offsets only."""
        X, Z = self.user_covariates_, self.item_covariates_
        if X is None or Z is None:
            return np.zeros((_entries(log.users), 0)), np.zeros((_entries(log.items), 0))
        return X.values - X.values.mean(axis=0), Z.values - Z.values.mean(axis=0)

    def fit_counts(self, rows: Counted, X: Floats, Z: Floats) -> None:
        """Find offsets and W from the counts of users and items and Σ_O x_u z_iᵀ.

        Args:
            rows: The counted log.
            X: The covariates of users (U, k).
            Z: The covariates of items (I, l).
        """
        collapsed, self.scores_, start, known = collapse(rows, X, Z), {}, None, None
        if X.size and self.reg is None and isinstance(rows, CountedRows):
            self.scores_, first = validate(rows, collapsed, X, Z, self.folds, generator("Logistic", self.rng))
            start, known = first.at, first.curvature
        self.reg_ = max(self.scores_, key=self.scores_.__getitem__) if self.scores_ else float(self.reg or 0.0)
        found = maximise(collapsed.grid, self.reg_, start, known)
        self.log_likelihood_ = penalised(collapsed.grid, found.at, self.reg_)
        self._expand(collapsed, found.at, X, Z)

    def _expand(self, collapsed: Collapsed, found: Logits, X: Floats, Z: Floats) -> None:
        self.collapsed_, self.classes_ = collapsed, collapsed.whole(found)
        _, logits = self.classes_
        self.gamma_, self.beta_ = logits.gamma[collapsed.users.of], logits.beta[collapsed.items.of]
        self.weights_ = logits.W if logits.W.size else None
        # x_uᵀW z_i in two factors, so that any cell is one short product
        self.user_factors_, self.item_factors_ = X @ logits.W, Z  # (U, l), (I, l)

    def _at(self, user: Array, item: Array) -> Floats:
        z = self.gamma_[user] + self.beta_[item]
        if self.weights_ is not None:
            z += factor_products(self.user_factors_, self.item_factors_, user, item)
        return np.maximum(sigmoid(z), LEAST)

    def frame_parts(self) -> tuple[Sequence[Lookup], Any]:
        """What is looked up for each row of a frame, and p as an expression of it.

        Returns:
            Lookups to join, and a narwhals expression of their columns.
        """
        gamma, beta = "openloop_gamma", "openloop_beta"
        of_user, of_item = {gamma: self.gamma_}, {beta: self.beta_}
        z = nw.col(gamma) + nw.col(beta)
        for c in range(self.user_factors_.shape[1]):
            x, y = f"openloop_x{c}", f"openloop_z{c}"
            of_user[x], of_item[y] = self.user_factors_[:, c], self.item_factors_[:, c]
            z = z + nw.col(x) * nw.col(y)
        p = 1.0 / (1.0 + (-z.clip(lower_bound=LOWEST)).exp())
        lookups = Lookup(key=USER, of=self.users_, columns=of_user), Lookup(key=ITEM, of=self.items_, columns=of_item)
        return lookups, p.clip(lower_bound=LEAST)

    def margins(self) -> tuple[Floats, Floats]:
        """The sums of p by user and by item, which are their counts; computed by classes, so fast on any grid.

        Returns:
            Σ_i p of each user (U,) and Σ_u p of each item (I,).
        """
        check_codes(self)
        grid, logits = self.classes_
        by_user, by_item, _ = sums(grid, logits)
        return by_user[self.collapsed_.users.of], by_item[self.collapsed_.items.of]

    def _notes(self, rows: float) -> list[str]:
        grid, logits = self.classes_
        notes = _covariate_notes(self.user_covariates_, self.item_covariates_)
        if left := _extreme_notes(self.collapsed_):
            total = float(grid.m @ sums(grid, logits)[0])
            notes += [*left, f"with these, Σp is {total / rows:.4f} of the rows"]
        if certain := certain_cells(grid, logits):
            notes.append(
                f"{certain:,.0f} cells have a p within 2e-9 of 0 or of 1: the users and items there are separated, and "
                "their p are not to be trusted"
            )
        if self.scores_ and self.reg_ in (REGS[0], REGS[-1]):
            notes.append(f"the chosen penalty {self.reg_:g} is the last of the candidates {REGS[0]:g} … {REGS[-1]:g}")
        return notes


def _entries(ids: Vocabulary | FrameIds) -> int:
    """How many offsets there are: one for each id, or for each count."""
    return len(ids.count) if isinstance(ids, FrameIds) else len(ids)


def _size(model: Logistic, log: Feedback | LogFrame) -> float:
    """The rows of the whole log."""
    return float(log.rows) if isinstance(log, LogFrame) else float(row_counts(model, log).sum())


def _counted(model: Logistic, log: Feedback | LogFrame, Z: Floats) -> Counted:
    """The log as the likelihood sees it."""
    if isinstance(log, Feedback):
        shape = (log.n_users, log.n_items)
        return CountedRows(user=log.user, item=log.item, weight=row_counts(model, log), shape=shape)
    if log.grid is None:
        users, items = log.seen
        return CountedIds(count=(users.count, items.count), size=(users.size, items.size))
    users, items = log.grid
    return CountedIds(
        count=(log.counts(USER, users), log.counts(ITEM, items)), size=(np.ones(len(users)), np.ones(len(items))),
        sums=log.sums(users, items, Z),
    )  # fmt: skip


def penalised(grid: Grid, at: Logits, reg: float) -> float:
    """ℓ = Σ_O z − Σ log(1 + eᶻ) − reg/2 ‖W‖²."""
    observed = grid.m * grid.a @ at.gamma + grid.n * grid.b @ at.beta + float(np.sum(grid.S * at.W))
    free = sum(mapped(lambda rows: float(grid.m[rows] @ np.logaddexp(0, at.values(grid, rows)) @ grid.n), grid))
    return float(observed - free - reg / 2 * np.sum(np.square(at.W)))


def certain_cells(grid: Grid, at: Logits) -> float:
    """How many cells have a logit beyond ±CERTAIN."""
    return sum(mapped(lambda rows: float(grid.m[rows] @ (np.abs(at.values(grid, rows)) > CERTAIN) @ grid.n), grid))


def _covariate_notes(user: Covariates | None, item: Covariates | None) -> list[str]:
    if (user is None) != (item is None):
        return ["covariates of one side alone add nothing to its offsets, and were not used; give both sides"]
    sides = (("user", user), ("item", item))
    return [remark for side, given in sides if given is not None for remark in given.remarks(side)]


def _extreme_notes(collapsed: Collapsed) -> list[str]:
    notes: list[str] = []
    for noun, side in (("user", collapsed.users), ("item", collapsed.items)):
        for state, what, expected in ((-1, "no row", "half a row"), (1, "every row", "all rows but half a one")):
            n = side.members(state)
            if n:
                who = f"{n:,} {noun}s have" if n > 1 else f"1 {noun} has"
                notes.append(f"{who} {what}: {expected} is expected of each")
    return notes
