"""`Feedback`: the observed cells of a users × items grid, sorted, coded and checked.

Feedback knows nothing about files, dataframes, propensity models or metrics.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from openloop.core.vocabulary import Array, Floats, Ints, Vocabulary, frozen
from openloop.errors import (
    AlignmentError,
    DuplicateError,
    EmptyError,
    InputError,
    PropensityError,
    RatingError,
    UnknownIdError,
    listing,
)
from openloop.support.wording import rows_at


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Feedback:
    """Observed cells of a users × items grid: sorted by (user, item), no pair twice, finite ratings.

    `ol.read` makes Feedback of files and dataframes, `Feedback.from_arrays` of codes in any order. `users` × `items` is
    the population, which may be larger than what was observed. Arrays are read-only.

    Args:
        user: The user's code of each row, (n,).
        item: The item's code of each row, (n,).
        rating: The rating of each row, (n,), as float32.
        users: The ids of all users of the population.
        items: The ids of all items of the population.
        propensity: The probability in (0, 1] with which each row's cell was observed, if the log has it.
        time: The time of each row, if the log has it.
        weight: What learners multiply a row's weight by, such as a number of repeats.
        row: The position of each row in the input; by default the rows are the input.
        input_rows: The number of rows of the input; by default that of this log.
        share: The probability with which the split that made this part kept an observed row. None means that it is
            unknown, as after a split by time.
        origin: The fingerprint of the log that this part was split from.
        split: How the log was split, the first split first: "row", "user", "leave-k-out", "time", or "cold", which left
            out cold rows.
        item_rows: How many rows each item had in the log that this part was split from, (I,). None means that this is
            the whole log.
        uniform: Whether the rows are a uniform sample of the population's cells. Such a sample may not be scored.
        positives: Whether each row only says that something was liked, as clicks do. Then no row says that it was not.
        dropped: The number of rows that reading left out.
        notes: How the log was read and split, in words.
        user_features: Covariates of the users, which models of propensities may use.
        item_features: Covariates of the items, likewise, and for the similarity of lists.
        min_item_rows: Items with fewer rows in the whole log leave the population of an audit.
        propensity_model: The model, or its name, that `propensity` was fitted by; None: it was logged.

    Raises:
        InputError: A column breaks a rule above. The message names the column, the rule and the remedy.

    Examples:
        >>> log = ol.Feedback.from_arrays(user=[1, 0, 1], item=[0, 2, 2], rating=[4, 5, 1], users=2, items=3)
        >>> log
        Feedback(3 of 2 users × 3 items)
        >>> log.rating.tolist()
        [5.0, 4.0, 1.0]
        >>> log.align([10.0, 20.0, 30.0]).tolist()
        [20.0, 10.0, 30.0]
    """

    user: Ints
    item: Ints
    rating: npt.NDArray[np.float32]
    users: Vocabulary
    items: Vocabulary
    propensity: Floats | None = None
    time: Array | None = None
    weight: Floats | None = None
    row: npt.NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    input_rows: int = 0
    share: Floats | None = field(default_factory=lambda: np.ones(1))
    origin: str | None = None
    split: tuple[str, ...] = ()
    item_rows: npt.NDArray[np.int64] | None = None
    uniform: bool = False
    positives: bool = False
    dropped: int = 0
    notes: tuple[str, ...] = ()
    user_features: Any = None
    item_features: Any = None
    min_item_rows: int = 0
    propensity_model: Any = None

    def __post_init__(self) -> None:
        n = len(self.user)
        row = self.row if len(self.row) else np.arange(n)
        share = None if self.share is None else np.broadcast_to(np.asarray(self.share, np.float64), (n,))
        columns: dict[str, Array | None] = {
            "user": _codes("user", self.user, self.n_users),
            "item": _codes("item", self.item, self.n_items),
            "rating": np.asarray(self.rating, np.float32),
            "propensity": None if self.propensity is None else np.asarray(self.propensity, np.float64),
            "time": None if self.time is None else np.asarray(self.time),
            "weight": None if self.weight is None else np.asarray(self.weight, np.float64),
            "row": np.asarray(row, np.int64),
            "share": share,
        }
        for name, values in columns.items():
            object.__setattr__(self, name, None if values is None else frozen(values))
        object.__setattr__(self, "input_rows", self.input_rows or n)
        self._check()

    def _check(self) -> None:
        n = len(self.user)
        if n == 0:
            raise _no_rows()
        for name in ("item", "rating", "propensity", "time", "weight", "row"):
            values = getattr(self, name)
            if values is not None and values.shape != (n,):
                raise _misaligned(name, f"shape {values.shape}", f"({n:,},)")
        self._check_order()
        self._check_values()

    def _check_order(self) -> None:
        u, i = self.user, self.item
        rising = (u[1:] > u[:-1]) | ((u[1:] == u[:-1]) & (i[1:] > i[:-1]))
        if bool(rising.all()):  # nearly always, and quicker than the cells are made
            return
        step = np.diff(self.cell)
        if bool(np.any(step < 0)):
            raise InputError("Feedback: rows must be sorted by (user, item); use Feedback.from_arrays, which sorts.")
        repeats = np.flatnonzero(step == 0)
        if len(repeats):
            pair = self.users.ids[self.user[repeats[0]]], self.items.ids[self.item[repeats[0]]]
            msg = f"Feedback: {len(repeats):,} (user, item) pairs occur twice, such as {pair}; keep one of each."
            raise DuplicateError(msg)

    def _check_values(self) -> None:
        bad = np.flatnonzero(~np.isfinite(self.rating))
        if len(bad):
            first = rows_at(self.row[bad[:1]].tolist())
            raise RatingError(f"Feedback: {len(bad):,} ratings are not finite, first at {first}; drop them.")
        if self.propensity is not None:
            check_propensities("Feedback.propensity", self.propensity, "drop or repair those rows.")
        if self.weight is not None and not bool(np.all(np.isfinite(self.weight) & (self.weight > 0))):
            raise InputError(f"Feedback: weight must be finite and positive, smallest is {self.weight.min()}.")
        if self.share is not None and not bool(np.all((self.share > 0) & (self.share <= 1))):
            raise InputError(f"Feedback: share must lie in (0, 1], got {self.share.min()} … {self.share.max()}.")

    @classmethod
    def from_arrays(
        cls,
        user: npt.ArrayLike,
        item: npt.ArrayLike,
        rating: npt.ArrayLike,
        *,
        users: Vocabulary | int | None = None,
        items: Vocabulary | int | None = None,
        **columns: Any,
    ) -> Feedback:
        """Feedback from codes in any order.

        Args:
            user: The user's code of each row.
            item: The item's code of each row.
            rating: The rating of each row.
            users: The users of the population, as a vocabulary or their number. By default the largest code tells.
            items: The items of the population, likewise.
            **columns: Other fields of Feedback; those with one value per row are sorted along.

        Returns:
            The rows sorted by (user, item); `row` has their positions in the input.
        """
        u, i, y = np.asarray(user), np.asarray(item), np.asarray(rating)
        by_row = {name: np.asarray(c) for name, c in columns.items() if c is not None and np.ndim(c) == 1}
        for name, c in {"item": i, "rating": y, **by_row}.items():
            if len(c) != len(u):
                raise _misaligned(name, f"{len(c):,} values", f"{len(u):,}")
        order = np.lexsort((i, u))
        ordered = {name: c[order] for name, c in by_row.items()}
        rest: dict[str, Any] = {"row": order, "input_rows": len(u)} | columns | ordered
        return cls(
            user=u[order], item=i[order], rating=y[order], users=_vocabulary(users, u), items=_vocabulary(items, i),
            **rest,
        )  # fmt: skip

    def __len__(self) -> int:
        return len(self.user)

    def __repr__(self) -> str:
        extra = [n for n in ("propensity", "time", "weight") if getattr(self, n) is not None]
        tail = f", with {', '.join(extra)}" if extra else ""
        tail += ", positives only" if self.positives else ""
        return f"Feedback({len(self):,} of {self.n_users:,} users × {self.n_items:,} items{tail})"

    @property
    def n_users(self) -> int:
        """The number of users in the population."""
        return len(self.users)

    @property
    def n_items(self) -> int:
        """The number of items in the population."""
        return len(self.items)

    @property
    def cell(self) -> npt.NDArray[np.int64]:
        """Each row's position in the flattened grid: user · n_items + item."""
        return self.user.astype(np.int64) * self.n_items + self.item

    @property
    def user_ptr(self) -> npt.NDArray[np.int64]:
        """Rows of user u are user_ptr[u] : user_ptr[u + 1]."""
        return np.searchsorted(self.user, np.arange(self.n_users + 1)).astype(np.int64)

    @property
    def rows_of_items(self) -> npt.NDArray[np.int64]:
        """The number of rows that each item has in the whole log, (I,)."""
        return np.bincount(self.item, minlength=self.n_items) if self.item_rows is None else self.item_rows

    @property
    def fingerprint(self) -> str:
        """A hash of the grid and its observed cells, which propensities are checked against."""
        return fingerprint_of((self.n_users, self.n_items), self.user, self.item)

    def align(self, values: npt.ArrayLike) -> Array:
        """Bring an array from the input's order into the order of this Feedback.

        Args:
            values: One value for each row of the input, in its order.

        Returns:
            The value of each row of this Feedback.

        Raises:
            AlignmentError: The array has another length than the input.
        """
        array = np.asarray(values)
        if array.ndim != 1 or len(array) != self.input_rows:
            raise AlignmentError(
                f"align: the input had {self.input_rows:,} rows, the array has shape {array.shape}; "
                "give one value for each row of the input, in its order."
            )
        return array[self.row]

    def take(self, keep: Array, **changes: Any) -> Feedback:
        """A part of the rows with all their columns.

        Args:
            keep: A mask of the rows, or their positions in rising order.
            **changes: Fields to replace in the part.

        Returns:
            The part; its population is that of the whole.
        """
        columns = {}
        for name in ("user", "item", "rating", "propensity", "time", "weight", "row", "share"):
            values = getattr(self, name)
            columns[name] = None if values is None else values[keep]
        return replace(self, **(columns | changes))


