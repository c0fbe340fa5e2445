"""`Boosted`: p by gradient-boosted trees on covariates and counts (McCaffrey et al. 2004), from sampled cells."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import expit, logit
from threadpoolctl import threadpool_limits

from openloop.core.covariates import Covariates
from openloop.core.feedback import LEAST, Array, Feedback, Floats, frozen
from openloop.errors import InputError, UndefinedError
from openloop.propensity.base import CellModel, counts, refuse_frame, row_counts, share_of_log
from openloop.propensity.checks.held_out import some_of, unobserved
from openloop.support.arguments import generator

MAX_ROWS = 2_000_000  # observed and other cells that trees are grown on
WHOLE = 2**22  # cells of a grid whose sum is taken whole
SAMPLED = 2**21  # cells of a larger one that stand for it
VALIDATION = 0.1  # of the cells decide when to stop
PATIENCE = 10  # trees without a gain on them that end the fit
FEWEST = 20  # observed, or other, cells that a fold must leave to grow trees on
MANY = 1_000_000  # rows from which on threads pay; waiting for each other, they can take fifty times as long
CERTAIN = 1e-12  # keeps logits finite
BLOCK = 2**18  # cells whose features are in memory at a time


class Boosted(CellModel):
    """p by gradient-boosted trees, which find thresholds and interactions of covariates (McCaffrey et al. 2004).

    A cell is described by the covariates of its user and item and by log(1 + count) of both. Each observed cell is set
    against `negatives` unobserved ones, drawn at random. With sampling rates r and q of the two, the odds of the trees
    are r/q times too large, which is corrected: logit p = logit p̃ − log(r/q). Trees are added until they no longer
    predict held-out cells better.

    Trees also learn the accidents of the log: p would be too large where a row happens to be, and weights too small.
    Cells are therefore dealt into `folds`, and the p of a cell comes from trees grown without its fold. Last, the
    logits of each fold are shifted by one number to make Σp over the grid |O|.

    Args:
        negatives: Unobserved cells drawn per observed cell.
        folds: The number of folds.
        max_iter: The largest number of trees per fold.
        learning_rate: The shrinkage of each tree.
        max_leaf_nodes: The largest number of leaves per tree.
        min_samples_leaf: The smallest number of cells per leaf.
        rng: A seed or generator.

    Attributes:
        trees_: A scikit-learn classifier for each fold.
        shift_: What is added to the logits of each fold.
        share_: The share of the log that the rows are.
        user_covariates_: The covariates of users; None without.
        item_covariates_: The covariates of items; None without.
        users_: The users of the log, a `Vocabulary`.
        items_: The items of the log, a `Vocabulary`.
        notes_: What the fit reports, a tuple of sentences.

    Examples:
        >>> import openloop as ol
        >>> log = ol.simulate.movie_lovers().observe(rng=0)
        >>> seen = ol.propensity.Boosted(negatives=1, folds=2, max_iter=5).fit(log)
        >>> p = seen.predict(log).values
        >>> bool((0 < p).all() and (p <= 1).all())
        True
    """

    assumes = "being observed depends on who the user is and what the item is, and not on the rating"
    fits_items = True

    def __init__(
        self,
        negatives: int = 5,
        folds: int = 4,
        max_iter: int = 300,
        learning_rate: float = 0.1,
        max_leaf_nodes: int = 15,
        min_samples_leaf: int = 50,
        rng: int | np.random.Generator = 0,
    ) -> None:
        self.negatives = negatives
        self.folds = folds
        self.max_iter = max_iter
        self.learning_rate = learning_rate
        self.max_leaf_nodes = max_leaf_nodes
        self.min_samples_leaf = min_samples_leaf
        self.rng: Any = rng

    def fit(self, feedback: Feedback, user_features: Any = None, item_features: Any = None, **columns: Any) -> Boosted:
        """Grow the trees.

        Args:
            feedback: A log in memory.
            user_features: `Covariates` of users, or an array (U, k) in the order of the vocabulary.
            item_features: The same for items (I, l).
            **columns: Refused: this model does not take frames.

        Returns:
            The fitted model itself.
        """
        refuse_frame(self, feedback, columns)
        _check(self)
        # Plain counts: every cell of an item sees the same number. One without the cell's own row would tell it.
        by_user, by_item = counts(self, feedback)
        self.share_ = share_of_log(row_counts(self, feedback))
        self.user_covariates_ = Covariates.of(user_features, feedback.users, "user")
        self.item_covariates_ = Covariates.of(item_features, feedback.items, "item")
        self.user_columns_ = frozen(_columns(by_user, self.user_covariates_))  # (U, 1 + k)
        self.item_columns_ = frozen(_columns(by_item, self.item_covariates_))  # (I, 1 + l)
        rng = generator("Boosted", self.rng)
        self.salt_ = int(rng.integers(2**62))
        notes = [note for given in (self.user_covariates_, self.item_covariates_) if given for note in given.notes]
        notes += self._grow(feedback, rng)
        notes += self._level(feedback, rng)
        given = {"user_features": self.user_covariates_, "item_features": self.item_covariates_}
        return self._remember(feedback, *notes, **given)

    def _grow(self, feedback: Feedback, rng: np.random.Generator) -> list[str]:
        own, others = feedback.cell, feedback.n_users * feedback.n_items - len(feedback)
        seen = own[some_of(len(own), MAX_ROWS // (1 + self.negatives), rng)]
        unseen = unobserved(own, some_of(others, self.negatives * len(seen), rng))
        cell, observed = np.concatenate([seen, unseen]), np.repeat([1, 0], [len(seen), len(unseen)])
        X, fold = self._features(*np.divmod(cell, feedback.n_items)), self._fold(cell)
        self.trees_ = [self._trees(X[fold != f], observed[fold != f], rng) for f in range(self.folds)]
        # logit p = logit p̃ − log(r/q)
        self.shift_ = np.full(self.folds, -np.log(len(seen) / len(own) * others / len(unseen)))
        grown = [trees.n_iter_ for trees in self.trees_]
        notes = [f"{min(grown)} to {max(grown)} trees on {len(seen):,} observed cells and {len(unseen):,} others"]
        if max(grown) == self.max_iter:
            notes.append(f"the last of {self.max_iter} trees still helped; a larger max_iter= may do better")
        return notes

    def _trees(self, X: Floats, observed: Array, rng: np.random.Generator) -> Any:
        from sklearn.ensemble import HistGradientBoostingClassifier

        fewest = int(np.bincount(observed, minlength=2).min())
        if fewest < FEWEST:
            raise UndefinedError(
                f"Boosted: needs {FEWEST} observed cells and {FEWEST} unobserved ones after one of {self.folds} folds "
                f"is left out, got {fewest}; use Uniform for a log this small or this full."
            )
        stops: Any = True  # scikit-learn types it as text
        trees = HistGradientBoostingClassifier(
            learning_rate=self.learning_rate, max_iter=self.max_iter, max_leaf_nodes=self.max_leaf_nodes,
            min_samples_leaf=self.min_samples_leaf, early_stopping=stops, validation_fraction=VALIDATION,
            n_iter_no_change=PATIENCE, random_state=int(rng.integers(2**31)),
        )  # fmt: skip
        with _threads(len(X)):
            return trees.fit(X, observed)

    def _level(self, feedback: Feedback, rng: np.random.Generator) -> list[str]:
        """Move the logits of each fold so that the mean over its cells is that of the rows."""
        rows, I = len(feedback), feedback.n_items
        cells = feedback.n_users * I
        drawn = some_of(cells, SAMPLED, rng) if cells > WHOLE else np.arange(cells)
        fold = self._fold(drawn)
        z = self._logits(*np.divmod(drawn, I), fold)
        before = float(expit(z).mean()) * cells
        self.shift_ = self.shift_ + [_shift(z[fold == f], rows / cells) for f in range(self.folds)]
        about = "" if len(drawn) == cells else f", estimated from {len(drawn):,} cells of the grid"
        return [f"Σp over the grid was {before / rows:.3f} times the number of rows; a shift corrected it{about}"]

    def _fold(self, cell: Array) -> Array:
        """The fold of each cell, by a hash of its position (splitmix64), so that none has to be stored."""
        x = cell.astype(np.uint64) + np.uint64(self.salt_)
        for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
            x = (x ^ (x >> np.uint64(shift))) * np.uint64(factor)
        return ((x ^ (x >> np.uint64(31))) % np.uint64(self.folds)).astype(np.int64)

    def _features(self, user: Array, item: Array) -> Floats:
        return np.concatenate([self.user_columns_[user], self.item_columns_[item]], axis=1)  # (n, 2 + k + l)

    def _logits(self, user: Array, item: Array, fold: Array) -> Floats:
        z = np.empty(len(user))
        with _threads(len(user)):
            for f, trees in enumerate(self.trees_):
                inside = np.flatnonzero(fold == f)
                for part in np.array_split(inside, len(inside) // BLOCK + 1):
                    if len(part):
                        z[part] = trees.decision_function(self._features(user[part], item[part]))
        return np.clip(z, logit(CERTAIN), -logit(CERTAIN)) + self.shift_[fold]

    def _at(self, user: Array, item: Array) -> Floats:
        u, i = (codes.ravel() for codes in np.broadcast_arrays(user, item))
        fold = self._fold(u.astype(np.int64) * len(self.item_columns_) + i)
        observed = expit(self._logits(u, i, fold))  # in the part that was fitted on: p·s
        return np.clip(observed / self.share_, LEAST, 1.0).reshape(np.broadcast(user, item).shape)


def _threads(rows: int) -> Any:
    """A context: of a few rows the threads would cost more than they save."""
    return threadpool_limits(1 if rows < MANY else None, user_api="openmp")


def _columns(count: Floats, given: Covariates | None) -> Floats:
    log = np.log1p(count)[:, None]  # (N, 1)
    return log if given is None else np.concatenate([log, given.values], axis=1)


def _shift(z: Floats, mean: float) -> float:
    """c with mean σ(z + c) = mean, by halving: the mean grows with c."""
    if len(z) == 0:
        return 0.0
    low, high = logit(mean) - float(z.max()), logit(mean) - float(z.min())
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if float(expit(z + middle).mean()) < mean else (low, middle)
    return (low + high) / 2


def _check(model: Any) -> None:
    least = {"negatives": 1, "folds": 2, "max_iter": 1, "max_leaf_nodes": 2, "min_samples_leaf": 1}
    for name, smallest in least.items():
        value = getattr(model, name)
        if not isinstance(value, int | np.integer) or value < smallest:
            raise InputError(f"Boosted: {name} must be a whole number from {smallest}, got {value!r}; leave it out.")
    if not 0 < model.learning_rate <= 1:
        raise InputError(f"Boosted: learning_rate must lie in (0, 1], got {model.learning_rate}; 0.1 is usual.")
