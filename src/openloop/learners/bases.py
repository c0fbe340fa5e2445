"""The bases of a stack: what each says of rows that it did not see, and of all cells in the end."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from openloop.core.feedback import Array, Feedback
from openloop.errors import InputError
from openloop.learners.columns import Column, combined
from openloop.learners.crossing import LatinFolds, for_rows
from openloop.support.arguments import is_number
from openloop.support.progress import Advance

Rows = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Base:
    """A learner, trained with the weights to a power; `Exposure` gives columns of its own, and those by folds only."""

    who: str
    name: str
    learner: Any
    power: float = 1.0

    @property
    def by_folds(self) -> bool:
        """Whether its columns are made fold by fold, and are predicted by their means."""
        return hasattr(self.learner, "fold_columns")

    def fitted(self, feedback: Feedback, w: Array, share: float = 1.0) -> list[Column]:
        """The column of the learner fitted to rows, which are a share of the log's."""
        model = for_rows(self.learner, share).fit(feedback, sample_weight=w**self.power)
        return [Column.of(self.who, self.name, model)]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CrossedFold:
    """The rows of a fold, and the columns of each base that did not see them."""

    rows: Rows
    columns: list[list[Column]]


def bases_of(who: str, given: Any) -> list[Base]:
    """The bases as they were given: learners, or pairs of a learner and a power."""
    if isinstance(given, str) or not isinstance(given, Sequence) or not given:
        raise InputError(
            f"{who}: bases must be a list of learners, or of pairs (learner, power), got {given!r:.80}; write "
            "[MF(), (MF(), 0.5)]."
        )
    return [_base(who, number, one) for number, one in enumerate(given, 1)]  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]


def _base(who: str, number: int, given: Any) -> Base:
    learner, power = given if isinstance(given, tuple) and len(given) == 2 else (given, 1.0)  # pyright: ignore[reportUnknownVariableType]
    if isinstance(learner, type) or not hasattr(learner, "get_params") or not hasattr(learner, "fit"):
        raise InputError(f"{who}: base {number} must be a learner such as MF(), got {learner!r:.80}.")
    if not (is_number(power) and np.isfinite(power)):
        raise InputError(f"{who}: the power of base {number} must be a finite number, got {power!r:.80}.")
    kind = type(learner).__name__  # pyright: ignore[reportUnknownArgumentType]
    return Base(who=who, name=f"{kind}, w^{power:g}" if power != 1 else kind, learner=learner, power=float(power))


def crossed(
    bases: Sequence[Base], feedback: Feedback, w: Array, folds: LatinFolds, advance: Advance
) -> Iterator[CrossedFold]:
    """Every fold that has rows, with bases fitted without it."""
    for k in range(folds.count):
        advance(k, f"fold {k + 1} of {folds.count}")
        held = folds.of(feedback.user, feedback.item) == k
        if held.any():
            # First the columns by folds, which need all rows: then no copy of a part is in memory beside their own.
            by_folds = [base.learner.fold_columns(feedback, folds, k) if base.by_folds else [] for base in bases]
            columns = list(_without(bases, by_folds, _part(feedback, ~held), w[~held], np.mean(~held)))
            yield CrossedFold(rows=np.flatnonzero(held), columns=columns)


def _without(
    bases: Sequence[Base], by_folds: Sequence[list[Column]], part: Feedback, w: Array, share: float
) -> Iterator[list[Column]]:
    for base, own in zip(bases, by_folds, strict=True):
        yield own or base.fitted(part, w, float(share))


def _part(feedback: Feedback, keep: npt.NDArray[np.bool_]) -> Feedback:
    """Some rows, without the columns that learners do not look at; where a row was in the input is not told either."""
    user = feedback.user[keep]
    return Feedback(
        user=user, item=feedback.item[keep], rating=feedback.rating[keep], users=feedback.users, items=feedback.items,
        positives=feedback.positives, row=np.broadcast_to(np.int64(0), user.shape),
    )  # fmt: skip


def mean_of_folds(columns: Sequence[Sequence[Column]]) -> list[Column]:
    """The mean of a base's columns over folds."""
    K = len(columns)
    return [combined(same, [1 / K] * K, name=same[0].name) for same in zip(*columns, strict=True)]
