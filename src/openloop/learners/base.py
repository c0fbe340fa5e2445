"""What learners share: checked weights, checked codes of users and items, and scores that are one product.

A learner gives `predict(user, item)` and `scores(users)`; one that learns factors gives the factors, and both follow.
Learned state ends in `_` and is arrays, numbers or vocabularies, so that a model file can hold it.
"""

from __future__ import annotations

import os
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator

from openloop.core.feedback import Array, Feedback, Floats, Vocabulary, check_feedback, check_fitted, distinct
from openloop.core.metric import default_threshold, reaches
from openloop.core.propensities import Propensities, row_propensities
from openloop.core.weights import effective_size
from openloop.errors import AlignmentError, EmptyError, InputError, UnknownIdError
from openloop.kernels.products import factor_products
from openloop.support.arguments import is_number, is_whole
from openloop.support.wording import counted

VECTORS = ("user_factors", "item_factors", "user_bias", "item_bias", "intercept")
FEW = 0.1  # of the rows: when the weights leave fewer, a note says so

Weights = npt.ArrayLike | Propensities | None


class Learner(BaseEstimator):
    """Learned by every fit: the grid as `users_` and `items_`, and what the fit reports as `notes_`."""

    # Parameters that are a λ beside a sum over rows, with weights of mean 1: `select` scales them to a fold's rows.
    penalties_beside_row_sum: ClassVar[tuple[str, ...]] = ()
    # Whether p itself is needed, and not a weight alone: then a fit without propensities is refused.
    needs_propensities: ClassVar[bool] = False
    # Whether rows may have weights; a model of the likelihood of all cells refuses them, and p with them.
    takes_weights: ClassVar[bool] = True
    # Whether predictions are ratings; scores that only rank are none.
    rates: ClassVar[bool] = True

    users_: Vocabulary
    items_: Vocabulary
    notes_: tuple[str, ...]

    def fit(self, feedback: Feedback, sample_weight: Weights = None, propensities: Any = None) -> Self:
        """Learn from feedback.

        Args:
            feedback: The training rows.
            sample_weight: One positive weight per row in Feedback order, or the rows' `Propensities` (weights 1/p).
                None gives all rows the same weight.
            propensities: p instead of weights: `Propensities`, a fitted propensity model, or an array with p of each
                row (n,) or of each cell (U, I). Pass `sample_weight` or `propensities`, not both.

        Returns:
            The fitted learner itself.
        """
        raise NotImplementedError

    def predict(self, user: npt.ArrayLike, item: npt.ArrayLike) -> Array:
        """The predicted rating of each (user, item) pair of codes.

        Args:
            user: User codes (n,).
            item: Item codes (n,), one per user code.

        Returns:
            One prediction per pair (n,).
        """
        raise NotImplementedError

    def scores(self, users: npt.ArrayLike) -> Array:
        """The scores by which items are ranked.

        Args:
            users: User codes (B,).

        Returns:
            The scores of all items for each user (B, I).
        """
        raise NotImplementedError

    def predictions(self, users: npt.ArrayLike) -> Array:
        """What `predict` gives for all items.

        Args:
            users: User codes (B,).

        Returns:
            The predictions of all items for each user (B, I).
        """
        return self.scores(users)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to a file that `ol.load` reads; a write that fails leaves no partial file.

        Args:
            path: The file.
        """
        from openloop.learners.model_files.saving import save

        save(self, path)

    def _remember(self, feedback: Feedback, *notes: str) -> Self:
        """The end of a fit."""
        self.users_, self.items_, self.notes_ = feedback.users, feedback.items, notes
        self.fitted_on_ = feedback.fingerprint  # what it has seen, by which an audit knows rows that may not judge it
        return self

    def _pairs(self, user: npt.ArrayLike, item: npt.ArrayLike) -> tuple[Array, Array]:
        """The codes of the pairs asked about, checked, of one shape."""
        check_fitted(self)
        users, items = self._codes("user", user), self._codes("item", item)
        if users.shape != items.shape:
            raise AlignmentError(
                f"{type(self).__name__}.predict: {users.shape} users and {items.shape} items; give one item per user."
            )
        return users, items

    def _users(self, users: npt.ArrayLike) -> Array:
        """The codes of the users asked about, checked."""
        check_fitted(self)
        return self._codes("user", users)

    def _codes(self, side: str, values: npt.ArrayLike) -> Array:
        codes, size = np.asarray(values), len(self.users_ if side == "user" else self.items_)
        if codes.ndim != 1:
            raise AlignmentError(
                f"{type(self).__name__}: {side} codes must be a list, got shape {codes.shape}; give one code per row."
            )
        if codes.size and codes.dtype.kind not in "iu":
            raise InputError(
                f"{type(self).__name__}: {side} codes must be whole numbers, got {codes.dtype}; "
                f"model.{side}s_.codes(ids) makes them."
            )
        if codes.size and not (codes.min() >= 0 and codes.max() < size):
            raise UnknownIdError(
                f"{type(self).__name__}: {side} codes must lie in 0 … {size - 1:,}, got {codes.min()} … {codes.max()}."
            )
        return codes.astype(np.int64)  # an empty list is of no type


class FactorLearner(Learner):
    """A learner whose score is v_uᵀw_i + a_u + b_i + c (Schnabel et al. 2016, Eq. 14)."""

    user_factors_: Array  # V, (U, K)
    item_factors_: Array  # W, (I, K)
    user_bias_: Array  # a, (U,)
    item_bias_: Array  # b, (I,)
    intercept_: float  # c

    @property
    def linked(self) -> bool:
        """Whether predictions are a function of the scores other than the scores themselves."""
        return False

    def link(self, z: Array) -> Array:
        """The prediction of each score z = v_uᵀw_i + a_u + b_i + c: an increasing function, here z itself.

        Args:
            z: Scores of any shape.

        Returns:
            Predictions of the same shape.
        """
        return z

    def predict(self, user: npt.ArrayLike, item: npt.ArrayLike) -> Array:
        """The prediction of each (user, item) pair of codes.

        Args:
            user: User codes (n,).
            item: Item codes (n,), one per user code.

        Returns:
            One prediction per pair (n,).
        """
        return self.link(self.linear(*self._pairs(user, item)))

    def predictions(self, users: npt.ArrayLike) -> Array:
        """The predictions of all items.

        Args:
            users: User codes (B,).

        Returns:
            The predictions of all items for each user (B, I).
        """
        return self.link(self.scores(users))

    def linear(self, u: Array, i: Array) -> Array:
        """v_uᵀw_i + a_u + b_i + c of pairs of codes that are known to be valid.

        Args:
            u: User codes (n,).
            i: Item codes (n,).

        Returns:
            One score per pair (n,).
        """
        products = factor_products(self.user_factors_, self.item_factors_, u, i)
        return products + self.user_bias_[u] + self.item_bias_[i] + self.intercept_

    def scores(self, users: npt.ArrayLike) -> Array:
        """The scores v_uᵀw_i + a_u + b_i + c of all items.

        Args:
            users: User codes (B,).

        Returns:
            The scores of all items for each user (B, I).
        """
        u = self._users(users)
        products = self.user_factors_[u] @ self.item_factors_.T  # (B, I)
        return products + (self.user_bias_[u] + self.intercept_)[:, None] + self.item_bias_

    def to_vectors(self, path: str | os.PathLike[str] | None = None) -> dict[str, Any]:
        """V, W, a, b, c and the ids of their rows, by the names that `Factors` takes.

        Args:
            path: A file to write them to, as well; the extension gives the format: .npz, .safetensors or .parquet.

        Returns:
            A dictionary of arrays. It has `output` where predictions are not the scores: "logistic", or the points (2,
            n) of a piecewise linear function.
        """
        check_fitted(self)
        found: dict[str, Any] = {name: getattr(self, f"{name}_") for name in VECTORS}
        found |= {"users": self.users_.ids, "items": self.items_.ids}
        if (output := self._output()) is not None:
            found["output"] = output
        if path is not None:
            from openloop.learners.model_files.vector_files import write_vectors

            write_vectors(path, found)
        return found

    def _output(self) -> Any:
        """How `link` makes predictions of scores, as `Factors` takes it."""
        return None

    def factor_arrays(self) -> tuple[Array, Array, Array]:
        """V, W and b, which give each user's ranking, since a_u and c shift all items alike.

        Returns:
            User factors (U, K), item factors (I, K) and item bias (I,).
        """
        check_fitted(self)
        return self.user_factors_, self.item_factors_, self.item_bias_


# -- the door ------------------------------------------------------------------------------------------------


def weights(model: Any, feedback: Any, given: Weights, propensities: Any = None) -> Floats:
    """One positive weight per row, of mean 1, which makes a penalty mean the same with and without weights.

    `given` is an array in Feedback order, taken as it is; the Propensities of the rows: 1/p, times the log's own
    `weight` where it has one, as of repeats that were counted; or None: the log's own, else all equal. `propensities`
    are what `row_propensities` takes, and count as Propensities do.
    """
    name = type(model).__name__
    check_feedback(name, feedback)
    if propensities is not None:
        if given is not None:
            raise InputError(f"{name}: sample_weight and propensities= were both given; leave one of them out.")
        given = row_propensities(name, propensities, feedback)
    w = _raw(feedback, given)
    if w.shape != (len(feedback),):
        raise AlignmentError(
            f"{name}: sample_weight has shape {w.shape}, the feedback has {len(feedback):,} rows; give one weight per "
            "row, in Feedback order (feedback.align(array) brings input order there)."
        )
    bad = np.flatnonzero(~(np.isfinite(w) & (w > 0)))
    if len(bad):
        raise InputError(
            f"{name}: sample_weight must be finite and positive, {len(bad):,} of {len(w):,} are not, first "
            f"{w[bad[0]]} at index {bad[0]:,}; drop those rows."
        )
    w = w / w.max()  # so that no sum overflows
    if w.min() == 0:
        raise InputError(f"{name}: sample_weight spans more than float64 can hold; clip the largest weights.")
    return w / w.mean()


def _raw(feedback: Feedback, given: Weights) -> Floats:
    own = np.ones(len(feedback)) if feedback.weight is None else feedback.weight
    if isinstance(given, Propensities):
        return given.check(feedback).weights * own
    if given is None:
        return own
    try:
        return np.asarray(given, np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"sample_weight must be numbers, one per row, or Propensities ({error}).") from error


def check_whole(model: Any, name: str, least: int = 1) -> int:
    """The parameter `name`, a whole number from `least`."""
    value = getattr(model, name)
    if not (is_whole(value) and value >= least):
        raise InputError(f"{type(model).__name__}: {name} must be a whole number from {least}, got {value!r}.")
    return int(value)


def check_number(model: Any, name: str, *, positive: bool = False) -> float:
    """The parameter `name`, a finite number that is not negative, or positive."""
    value = getattr(model, name)
    if not (is_number(value) and np.isfinite(value) and (value > 0 if positive else value >= 0)):
        rule = "above 0" if positive else "at least 0"
        raise InputError(f"{type(model).__name__}: {name} must be a finite number {rule}, got {value!r}.")
    return float(value)


def liked(model: Any, feedback: Feedback, threshold: Any) -> Array:
    """Which rows are rated at least `threshold` (None: 4, or 1 where all are 0 and 1); that none is refused."""
    threshold = default_threshold(distinct(feedback.rating)) if threshold is None else threshold
    if not (is_number(threshold) and np.isfinite(threshold)):
        raise InputError(
            f"{type(model).__name__}: threshold must be a finite number, the smallest rating of a positive, or None, "
            f"got {threshold!r}."
        )
    keep = reaches(feedback.rating, threshold)
    if not keep.any():
        raise EmptyError(
            f"{type(model).__name__}: no rating is at least {threshold:g}, so nothing is liked; the largest is "
            f"{feedback.rating.max():g}: pass a smaller threshold=."
        )
    return keep


def check_rank(model: Any, factors: int, U: int, I: int) -> None:
    """Refuse more factors than a grid of U × I can have."""
    if factors > min(U, I):
        raise InputError(
            f"{type(model).__name__}: factors must be at most min(users, items) = {min(U, I):,} of this {U:,} × {I:,} "
            f"grid, got {factors}; pass fewer."
        )


def weight_notes(w: Floats) -> list[str]:
    """A sentence where a few weights outweigh all others."""
    return few_notes(effective_size(w), len(w))


def few_notes(left: float, n: int) -> list[str]:
    """A sentence where weights leave few of n rows."""
    few = f"the weights leave an effective {left:,.0f} of {n:,} rows; a floor of the propensities would leave more"
    return [few] if left < FEW * n else []


def outside_notes(model: FactorLearner, feedback: Feedback, low: float, high: float) -> list[str]:
    """A sentence about predictions at training cells that lie outside a range."""
    f = model.link(model.linear(feedback.user, feedback.item))
    out = int(np.sum((f < low) | (f > high)))
    return [f"{out:,} of {len(f):,} predictions at training cells lie outside {low:g} … {high:g}"] if out else []


def far_outside_notes(model: FactorLearner, feedback: Feedback) -> list[str]:
    """The same for predictions beyond the ratings by over a quarter of their range; slightly beyond is usual."""
    low, high = float(feedback.rating.min()), float(feedback.rating.max())
    return outside_notes(model, feedback, low - (high - low) / 4, high + (high - low) / 4)


def unseen_notes(feedback: Feedback, how: str, what: str = "rating") -> list[str]:
    """A sentence about users and items without a rating; `how` says how they are predicted."""
    lonely = {
        "user": int(np.sum(np.bincount(feedback.user, minlength=feedback.n_users) == 0)),
        "item": int(np.sum(np.bincount(feedback.item, minlength=feedback.n_items) == 0)),
    }
    return [f"{counted(n, side)} with no {what}, predicted by {how}" for side, n in lonely.items() if n]
