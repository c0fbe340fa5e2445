"""`Vocabulary`: the ids of one side of the grid and their codes; with the array types that nouns are made of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from openloop.errors import EmptyError, InputError, UnknownIdError, listing

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Array = npt.NDArray[Any]

MAX_SPAN = 8  # ids may lie so many times wider than they are many, and still be looked up in a table


@dataclass(frozen=True, slots=True, eq=False)
class Vocabulary:
    """The ids of one side of the grid: code c means `ids[c]`.

    Args:
        ids: Integers or strings, sorted and distinct; `Vocabulary.of` sorts any list of ids.

    Raises:
        EmptyError: There are no ids.
        InputError: The ids are not sorted, or not distinct.

    Examples:
        >>> items = ol.Vocabulary.of(["tea", "milk", "tea", "bread"])
        >>> items.ids.tolist()
        ['bread', 'milk', 'tea']
        >>> items.codes(["tea", "bread"]).tolist()
        [2, 0]
        >>> items.find(["tea", "salt"]).tolist()
        [2, -1]
    """

    ids: Array

    def __post_init__(self) -> None:
        ids = np.asarray(self.ids)
        if ids.dtype.kind not in "iOU":
            ids = ids.astype(np.int64) if ids.dtype.kind in "ub" else ids.astype(object)
        if ids.ndim != 1 or len(ids) == 0:
            msg = f"Vocabulary: ids must be a non-empty list, got shape {ids.shape}; give all ids of the grid."
            raise EmptyError(msg)
        if len(ids) > 1 and not bool(np.all(ids[:-1] < ids[1:])):
            raise InputError("Vocabulary: ids must be sorted and distinct; use Vocabulary.of(ids).")
        object.__setattr__(self, "ids", frozen(ids))

    @classmethod
    def of(cls, ids: npt.ArrayLike) -> Vocabulary:
        """The vocabulary of any list of ids: sorted, each once.

        Args:
            ids: Integers or strings in any order, with or without repeats.

        Returns:
            The vocabulary of the distinct ids.
        """
        array = np.asarray(ids)
        return cls(np.unique(array.astype(object) if array.dtype.kind == "U" else array))

    @classmethod
    def range(cls, n: int) -> Vocabulary:
        """The vocabulary of the ids 0 … `n` - 1."""
        return cls(np.arange(n))

    def __len__(self) -> int:
        return len(self.ids)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Vocabulary):
            return NotImplemented
        return self is other or bool(np.array_equal(self.ids, other.ids))

    def __hash__(self) -> int:
        return hash((len(self.ids), str(self.ids[0]), str(self.ids[-1])))

    def find(self, values: npt.ArrayLike) -> Ints:
        """The code of each value, -1 for values that the vocabulary does not have.

        Args:
            values: Ids of the vocabulary's type; an integer never matches a string.

        Returns:
            An int32 array of the shape of `values`.
        """
        sought = np.asarray(values)
        if (sought.dtype.kind in "iub") != (self.ids.dtype.kind == "i"):
            return np.full(sought.shape, -1, np.int32)
        if self.ids.dtype.kind == "i" and sought.size > len(self.ids) and self._span <= MAX_SPAN * len(self.ids):
            return self.looked_up(sought)
        place = np.minimum(np.searchsorted(self.ids, sought), len(self.ids) - 1)
        return np.where(self.ids[place] == sought, place, -1).astype(np.int32)

    @property
    def _span(self) -> int:
        return int(self.ids[-1]) - int(self.ids[0]) + 1

    def looked_up(self, wanted: Array) -> Ints:
        """As `find` for integers, by a table over the range of ids: faster where ids are dense.

        Args:
            wanted: The integers to look up.

        Returns:
            The code of each, -1 for integers that are not ids.
        """
        low, high = self.ids[0], self.ids[-1]
        code = np.full(self._span + 1, -1, np.int32)  # the last place is for what lies outside
        code[self.ids - low] = np.arange(len(self.ids))
        inside = (wanted >= low) & (wanted <= high)
        return code[np.where(inside, wanted.astype(np.int64, copy=False) - low, self._span)]

    def codes(self, values: npt.ArrayLike, what: str = "id") -> Ints:
        """The code of each value; an unknown value is an error.

        Args:
            values: Ids of the vocabulary's type.
            what: What the ids are called in the error message, such as "user".

        Returns:
            An int32 array of codes.

        Raises:
            UnknownIdError: A value is not in the vocabulary.
        """
        codes = self.find(values)
        unknown = np.unique(np.asarray(values)[codes < 0])
        if len(unknown):
            raise UnknownIdError(
                f"{what}: {len(unknown):,} unknown: {listing(unknown.tolist())}; "
                f"ids here are {self.ids.dtype.name} like {self.ids[0]!r}; map or drop them first."
            )
        return codes


def frozen(values: Array) -> Array:
    """A read-only view."""
    view = values.view()
    view.flags.writeable = False
    return view
