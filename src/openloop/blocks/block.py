"""`Block`: all rows of the users of some buckets, beside what models say of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt
import polars as pl

from openloop.core.vocabulary import Array, Bools, Floats, Int64s, Ints


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Outcome:
    """One model's answer for each row: a prediction, or how many candidates rank above it and tie."""

    prediction: Floats | None = None
    above: Int64s | None = None
    tied: Int64s | None = None

    def take(self, rows: Array | slice) -> Outcome:
        """The rows that a mask keeps, or those at some places."""
        columns = {name: getattr(self, name) for name in ("prediction", "above", "tied")}
        return Outcome(**{name: None if values is None else values[rows] for name, values in columns.items()})

    @classmethod
    def joined(cls, parts: Sequence[Outcome]) -> Outcome:
        """Those of several blocks."""
        names = [name for name in ("prediction", "above", "tied") if getattr(parts[0], name) is not None]
        return cls(**{name: np.concatenate([getattr(part, name) for part in parts]) for name in names})


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Pairs:
    """Pairs of a block's users with items, by user and item, and numbers of them by name."""

    user: Ints  # (m,) places among the block's users
    item: Ints  # (m,)
    numbers: Mapping[str, Floats] = field(default_factory=dict[str, Floats])  # (m,) each

    def __len__(self) -> int:
        return len(self.user)

    def start(self, n_users: int) -> Int64s:
        """Pairs of user u are start[u] : start[u + 1]."""
        return np.searchsorted(self.user, np.arange(n_users + 1)).astype(np.int64)

    def cell(self, n_items: int) -> Int64s:
        """The place of each pair in the flattened grid of the block."""
        return self.user.astype(np.int64) * n_items + self.item

    def take(self, rows: Array) -> Pairs:
        """The pairs that a mask keeps."""
        return Pairs(user=self.user[rows], item=self.item[rows], numbers={k: v[rows] for k, v in self.numbers.items()})

    @property
    def frame(self) -> pl.DataFrame:
        """The pairs as they are held or spilled."""
        return pl.DataFrame({"user": self.user, "item": self.item} | dict(self.numbers))

    @classmethod
    def of_frame(cls, frame: pl.DataFrame) -> Pairs:
        """The pairs of such a frame."""
        columns = {name: frame[name].to_numpy() for name in frame.columns}
        return cls(user=columns.pop("user"), item=columns.pop("item"), numbers=columns)


@dataclass(frozen=True, kw_only=True, eq=False)
class Block:
    """All rows of the users of some buckets: by bucket, user and item.

    `columns` are what else the log has of each row, `excluded` the pairs that leave the ranking and are not scored,
    `tables` the models' tables, whose items are codes of the population.
    """

    users: Ints  # (u,) codes of the population, rising within a bucket
    user_start: Int64s  # (b + 1,) users of a bucket are user_start[b] : user_start[b + 1]
    rows: Pairs
    rating: npt.NDArray[np.float32]  # (n,)
    columns: Mapping[str, Array] = field(default_factory=dict[str, Array])
    excluded: Pairs
    outcomes: Mapping[str, Outcome] = field(default_factory=dict[str, Outcome])
    tables: Mapping[str, Pairs] = field(default_factory=dict[str, Pairs])

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def n_users(self) -> int:
        """The number of users, of whom some may have no row."""
        return len(self.users)

    @property
    def user(self) -> Ints:
        """The place of each row's user."""
        return self.rows.user

    @property
    def item(self) -> Ints:
        """The item of each row."""
        return self.rows.item

    @cached_property
    def user_ptr(self) -> Int64s:
        """Rows of user u are user_ptr[u] : user_ptr[u + 1]."""
        return self.rows.start(self.n_users)

    @cached_property
    def excluded_ptr(self) -> Int64s:
        """Excluded pairs of user u are excluded_ptr[u] : excluded_ptr[u + 1]."""
        return self.excluded.start(self.n_users)

    @cached_property
    def bucket(self) -> Int64s:
        """The bucket of each row, counted from the first of the block."""
        return np.searchsorted(self.user_start, self.user, side="right") - 1

    @property
    def n_buckets(self) -> int:
        """The number of buckets."""
        return len(self.user_start) - 1

    def by_bucket(self, values: Floats, rows: Array | None = None) -> Floats:
        """Σ of a column over the rows of each bucket, (b,); `rows` are the places of its values, None: all."""
        bucket = self.bucket if rows is None else self.bucket[rows]
        return np.bincount(bucket, values, minlength=self.n_buckets).astype(np.float64)

    def candidates(self, n_items: int, *, excluding: bool) -> Floats:
        """|C_u| of each user; only rankings lose what is excluded."""
        cells = np.full(self.n_users, float(n_items))
        return cells - np.diff(self.excluded_ptr) if excluding else cells

    def take(self, keep: Bools) -> Block:
        """The block with some of its rows."""
        return replace(
            self,
            rows=self.rows.take(keep),
            rating=self.rating[keep],
            columns={name: values[keep] for name, values in self.columns.items()},
            outcomes={name: outcome.take(keep) for name, outcome in self.outcomes.items()},
        )

    # -- held or spilled -------------------------------------------------------------------------------------

    def frames(self) -> dict[str, pl.DataFrame]:
        """The block as frames by name, which `of_frames` reads."""
        answers = {
            f"{field}:{model}": values
            for model, outcome in self.outcomes.items()
            for field in ("prediction", "above", "tied")
            if (values := getattr(outcome, field)) is not None
        }
        return {
            "users": pl.DataFrame({"user": self.users}),
            "buckets": pl.DataFrame({"start": self.user_start}),
            "rows": pl.DataFrame({"user": self.user, "item": self.item, "rating": self.rating}),
            "columns": pl.DataFrame(dict(self.columns)),
            "answers": pl.DataFrame(answers),
            "excluded": self.excluded.frame,
            **{f"table:{model}": pairs.frame for model, pairs in self.tables.items()},
        }

    @classmethod
    def of_frames(cls, frames: Mapping[str, pl.DataFrame]) -> Block:
        """The block of such frames."""
        rows, answers = frames["rows"], frames["answers"]
        outcomes: dict[str, dict[str, Array]] = {}
        for name in answers.columns:
            kind, _, model = name.partition(":")
            outcomes.setdefault(model, {})[kind] = answers[name].to_numpy()
        return cls(
            users=frames["users"]["user"].to_numpy(),
            user_start=frames["buckets"]["start"].to_numpy(),
            rows=Pairs(user=rows["user"].to_numpy(), item=rows["item"].to_numpy()),
            rating=rows["rating"].to_numpy(),
            columns={name: frames["columns"][name].to_numpy() for name in frames["columns"].columns},
            excluded=Pairs.of_frame(frames["excluded"]),
            outcomes={model: Outcome(**found) for model, found in outcomes.items()},
            tables={name[6:]: Pairs.of_frame(frame) for name, frame in frames.items() if name.startswith("table:")},
        )
