"""`Covariates`: what is known about each user, or about each item, as numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from openloop.core.feedback import Array, Floats, Vocabulary, frozen
from openloop.errors import AlignmentError, InputError, UnknownIdError, listing

LARGEST = 1e15  # the fourth power of it, summed over cells, is still far from the largest number


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Covariates:
    """What is known about each user, or about each item: one row of finite numbers for each id.

    `ol.covariates` makes them of a table.

    Args:
        values: The numbers, (ids, columns), in the order of `ids`.
        names: The names of the columns.
        ids: The vocabulary of the users or items, such as `log.items`.
        notes: What was done to a table to make them.

    Raises:
        AlignmentError: The shape is not (ids, names).
        InputError: A value is missing, not finite or above 1e15, or two columns share a name.

    Examples:
        >>> numbers = np.array([[1.0, 2.0], [0.0, 4.0]])
        >>> about = ol.Covariates(values=numbers, names=("new", "price"), ids=ol.Vocabulary.range(2))
        >>> about
        Covariates(2 × 2: 'new', 'price')
        >>> about.rank
        1
    """

    values: Floats
    names: tuple[str, ...]
    ids: Vocabulary
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        values = _numbers(self.values, "Covariates")
        object.__setattr__(self, "names", tuple(self.names))
        if values.shape != (len(self.ids), len(self.names)) or not values.size:
            raise AlignmentError(
                f"Covariates: needs one row for each of {len(self.ids):,} ids and one column for each of "
                f"{len(self.names)} names, got shape {values.shape}; give every id a row, in the vocabulary's order."
            )
        if len(set(self.names)) < len(self.names):
            raise InputError(f"Covariates: column names must be distinct, got {listing(self.names)}; rename them.")
        self._check_finite(values)
        self._check_size(values)
        object.__setattr__(self, "values", frozen(values))

    def _check_finite(self, values: Floats) -> None:
        bad = ~np.isfinite(values)
        if bad.any():
            column = int(np.flatnonzero(bad.any(axis=0))[0])
            rows = np.flatnonzero(bad[:, column])
            raise InputError(
                f"Covariates: column {self.names[column]!r} has {len(rows):,} of {len(values):,} values that are "
                f"missing or not finite, first for id {self.ids.ids.tolist()[rows[0]]!r}; fill them in, or leave the "
                "column out."
            )

    def _check_size(self, values: Floats) -> None:
        if (most := float(np.abs(values).max())) > LARGEST:
            column = self.names[int(np.abs(values).max(axis=0).argmax())]
            raise InputError(
                f"Covariates: column {column!r} has values up to {most:.2g}, too large for sums of products; "
                "standardise it, or take logarithms."
            )

    def __repr__(self) -> str:
        return f"Covariates({len(self.ids):,} × {len(self.names)}: {listing(self.names)})"

    @classmethod
    def of(cls, given: Any, ids: Vocabulary, side: str) -> Covariates | None:
        """The covariates of one side of a log, from what a caller passed.

        Args:
            given: Covariates, an array (ids, columns) in the vocabulary's order, or None.
            ids: The vocabulary of the log's users or items.
            side: "user" or "item", for messages and names of columns.

        Returns:
            Covariates of these ids, None where none were given.

        Raises:
            UnknownIdError: The covariates were made for other ids.
        """
        if given is None:
            return None
        if isinstance(given, Covariates):
            if given.ids != ids:
                raise UnknownIdError(
                    f"{side} covariates: made for other ids ({len(given.ids):,}) than the log's ({len(ids):,}); "
                    f"make them with ol.covariates(table, log.{side}s)."
                )
            return given
        if not isinstance(given, np.ndarray | list | tuple):
            raise InputError(
                f"{side} covariates: give an array or Covariates, got {type(given).__name__}; "
                f"a table becomes Covariates by ol.covariates(table, log.{side}s)."
            )
        values = _numbers(given, f"{side} covariates")
        if values.ndim != 2 or len(values) != len(ids):
            raise AlignmentError(
                f"{side} covariates: need one row for each of the log's {len(ids):,} {side}s, in the vocabulary's "
                f"order, got shape {values.shape}; give every {side} a row."
            )
        return cls(values=values, names=tuple(f"{side}_{c}" for c in range(values.shape[1])), ids=ids)

    @property
    def constant(self) -> tuple[str, ...]:
        """The names of columns that have the same value for every id."""
        return tuple(name for name, varies in zip(self.names, self._varies, strict=True) if not varies)

    @property
    def rank(self) -> int:
        """The number of linearly independent columns after centring."""
        X = self.values[:, self._varies]
        if not X.size:
            return 0
        # One scale, before and after centring: neither large numbers nor a far-off mean hide other columns.
        scaled = np.ldexp(X, -np.frexp(np.abs(X).max(axis=0))[1])
        centred = scaled - scaled.mean(axis=0)
        return int(np.linalg.matrix_rank(centred / np.abs(centred).max(axis=0)))

    def remarks(self, side: str) -> list[str]:
        """What was done to make them, and which columns are constant or redundant; `side` is "user" or "item"."""
        notes, rank = list(self.notes), self.rank
        if self.constant:
            notes.append(f"{side} columns that are constant carry no information: {listing(self.constant)}")
        if rank < len(self.names) - len(self.constant):
            notes.append(
                f"the {len(self.names)} {side} columns have rank {rank}: the penalty shares the weight among "
                "redundant ones"
            )
        return notes

    @property
    def _varies(self) -> Array:
        return (self.values != self.values[0]).any(axis=0)


def _numbers(values: Any, what: str) -> Floats:
    try:
        return np.asarray(values, np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"{what}: need an array of numbers, one row per id, got {type(values).__name__} ({error}); "
            "a table with text becomes Covariates by ol.covariates(table, ids)."
        ) from error
