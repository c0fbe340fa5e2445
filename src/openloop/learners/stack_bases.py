"""The bases of a stack: their predictions of held-out rows, and finally of all cells."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from openloop.core.feedback import Array, Feedback
from openloop.errors import InputError
from openloop.learners.crossing import LatinFolds, for_rows
from openloop.learners.factor_columns import FactorColumn, combined
from openloop.support.arguments import is_number
from openloop.support.progress import Advance

Mask = npt.NDArray[np.bool_]


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

    def tempered(self, w: Array) -> Array:
        """The weights to its power."""
        return w if self.power == 1 else w**self.power

    def fitted(self, feedback: Feedback, tempered: Array, share: float = 1.0) -> list[FactorColumn]:
        """The column of the learner fitted to rows, which are a share of the log's."""
        model = for_rows(self.learner, share).fit(feedback, sample_weight=tempered)
        return [FactorColumn.of(self.who, self.name, model)]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CrossedFold:
    """The rows of a fold, what each column says of them by models that did not see them, and such columns as are kept.

    `values` are by column, `kept` by base: none, or its columns.
    """

    rows: Mask
    values: list[Array]
    kept: list[list[FactorColumn]]


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
    if getattr(learner, "needs_propensities", False):
        raise InputError(
            f"{who}: base {number}, {type(learner).__name__}, needs p itself, and bases are fitted with weights; give "
            "a learner such as MF()."
        )
    if not getattr(learner, "takes_weights", True):
        raise InputError(
            f"{who}: base {number}, {type(learner).__name__}, takes no weights, and bases are fitted with weights; "
            "give a learner such as MF()."
        )
    if hasattr(learner, "fold_columns") and power != 1:  # pyright: ignore[reportUnknownArgumentType]
        raise InputError(f"{who}: base {number} ignores weights, so a power changes nothing; leave it out.")
    kind = type(learner).__name__  # pyright: ignore[reportUnknownArgumentType]
    return Base(who=who, name=f"{kind}, w^{power:g}" if power != 1 else kind, learner=learner, power=float(power))


def crossed(
    bases: Sequence[Base], feedback: Feedback, w: Array, folds: LatinFolds, advance: Advance, *, keep: Sequence[bool]
) -> Iterator[CrossedFold]:
    """Every fold, told of by bases that were fitted without it; `keep` says whose columns are kept."""
    for k in range(folds.count):
        advance(k, f"fold {k + 1} of {folds.count}")
        yield _fold(bases, feedback, w, folds.of(feedback.user, feedback.item) != k, folds, k, keep)


def _fold(
    bases: Sequence[Base], feedback: Feedback, w: Array, outside: Mask, folds: LatinFolds, k: int, keep: Sequence[bool]
) -> CrossedFold:
    values: list[list[Array]] = [[] for _ in bases]
    kept: list[list[FactorColumn]] = [[] for _ in bases]

    def tell(j: int, columns: list[FactorColumn]) -> None:
        user, item = feedback.user[~outside], feedback.item[~outside]
        values[j], kept[j] = [column.at(user, item) for column in columns], columns if keep[j] else []

    # A fit holds on to the part and its weights, and to no model but its own; who needs all rows comes without a part.
    part, share = _part(feedback, outside), float(outside.mean())
    for j, base in enumerate(bases):
        if not base.by_folds:
            tell(j, base.fitted(part, base.tempered(w[outside]), share))
    del part
    for j, base in enumerate(bases):
        if base.by_folds:
            tell(j, base.learner.fold_columns(feedback, folds, k))
    return CrossedFold(rows=~outside, values=[column for own in values for column in own], kept=kept)


def _part(feedback: Feedback, keep: Mask) -> Feedback:
    """Some rows, without the columns that learners do not look at; where a row was in the input is not told either."""
    user = feedback.user[keep]
    return Feedback(
        user=user, item=feedback.item[keep], rating=feedback.rating[keep], users=feedback.users, items=feedback.items,
        positives=feedback.positives, row=np.broadcast_to(np.int64(0), user.shape),
    )  # fmt: skip


def mean_of_folds(columns: Sequence[Sequence[FactorColumn]]) -> list[FactorColumn]:
    """The mean of a base's columns over folds, with the notes of the first."""
    K = len(columns)
    means = (combined(same, [1 / K] * K, name=same[0].name) for same in zip(*columns, strict=True))
    return [replace(mean, notes=first.notes) for mean, first in zip(means, columns[0], strict=True)]