def fingerprint_of(shape: tuple[int, int], user: Ints, item: Ints) -> str:
    """A mark of sorted cells of a grid."""
    digest = hashlib.blake2b(f"{shape[0]},{shape[1]},".encode(), digest_size=16)
    digest.update(np.ascontiguousarray(user).data)
    digest.update(np.ascontiguousarray(item).data)
    return digest.hexdigest()


def check_feedback(caller: str, log: Any) -> None:
    """Refuse anything but a Feedback; `caller` takes it."""
    if not isinstance(log, Feedback):
        raise InputError(f"{caller}: takes a Feedback, got {type(log).__name__}; read the log with ol.read.")


def check_fitted(model: Any) -> None:
    """Refuse a model without `users_`, which every fit sets."""
    if not hasattr(model, "users_"):
        raise not_fitted(type(model).__name__)


def not_fitted(name: str) -> Exception:
    """The error of a model that was not fitted."""
    from sklearn.exceptions import NotFittedError

    return NotFittedError(f"{name}: not fitted; call fit(feedback) first.")


def distinct(values: Array) -> Array:
    """The distinct values, sorted; np.unique hashes integers, which is many times slower than a sort."""
    ordered = np.sort(values, axis=None)
    return ordered[np.concatenate([[True], ordered[1:] != ordered[:-1]])] if len(ordered) else ordered


