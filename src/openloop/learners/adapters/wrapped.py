"""`Wrapped`: a model made elsewhere that has no factors, as a recommender here."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from openloop.core.feedback import Array, Feedback, Ints, Vocabulary
from openloop.errors import DuplicateError, InputError, UndefinedError, listing
from openloop.learners.adapters.asking import Pairs, answered_grid, answers
from openloop.learners.base import Learner, Weights


class Wrapped(Learner):
    """Scores of pairs by `pairs(user rows, item rows)`, where row r of a side is what `users` or `items` name at r.

    `ranked` is the same for rankings, where predictions are another function of the scores. `covers`: the model answers
    about users and items that it never saw, which it is asked for as row -1. Without that `unknown="zero"` gives them
    the score 0.
    """

    def __init__(
        self,
        name: str,
        pairs: Pairs,
        users: Any,
        items: Any,
        unknown: str = "error",
        ranked: Pairs | None = None,
        *,
        covers: bool = False,
    ) -> None:
        self.name = name
        self.pairs = pairs
        self.users = users
        self.items = items
        self.unknown = unknown
        self.ranked = ranked
        self.covers = covers
        self.notes_ = ()
        self.users_, self.user_rows_ = _ordered(name, "users", users)
        self.items_, self.item_rows_ = _ordered(name, "items", items)

    def fit(self, feedback: Feedback, sample_weight: Weights = None, propensities: Any = None) -> Wrapped:
        """There is nothing to fit."""
        raise UndefinedError(
            f"{self.name}: was trained elsewhere and cannot be fitted; pass it to evaluate or audit, which find its "
            "users and items by id."
        )

    def placed(self, users: Vocabulary, items: Vocabulary) -> Wrapped:
        """The same model in other codes; -1 is the row of ids that it lacks."""
        given = self.name, self.pairs, self.users, self.items, self.unknown, self.ranked
        found = type(self)(*given, covers=self.covers)
        found.users_, found.user_rows_ = users, _rows(self.users_, self.user_rows_, users)
        found.items_, found.item_rows_ = items, _rows(self.items_, self.item_rows_, items)
        answer = "it has its own scores for them" if self.covers else "their score is 0, among the others' scores"
        found.notes_ = tuple(
            f"{number:,} of {len(rows):,} {side} are unknown to the model; {answer}"
            for side, rows in (("users", found.user_rows_), ("items", found.item_rows_))
            if (number := int((rows < 0).sum()))
        )
        return found

    def predict(self, user: npt.ArrayLike, item: npt.ArrayLike) -> Array:
        """The prediction of each (user, item) pair of codes."""
        u, i = self._pairs(user, item)
        return self._answers(self.pairs, self.user_rows_[u], self.item_rows_[i])

    def scores(self, users: npt.ArrayLike) -> Array:
        """The scores of all items for these users, (B, I)."""
        return self._grid(self.ranked or self.pairs, users)

    def predictions(self, users: npt.ArrayLike) -> Array:
        """The predictions of all items for these users, (B, I)."""
        return self._grid(self.pairs, users)

    @property
    def linked(self) -> bool:
        """Whether predictions are another function of the scores."""
        return self.ranked is not None

    def linear(self, user: Array, item: Array) -> Array:
        """The score of each pair of codes."""
        return self._answers(self.ranked or self.pairs, self.user_rows_[user], self.item_rows_[item])

    def _grid(self, pairs: Pairs, users: npt.ArrayLike) -> Array:
        def ask(user: Array, item: Array) -> Array:
            return self._answers(pairs, user, item)

        return answered_grid(self.name, ask, self.user_rows_[self._users(users)], self.item_rows_)

    def _answers(self, pairs: Pairs, user: Array, item: Array) -> Array:
        known = (user >= 0) & (item >= 0)
        if self.covers or known.all():
            return answers(self.name, pairs, user, item)
        found = np.zeros(len(user))
        found[known] = answers(self.name, pairs, user[known], item[known])
        return found


class PartlyWrapped(Wrapped):
    """A wrapped model whose score of some pairs is NaN, as LensKit's: it does not know them.

    Such ratings are not predicted, and such items rank below all others, as it would list them itself.
    """

    def knows(self, user: Ints, item: Ints) -> npt.NDArray[np.bool_]:
        """Whether it has a prediction of each pair."""
        return ~np.isnan(self.predict(user, item))

    def scores(self, users: npt.ArrayLike) -> Array:
        """The scores of all items for these users, -inf where it has none, (B, I)."""
        found = super().scores(users)
        return np.where(np.isnan(found), -np.inf, found)


def _rows(own: Vocabulary, rows: Ints, ids: Vocabulary) -> Ints:
    """The row of each of these ids, -1 where there is none."""
    code = own.find(ids.ids)
    return np.where(code >= 0, rows[code], np.int32(-1))


def _ordered(name: str, side: str, ids: Any) -> tuple[Vocabulary, Ints]:
    """The ids as a vocabulary, and the row of each of its codes."""
    own = np.asarray(ids)
    own = own.astype(object) if own.dtype.kind == "U" else own
    if own.dtype.kind not in "iuO" or (own.dtype == object and not all(isinstance(v, str) for v in own)):
        raise InputError(
            f"{name}: {side} must be integers or strings, got {own.dtype} like {listing(own[:1].tolist())}."
        )
    order = np.argsort(own, kind="stable")
    twice = own[order][1:][own[order][1:] == own[order][:-1]]
    if len(twice):
        raise DuplicateError(f"{name}: {len(twice):,} {side} occur twice: {listing(twice.tolist())}; keep one of each.")
    return Vocabulary(own[order]), order.astype(np.int32)
