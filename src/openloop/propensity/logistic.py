"""`Logistic`: P_ui = σ(wᵀX_ui + β_i + γ_u), X_ui all products of user and item covariates (section 5.1)."""

from __future__ import annotations

from typing import Any

import numpy as np

from openloop.core.covariates import Covariates
from openloop.core.feedback import LEAST, Array, Feedback, Floats, check_fitted
from openloop.errors import InputError
from openloop.kernels.products import factor_products
from openloop.propensity.base import CellModel, row_counts
from openloop.propensity.solvers.collapsing import Collapsed, CountedRows, collapse
from openloop.propensity.solvers.newton import Grid, Logits, mapped, maximise, sigmoid, sums
from openloop.propensity.solvers.penalty import REGS, validate
from openloop.support.arguments import generator, is_number, is_whole

CERTAIN = 20.0  # a logit beyond it: no log tells p from 0 or 1 so exactly


class Logistic(CellModel):
    """Who sees what, by who they are and what it is (Schnabel et al. 2016, section 5.1 and appendix).

    Covariates enter as products only, since the offsets take up what belongs to a user or an item alone; without
    covariates the offsets are all there is. `reg` is λ of the penalty λ/2 ‖w‖² on the products, by default the one
    with the best log-likelihood in cross-validation by `folds` parts of the rows. Offsets are not penalised, so
    each user's and item's Σp is its count. Only users and items without a row, of which half a row is expected, add
    to that, and those with every row take off as much; `notes_` say how many there are and what Σp comes to.

    Learned: `gamma_` (U,), `beta_` (I,), `weights_` (k, l) or None, `reg_`, `scores_` (log-likelihood of held-out
    cells by candidate), `log_likelihood_` (penalised), and `user_covariates_`, `item_covariates_`.
    """

    assumes = "being observed depends on who the user is and what the item is, and not on the rating"
    fits_items = True

    def __init__(self, reg: float | None = None, folds: int = 4, rng: int | np.random.Generator = 0) -> None:
        self.reg = reg
        self.folds = folds
        self.rng = rng

    def fit(self, feedback: Feedback, user_features: Any = None, item_features: Any = None) -> Logistic:
        """Maximise the penalised log-likelihood; features are Covariates, or arrays in the vocabulary's order."""
        weight = row_counts(self, feedback)
        self._check(len(feedback), chooses=self.reg is None and user_features is not None and item_features is not None)
        self.user_covariates_ = Covariates.of(user_features, feedback.users, "user")
        self.item_covariates_ = Covariates.of(item_features, feedback.items, "item")
        X, Z = self._centred(feedback)
        shape = (feedback.n_users, feedback.n_items)
        rows = CountedRows(user=feedback.user, item=feedback.item, weight=weight, shape=shape)
        self._maximise(rows, X, Z)
        given = {"user_features": self.user_covariates_, "item_features": self.item_covariates_}
        return self._remember(feedback, *self._notes(float(weight.sum())), **given)

    def refit(self, feedback: Feedback) -> Logistic:
        """A fresh copy, fitted on another part of the log with the same covariates and the penalty chosen here."""
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

    def _centred(self, feedback: Feedback) -> tuple[Floats, Floats]:
        """X (U, k) and Z (I, l), of no column where there is no product; centring moves offsets only."""
        X, Z = self.user_covariates_, self.item_covariates_
        if X is None or Z is None:
            return np.zeros((feedback.n_users, 0)), np.zeros((feedback.n_items, 0))
        return X.values - X.values.mean(axis=0), Z.values - Z.values.mean(axis=0)

    def _maximise(self, rows: CountedRows, X: Floats, Z: Floats) -> None:
        collapsed, self.scores_, start, known = collapse(rows, X, Z), {}, None, None
        if X.size and self.reg is None:
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

    def margins(self) -> tuple[Floats, Floats]:
        """Σ_i p of each user and Σ_u p of each item: their counts. By classes, so quick on any grid."""
        check_fitted(self)
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