LEAST = 1e-100  # a smaller propensity has a weight whose square is infinite


def check_propensities(name: str, values: Floats, remedy: str) -> None:
    """Refuse values outside (0, 1], saying how many and which."""
    bad = np.flatnonzero(~((values >= LEAST) & (values <= 1)))
    if len(bad):
        nothing = (values[bad] >= 0) & (values[bad] < LEAST)
        if nothing.all():
            what = f"are {f'below {LEAST:g}' if values[bad].any() else '0'}, so their weights are infinite"
        else:
            what = f"are outside (0, 1], as {listing([float(v) for v in values[bad[:3]]])}"
        raise PropensityError(
            f"{name}: {len(bad):,} of {len(values):,} values {what} (first at index {bad[0]:,}); {remedy}"
        )


def _codes(name: str, values: npt.ArrayLike, size: int) -> Ints:
    codes = np.asarray(values)
    if len(codes) and codes.dtype.kind not in "iu":
        msg = f"Feedback: {name} codes must be whole numbers, got {codes.dtype}; Vocabulary.codes(ids) makes them."
        raise InputError(msg)
    if len(codes) and (int(codes.min()) < 0 or int(codes.max()) >= size):
        raise UnknownIdError(f"Feedback: {name} codes must lie in 0 … {size - 1:,}, got {codes.min()} … {codes.max()}.")
    return codes.astype(np.int32, copy=False)


def _vocabulary(ids: Vocabulary | int | None, codes: Array) -> Vocabulary:
    if isinstance(ids, Vocabulary):
        return ids
    if len(codes) == 0 and ids is None:
        raise _no_rows()
    return Vocabulary.range(int(codes.max()) + 1 if ids is None else int(ids))


def _no_rows() -> EmptyError:
    return EmptyError("Feedback: no rows; an estimate needs at least one observed cell.")


def _misaligned(name: str, size: str, users: str) -> AlignmentError:
    return AlignmentError(f"Feedback: {name} has {size}, user has {users}; give one value per row.")
