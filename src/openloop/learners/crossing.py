"""Cross-fitting: Latin folds of cells, and copies of a learner for a part of the rows.

A Latin fold is k(u, i) = (π(u) + σ(i)) mod K: every cell of the grid has one, observed or not, and the cells of a fold
are K blocks of users × items, over which a factor model is still a product.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import clone

from openloop.core.feedback import Array, Feedback
from openloop.errors import InputError, listing
from openloop.support.arguments import generator, is_number, is_whole

Folds = npt.NDArray[np.int16]

MOST = 100


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LatinFolds:
    """The groups of users and items whose sum, modulo `count`, is the fold of a cell."""

    of_user: Folds  # π, (U,)
    of_item: Folds  # σ, (I,)
    count: int  # K

    def of(self, user: Array, item: Array) -> Folds:
        """The fold of each cell."""
        return (self.of_user[user] + self.of_item[item]) % self.count

    def item_group(self, fold: int, user_group: int) -> int:
        """The group of items whose cells with a group of users are in a fold."""
        return (fold - user_group) % self.count


def latin_folds(who: str, feedback: Feedback, folds: Any, rng: Any) -> LatinFolds:
    """Groups of users and of items of equal size, dealt at random; each fold must leave rows to learn from."""
    U, I = feedback.n_users, feedback.n_items
    if not (is_whole(folds) and 2 <= folds <= MOST):
        raise InputError(f"{who}: folds must be a whole number in 2 … {MOST}, got {folds!r}.")
    rng = generator(who, rng)
    of_user, of_item = (rng.permutation((np.arange(n) % folds).astype(np.int16)) for n in (U, I))
    found = LatinFolds(of_user=of_user, of_item=of_item, count=int(folds))
    largest = int(np.bincount(found.of(feedback.user, feedback.item)).max())
    if largest == len(feedback):
        raise InputError(
            f"{who}: all {len(feedback):,} rows are in one of {folds} folds, so none is left to learn from; a log of "
            "more users and items is needed."
        )
    return found


# -- copies --------------------------------------------------------------------------------------------------


def for_rows(learner: Any, share: float, **setting: Any) -> Any:
    """An unfitted copy with these parameters, for a share of the rows: λ·share where λ is beside a sum over rows.

    Learners within it, as those of a stack, are scaled alike. Schnabel et al. 2016, section 6.1, has the same by
    dividing weights by (k−1)/k, which weights of mean 1 would undo.
    """
    fresh: Any = clone(learner)
    fresh.set_params(**setting)
    for one in (fresh, *within(fresh)):
        params = one.get_params(deep=False)
        values = {name: params[name] for name in penalties(one)}
        one.set_params(**{name: value * share for name, value in values.items() if is_number(value) and value > 0})
    return fresh


def quiet(learner: Any) -> Any:
    """An unfitted copy that works on one thread, without a bar of its own; the learners within it, too."""
    fresh: Any = clone(learner)
    for one in (fresh, *within(fresh)):
        own = one.get_params(deep=False)
        one.set_params(**{name: value for name, value in (("threads", 1), ("progress", False)) if name in own})
    return fresh


def penalties(learner: Any) -> Sequence[str]:
    """The learner's parameters that are λ beside a sum over rows."""
    named, known = getattr(learner, "penalties_beside_row_sum", ()), learner.get_params(deep=False)
    if isinstance(named, str) or not set(named) <= set(known):
        raise InputError(
            f"{type(learner).__name__}.penalties_beside_row_sum must be a tuple of its parameters "
            f"{listing(list(known))}, got {named!r}; name some of these."
        )
    return named


def within(learner: Any) -> Iterator[Any]:
    """The learners among a learner's parameters, at any depth."""
    for value in learner.get_params(deep=False).values():
        yield from _learners(value)


def _learners(value: Any) -> Iterator[Any]:
    if isinstance(value, list | tuple):
        for one in value:  # pyright: ignore[reportUnknownVariableType]
            yield from _learners(one)
    elif hasattr(value, "get_params") and not isinstance(value, type):
        yield value
        yield from within(value)
