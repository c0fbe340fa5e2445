"""`LevelSample`: how often each rating occurs in the population, from ratings of cells drawn at random."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from openloop.core.feedback import Array, Floats, Ints, frozen


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LevelSample:
    """What a uniform sample of `size` ratings tells about the population's ratings.

    Level r holds the ratings from `levels[r]` up to the next one. `user` and `level` are those of each rating drawn,
    `user` in the codes of the log's users; None where the sample does not name users of the log. `rows` is the number
    of rows of the log that propensities were fitted on with this sample. `leverage` is d log(cells of
    level r)/d log π_r: above 1 where a fixed number of cells is excluded.
    """

    levels: Floats  # (L,) rising
    shares: Floats  # (L,) π̂_r
    size: int  # n₀
    rows: float
    user: Ints | None = None  # (n₀,)
    level: npt.NDArray[np.int64] | None = None  # (n₀,)
    leverage: Floats | float = 1.0  # (L,)

    def __post_init__(self) -> None:
        object.__setattr__(self, "levels", frozen(np.asarray(self.levels, np.float64)))
        object.__setattr__(self, "shares", frozen(np.asarray(self.shares, np.float64)))

    def __len__(self) -> int:
        return len(self.levels)

    def grouped(self, most: int) -> LevelSample:
        """The same with neighbouring levels merged into at most `most` of about equal shares."""
        if len(self) <= most:
            return self
        middle = np.cumsum(self.shares) - self.shares / 2
        _, first, group = np.unique(
            (middle / self.shares.sum() * most).astype(int), return_index=True, return_inverse=True
        )
        return replace(
            self, levels=self.levels[first], shares=np.bincount(group, self.shares),
            level=None if self.level is None else group[self.level].astype(np.int64),
        )  # fmt: skip

    def of_one_user(self) -> LevelSample:
        """The same with all ratings drawn from one user, where it names users."""
        return self if self.user is None else replace(self, user=np.zeros_like(self.user))

    def codes(self, rating: Array) -> npt.NDArray[np.int64]:
        """The level of each rating."""
        return np.maximum(np.searchsorted(self.levels, rating, side="right") - 1, 0)

    def present(self, rating: Array) -> npt.NDArray[np.bool_]:
        """Which levels some of the ratings have, (L,)."""
        return np.bincount(self.codes(rating), minlength=len(self)) > 0

    def unseen(self, rating: Array) -> float:
        """The population's share of levels that none of the ratings has."""
        return float(self.shares[~self.present(rating)].sum())


def spread(shares: Floats, present: Array) -> Floats:
    """Shares by level (L,) over the levels that are `present` (L,): others' go to the nearest on both sides."""
    filled, levels = np.where(present, shares, 0.0), np.flatnonzero(present)
    for r in np.flatnonzero(~present):
        place = int(np.searchsorted(levels, r))
        near = levels[max(place - 1, 0) : place + 1]
        filled[near] += shares[r] / len(near)
    return filled
