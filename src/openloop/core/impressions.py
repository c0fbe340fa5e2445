"""`Impressions`: what was shown at which position of which request, and its reward; sorted and checked.

Impressions know nothing about files, dataframes, examination or rankers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from openloop.core.feedback import LEAST, Array, Feedback, Floats, Ints, Vocabulary, frozen
from openloop.core.impression_columns import (
    PER_REQUEST,
    PER_ROW,
    by_request,
    columns_of,
    fingerprint_of,
    rows_digest,
    rows_in_order,
    typed,
    vocabulary_of,
)
from openloop.core.vocabulary import Bools, Int64s
from openloop.errors import (
    AlignmentError,
    DuplicateError,
    EmptyError,
    InputError,
    PropensityError,
    RatingError,
    UndefinedError,
    UnknownIdError,
)
from openloop.support.wording import rows_at

# What the values of a column must be: a rule in words, its error, and whether each row keeps it.
RULES: tuple[tuple[str, str, type[InputError], Callable[[Array], Bools]], ...] = (
    ("reward", "finite and not negative", RatingError, lambda c: (c >= 0) & (c < np.inf)),
    (
        "exposure", "in [0, 1] at every position", PropensityError,
        lambda q: np.all((q >= 0) & (q <= 1), axis=1),
    ),
    *(
        (name, f"in (0, 1], and {LEAST:g} at least", PropensityError, lambda p: (p >= LEAST) & (p <= 1))
        for name in ("propensity", "prefix", "slate")
    ),
    ("arms", "ranks from 1, or 0 for none", InputError, lambda ranks: np.all(ranks >= 0, axis=1)),
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Impressions:
    """What was shown at which position of which request, and the reward it earned; sorted by (request, position).

    `ol.read(..., position=)` makes Impressions of files and dataframes, `Impressions.from_arrays` of codes in any
    order. Request n shows `item` a_nk at `position` k and earns `reward` c_nk. N is the number of requests, K the
    largest position.

    Args:
        request: The request's code of each row, 0 … N-1, (n,).
        position: The position of each row, from 1, rising within a request, (n,).
        item: The item's code of each row, (n,).
        reward: A click, an order, minutes: finite and not negative, (n,). What was not examined earns 0.
        items: The ids of all items.
        requests: The ids of the requests. None means that the log names none, and each row is a request.
        users: The ids of the users. None means that the log names none, and errors are over requests.
        user: The user's code of each request, (N,).
        propensity: π0_k(a_k), the probability that the logging policy showed this item at this position, (n,).
        exposure: π0_j(a_k) for every position j, (n, K); it gives the propensity where that is missing.
        prefix: The probability of the list from the top down to this row, (n,).
        slate: The probability of the whole list of each request, (N,); `prefix` gives it where it is missing.
        shuffled: Whether the order of each request was drawn at random, (N,).
        pool: The number of candidates of each request, (N,).
        arms: The rank of each row's item under each arm of an experiment, (n, A); 0 means that the arm does not rank
            it.
        time: The time of each row.
        row: The position of each row in the input; by default the rows are the input.
        input_rows: The number of rows of the input; by default that of these rows.
        candidates: "all" items, or "shown": whether rankers reorder what was shown.
        dropped: The number of rows that reading left out.
        positions: The number of positions K; the largest position of a row if that is more.

    Raises:
        InputError: A column breaks a rule above. The message names the column, the rule and the first row that breaks
            it.

    Examples:
        >>> shown = ol.Impressions.from_arrays(
        ...     request=[0, 0, 1], position=[1, 2, 1], item=[0, 1, 1], reward=[0, 1, 0], user=[0, 0, 1]
        ... )
        >>> shown
        Impressions(3 of 2 items, 2 requests of 2 users)
        >>> shown.depth, shown.n_requests
        (2, 2)
        >>> shown.to_feedback(np.array([1.0, 0.5])).weight.tolist()
        [2.0]
    """

    request: Ints
    position: Ints
    item: Ints
    reward: Floats
    items: Vocabulary
    requests: Vocabulary | None = None
    users: Vocabulary | None = None
    user: Ints | None = None
    propensity: Floats | None = None
    exposure: Floats | None = None
    prefix: Floats | None = None
    slate: Floats | None = None
    shuffled: Bools | None = None
    pool: Ints | None = None
    arms: Ints | None = None
    time: Array | None = None
    row: Array = field(default_factory=lambda: np.empty(0, np.int32))
    input_rows: int = 0
    candidates: str = "all"
    dropped: int = 0
    positions: int = 0

    def __post_init__(self) -> None:
        n = len(self.request)
        if n == 0:
            raise EmptyError("Impressions: no rows; a value needs at least one item that was shown.")
        self._set("row", self.row if len(self.row) else np.arange(n, dtype=np.int32 if n < 2**31 else np.int64))
        object.__setattr__(self, "input_rows", self.input_rows or n)
        for names, size in ((PER_ROW, n), (PER_REQUEST, int(self.request[-1]) + 1)):
            for name in names:
                if (values := getattr(self, name)) is not None:
                    self._set(name, typed(name, values, size))
        self._check_order()
        self._check_codes()
        # What follows from other columns: π0_k(a_k) is one of π0_j(a_k), and the last prefix is the slate.
        if self.exposure is not None and self.propensity is None:
            self._set("propensity", self._exposure_at_position())
        if self.prefix is not None and self.slate is None and self.requests is not None:
            self._set("slate", self.prefix[self.request_ptr[1:] - 1])
        self._check_values()

    def _set(self, name: str, values: Array) -> None:
        object.__setattr__(self, name, frozen(values))

    def _check_order(self) -> None:
        request, position = self.request, self.position
        if int(position.min()) < 1:
            row = int(np.argmin(position))
            raise InputError(
                f"Impressions: positions count from 1, {self.where(row)} has {position[row]}; add 1 to each if yours "
                "count from 0."
            )
        step, is_same = np.diff(request), np.diff(request) == 0
        if request[0] != 0 or bool(np.any((step < 0) | (step > 1))):
            raise InputError(
                "Impressions: rows must be sorted by request, whose codes are 0 … N-1; use Impressions.from_arrays, "
                "which sorts."
            )
        falling = is_same & (np.diff(position) < 0)
        if falling.any():
            raise InputError("Impressions: rows of a request must be sorted by position; use from_arrays.")
        shared = np.flatnonzero(is_same & (np.diff(position) == 0))
        if len(shared):
            row = int(shared[0]) + 1
            raise DuplicateError(
                f"Impressions: {len(shared):,} times two items share one position of one request, first at "
                f"{self.where(row - 1, row)}: position {position[row]}; keep one of them."
            )

    def _check_codes(self) -> None:
        for name, codes, vocabulary in (("item", self.item, self.items), ("user", self.user, self.users)):
            size = 0 if vocabulary is None else len(vocabulary)
            if codes is not None and (int(codes.min()) < 0 or int(codes.max()) >= size):
                msg = f"Impressions: {name} codes must lie in 0 … {size - 1:,}, got {codes.min()} … {codes.max()}."
                raise UnknownIdError(msg)
        if self.requests is not None and len(self.requests) != self.n_requests:
            msg = f"Impressions: {len(self.requests):,} request ids for {self.n_requests:,} requests; give each one."
            raise AlignmentError(msg)
        if self.exposure is not None and self.exposure.shape[1:] != (self.depth,):
            raise AlignmentError(
                f"Impressions: exposure has shape {self.exposure.shape}; it needs a column for each position "
                f"1 … {self.depth}."
            )
        if self.arms is not None and self.arms.ndim != 2:
            raise AlignmentError(f"Impressions: arms has shape {self.arms.shape}; it needs a column for each arm.")

    def _exposure_at_position(self) -> Array:
        """π0_k(a_k) at the row's own position, from the exposure."""
        return np.take_along_axis(np.asarray(self.exposure), self.position[:, None] - 1, axis=1)[:, 0]

    def _check_values(self) -> None:
        for name, rule, error, holds in RULES:
            if (values := getattr(self, name)) is not None:
                self._refuse(name, ~holds(values), rule, error)
        if self.exposure is not None and self.propensity is not None:
            differs = ~np.isclose(self._exposure_at_position(), self.propensity, rtol=1e-6, atol=0)
            self._refuse("propensity", differs, "the exposure at the row's own position", PropensityError)
        if self.pool is not None:
            shallow = self.pool < self.position[self.request_ptr[1:] - 1]
            self._refuse("pool", shallow, "at least the positions that the request fills", InputError)

    def _refuse(self, name: str, broken: Bools, rule: str, error: type[InputError]) -> None:
        """Raise `error` if any value is broken, with the first one and its row in the input."""
        places = np.flatnonzero(broken)
        if len(places):
            row = int(places[0]) if name in PER_ROW else int(self.request_ptr[places[0]])
            raise error(
                f"Impressions: {name} must be {rule}; {len(places):,} of {len(broken):,} are not, first "
                f"{getattr(self, name)[places[0]]} at {self.where(row)}; drop or repair those rows."
            )

    @classmethod
    def from_arrays(
        cls, *, item: npt.ArrayLike, position: npt.ArrayLike, reward: npt.ArrayLike,
        request: npt.ArrayLike | None = None, items: Vocabulary | int | None = None, **columns: Any,
    ) -> Impressions:  # fmt: skip
        """Impressions from codes in any order, every column with one value per row.

        Args:
            item: The item's code of each row.
            position: The position of each row, from 1.
            reward: The reward of each row.
            request: The request's code of each row, 0 … N-1; each code occurs. Without it each row is a request.
            items: The vocabulary of items, or their number. By default the codes are the ids.
            **columns: Other fields of Impressions. `user`, `slate`, `shuffled` and `pool` must be the same in all rows
                of a request; `users` and `requests` are vocabularies.

        Returns:
            The rows sorted by (request, position).
        """
        n = len(np.asarray(position))
        request_of_row = np.arange(n, dtype=np.int32) if request is None else request
        values = columns | {"request": request_of_row, "position": position, "item": item, "reward": reward}
        fields: dict[str, Any] = columns_of(values, n)
        order = rows_in_order(fields["request"], fields["position"])
        if order is not None:
            fields = {"row": order, **{name: values[order] for name, values in fields.items()}}
        fields |= by_request(fields)
        rest: dict[str, Any] = {"input_rows": n, **columns, "items": vocabulary_of(items, fields["item"])}
        if "user" in fields:
            rest["users"] = vocabulary_of(columns.get("users"), fields["user"])
        if request is not None:
            rest["requests"] = vocabulary_of(columns.get("requests"), fields["request"])
        return cls(**(rest | fields))

    def __len__(self) -> int:
        return len(self.request)

    def __repr__(self) -> str:
        names = ("propensity", "exposure", "prefix", "slate", "shuffled", "pool", "arms", "time")
        extra = ", ".join(name for name in names if getattr(self, name) is not None)
        requests = "no request ids" if self.requests is None else f"{self.n_requests:,} requests"
        users = ", no user ids" if self.users is None else f" of {len(self.users):,} users"
        tail = f", with {extra}" if extra else ""
        return f"Impressions({len(self):,} of {self.n_items:,} items, {requests}{users}{tail})"

    def where(self, *rows: int) -> str:
        """These `rows` as messages name them: by their numbers in the input."""
        return rows_at(self.row[list(rows)].tolist())

    @property
    def n_requests(self) -> int:
        """N, the number of requests."""
        return int(self.request[-1]) + 1

    @property
    def n_items(self) -> int:
        """The number of items in the vocabulary."""
        return len(self.items)

    @property
    def depth(self) -> int:
        """K, the number of positions."""
        return max(self.positions, int(self.position.max()))

    @property
    def request_ptr(self) -> Int64s:
        """Rows of request n are request_ptr[n] : request_ptr[n + 1]."""
        return np.flatnonzero(np.diff(self.request, prepend=-1, append=self.n_requests))

    @property
    def whole(self) -> bool:
        """Whether every request has rows from position 1 on without a gap. Then what is above each row is known."""
        return not bool(self.gapped.any())

    @property
    def gapped(self) -> Bools:
        """Which requests lack a row above another one, (N,)."""
        expected = np.arange(1, len(self) + 1) - self.request_ptr[:-1][self.request]
        return np.bincount(self.request, self.position != expected) > 0

    @property
    def lengths(self) -> Ints:
        """K_n, the last position of each request, (N,); K where the log names no requests."""
        if self.requests is None:
            return np.full(self.n_requests, self.depth, np.int32)
        return self.position[self.request_ptr[1:] - 1]

    @property
    def cluster(self) -> Ints:
        """The cluster of each request, (N,): its user, or the request itself where no users are logged."""
        return np.arange(self.n_requests, dtype=np.int32) if self.user is None else self.user

    @property
    def n_clusters(self) -> int:
        """The number of users, or of requests where no users are logged."""
        return self.n_requests if self.users is None else len(self.users)

    @property
    def fingerprint(self) -> str:
        """A hash of the rows and their rewards in any order, which a fitted examination is checked against."""
        digest = rows_digest(self.cluster[self.request], self.position, self.item, self.reward)
        return fingerprint_of(self.n_requests, self.n_clusters, self.n_items, digest)

    def to_feedback(self, exam: Any) -> Feedback:
        """The pairs that earned something, as positives, each with weight Σ c·θ_max/θ_k over its rows.

        A click at a low position also counts for clicks that were lost because fewer users looked there. A learner that
        takes weights then learns what attracts, not what was placed high. Row and time are those of the pair's first
        rewarded row.

        Args:
            exam: A fitted examination, or θ (K,) itself.

        Returns:
            Feedback with `positives` and `weight`.

        Raises:
            UndefinedError: The log has no users, so it has no pairs.
            EmptyError: No row has a reward.
        """
        if self.user is None or self.users is None:
            raise UndefinedError("to_feedback: this log has no users, so it has no pairs; read it with user=.")
        theta = np.asarray(getattr(exam, "theta_", exam), np.float64)
        if theta.ndim != 1 or len(theta) < self.depth or not np.all(np.isfinite(theta) & (theta > 0)):
            raise InputError(
                f"to_feedback: θ must be a positive number for each position 1 … {self.depth}, got {theta}; "
                "fit the examination on a log of this depth."
            )
        rows = np.flatnonzero(self.reward > 0)
        if len(rows) == 0:
            raise EmptyError("to_feedback: no row has a reward, so there are no positives; check the reward column.")
        cell = self.user[self.request[rows]].astype(np.int64) * self.n_items + self.item[rows]
        order = np.argsort(cell, kind="stable")
        rows, cell = rows[order], cell[order]
        first = np.flatnonzero(np.diff(cell, prepend=-1))
        weight = np.add.reduceat(self.reward[rows] * theta.max() / theta[self.position[rows] - 1], first)
        rows = rows[first]
        return Feedback(
            user=self.user[self.request[rows]], item=self.item[rows], rating=np.ones(len(rows), np.float32),
            users=self.users, items=self.items, weight=weight, positives=True,
            time=None if self.time is None else self.time[rows], row=self.row[rows].astype(np.int64),
            input_rows=self.input_rows, dropped=self.dropped,
        )  # fmt: skip
