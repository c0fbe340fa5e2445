"""`Impressions`: what was shown at which position of which request, and what came of it; sorted, coded, checked.

Impressions know nothing about files, dataframes, examination or rankers.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from openloop.core.feedback import Array, Floats, Ints, Vocabulary, check_propensities, frozen
from openloop.errors import AlignmentError, DuplicateError, EmptyError, InputError, RatingError

Int64s = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

PER_ROW = ("request", "position", "item", "reward", "propensity", "exposure", "prefix", "arms", "time", "row")
PER_REQUEST = ("user", "slate", "shuffled", "pool")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Impressions:
    """Rows sorted by (request, position): request n shows `item` a_nk at `position` k = 1 … and earns `reward` c_nk.

    By row: `propensity` is π0_k(a_k), the probability with which the logging policy showed this item at this position;
    `exposure` (rows, K) is π0_j(a_k) for every position j; `prefix` that of the whole list down to this row; `arms`
    (rows, A) the item's rank under each arm of an experiment, 0 where the arm does not rank it. By request: `user`,
    `slate` (the probability of the whole list), `shuffled` (the order was drawn at random), `pool` (how many candidates
    there were). `requests` is None where the log names none: each row then is a request of its own. `users` is None
    where the log names none: clusters are requests then. `row` is each row's position in the input.
    """

    request: Ints  # (n,) 0 … N-1, rising
    position: Ints  # (n,) from 1, rising within a request
    item: Ints  # (n,)
    reward: Floats  # (n,)
    items: Vocabulary
    requests: Vocabulary | None = None
    users: Vocabulary | None = None
    user: Ints | None = None  # (N,)
    propensity: Floats | None = None  # (n,)
    exposure: Floats | None = None  # (n, K)
    prefix: Floats | None = None  # (n,)
    slate: Floats | None = None  # (N,)
    shuffled: Bools | None = None  # (N,)
    pool: Ints | None = None  # (N,)
    arms: Ints | None = None  # (n, A)
    time: Array | None = None  # (n,)
    row: Int64s = field(default_factory=lambda: np.empty(0, np.int64))
    input_rows: int = 0
    dropped: int = 0

    def __post_init__(self) -> None:
        n = len(self.request)
        object.__setattr__(self, "row", self.row if len(self.row) else np.arange(n))
        object.__setattr__(self, "input_rows", self.input_rows or n)
        for names, size in ((PER_ROW, n), (PER_REQUEST, int(self.request[-1]) + 1)):
            for name in names:
                values = getattr(self, name)
                if values is None:
                    continue
                if len(values) != size:
                    msg = f"Impressions: {name} has {len(values):,} values where there must be {size:,}."
                    raise AlignmentError(msg)
                object.__setattr__(self, name, frozen(np.asarray(values)))
        self._check_order()
        self._check_values()

    def _check_order(self) -> None:
        request, position = self.request, self.position
        if int(position.min()) < 1:
            at = int(np.argmin(position))
            raise InputError(
                f"Impressions: positions count from 1, {self.where(at)} has {position[at]}; add 1 to each where yours "
                "count from 0."
            )
        step = np.diff(request)
        if request[0] != 0 or bool(np.any((step < 0) | (step > 1))):
            raise InputError("Impressions: rows must be sorted by request; use Impressions.from_arrays, which sorts.")
        falling = np.flatnonzero((step == 0) & (np.diff(position) <= 0))
        if len(falling):
            at = int(falling[0]) + 1
            if position[at] < position[at - 1]:
                raise InputError("Impressions: rows of a request must be sorted by position; use from_arrays.")
            raise DuplicateError(
                f"Impressions: {len(falling):,} times two items share one position of one request, first at "
                f"{self.where(at - 1)} and {self.where(at)}: position {position[at]}; keep one of them."
            )

    def _check_values(self) -> None:
        bad = np.flatnonzero(~np.isfinite(self.reward))
        if len(bad):
            raise RatingError(f"Impressions: {len(bad):,} rewards are not finite, first at {self.where(int(bad[0]))}.")
        for name in ("propensity", "prefix", "slate"):
            values = getattr(self, name)
            if values is not None:
                check_propensities(f"Impressions.{name}", values, "drop or repair those rows.")
        if self.exposure is not None and not bool(np.all((self.exposure >= 0) & (self.exposure <= 1))):
            raise InputError("Impressions: exposure must lie in [0, 1] at every position; check those columns.")

    @classmethod
    def from_arrays(
        cls, *, item: npt.ArrayLike, position: npt.ArrayLike, reward: npt.ArrayLike,
        request: npt.ArrayLike | None = None, items: Vocabulary | int | None = None, **columns: Any,
    ) -> Impressions:  # fmt: skip
        """Impressions from codes in any order, every column with one value per row.

        `request` are codes 0 … N-1, each of which occurs; without them each row is a request. `user`, `slate`,
        `shuffled` and `pool` must be the same in all rows of a request.
        """
        k = np.asarray(position)
        if len(k) == 0:
            raise EmptyError("Impressions: no rows; a value needs at least one item that was shown.")
        n = np.arange(len(k)) if request is None else np.asarray(request)
        order = np.lexsort((k, n)) if request is not None else np.arange(len(k))
        columns = {name: values for name, values in columns.items() if values is not None}
        given = {"item": item, "position": k, "reward": reward, "request": n} | columns
        sized = {name: np.asarray(values) for name, values in given.items() if name in (*PER_ROW, *PER_REQUEST)}
        for name, values in sized.items():
            if len(values) != len(k):
                msg = (
                    f"Impressions: {name} has {len(values):,} values, position has {len(k):,}; give one value per row."
                )
                raise AlignmentError(msg)
        rest = {name: value for name, value in columns.items() if name not in sized}
        by_row = {name: values[order] for name, values in sized.items()}
        first = np.flatnonzero(np.diff(by_row["request"], prepend=-1))  # (N,)
        for name in PER_REQUEST:
            if name in by_row:
                by_row[name] = _one_per_request(name, by_row[name], first, order)
        if request is not None and "requests" not in rest:
            rest["requests"] = Vocabulary.range(len(first))
        if "user" in by_row and "users" not in rest:
            rest["users"] = Vocabulary.range(int(by_row["user"].max()) + 1)
        known = items if isinstance(items, Vocabulary) else Vocabulary.range(items or int(by_row["item"].max()) + 1)
        return cls(**{"row": order, "input_rows": len(k)} | rest | _typed(by_row), items=known)

    def __len__(self) -> int:
        return len(self.request)

    def where(self, at: int) -> str:
        """The name of a row in messages: its position in the input, counted from 0."""
        return f"row {int(self.row[at]):,}"

    @property
    def n_requests(self) -> int:
        """N."""
        return int(self.request[-1]) + 1

    @property
    def n_items(self) -> int:
        """The items of the vocabulary."""
        return len(self.items)

    @property
    def depth(self) -> int:
        """K, the largest position."""
        return int(self.position.max())

    @property
    def request_ptr(self) -> Int64s:
        """Rows of request n are request_ptr[n] : request_ptr[n + 1]."""
        return np.searchsorted(self.request, np.arange(self.n_requests + 1)).astype(np.int64)

    @property
    def cluster(self) -> Ints:
        """The cluster of each request, (N,): its user, or itself where no users are logged."""
        return np.arange(self.n_requests, dtype=np.int32) if self.user is None else self.user

    @property
    def n_clusters(self) -> int:
        """The users, or the requests where no users are logged."""
        return self.n_requests if self.users is None else len(self.users)

    @property
    def fingerprint(self) -> str:
        """Which rows these are: what a fitted examination is checked against."""
        digest = hashlib.blake2b(f"{self.n_requests},{self.n_clusters},{self.n_items},".encode(), digest_size=16)
        for values in (self.request, self.position, self.item):
            digest.update(np.ascontiguousarray(values).data)
        return digest.hexdigest()


_TYPES: dict[str, Any] = dict.fromkeys(("request", "position", "item", "user", "pool", "arms"), np.int32)
_TYPES |= dict.fromkeys(("reward", "propensity", "exposure", "prefix", "slate"), np.float64) | {"shuffled": np.bool_}


def _typed(columns: dict[str, Array]) -> dict[str, Array]:
    return {name: values.astype(_TYPES.get(name, values.dtype), copy=False) for name, values in columns.items()}


def _one_per_request(name: str, values: Array, first: Int64s, order: Int64s) -> Array:
    """The value of each request, (N,), which its rows must share."""
    sizes = np.diff(np.append(first, len(values)))
    other = np.flatnonzero(values != np.repeat(values[first], sizes))
    if len(other):
        start = first[np.searchsorted(first, other[0], side="right") - 1]
        raise InputError(
            f"Impressions: {len(other):,} rows have another {name} than the first row of their request, as rows "
            f"{order[start]:,} and {order[other[0]]:,}: {values[start]} and {values[other[0]]}; a request has one {name}."
        )
    return values[first]
