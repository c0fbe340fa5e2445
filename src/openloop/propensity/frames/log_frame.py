"""`LogFrame`: a log that stays in its engine, and the counts of users, items and ratings that leave it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import narwhals as nw
import numpy as np
import numpy.typing as npt

from openloop.core.feedback import Floats, Vocabulary
from openloop.errors import InputError
from openloop.propensity.frames.frame_ids import FrameIds
from openloop.propensity.frames.lookups import Lookup
from openloop.propensity.frames.opening import ITEM, RATING, USER, FrameOptions, OpenedLog
from openloop.support.arguments import are_counts
from openloop.support.columns import PAIR
from openloop.support.frames import MAX_COLUMNS, collected, only_row, plain_ids, times

Ratings = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LogFrame:
    """What a fit asks a log frame for. `keyed` has the ids of its rows and, where it is needed, the rating.

    `seen` are the users and the items of the population, which stay in the engine; `grid` their ids in memory, where
    covariates were given for them.
    """

    opened: OpenedLog
    keyed: Any
    rows: int
    seen: tuple[FrameIds, FrameIds]
    grid: tuple[Vocabulary, Vocabulary] | None = None
    population: tuple[int, int] | None = None  # as it was given
    notes: tuple[str, ...] = ()

    @classmethod
    def of(cls, who: str, native: Any, asked: FrameOptions, needed: Iterable[str] = ()) -> LogFrame:
        """Opened, checked and counted: four queries, or three where `distinct` says that no pair is there twice."""
        opened = OpenedLog.of(who, native, asked.columns, {}, (*PAIR, *needed))
        if asked.population is not None and not are_counts(asked.population):
            raise InputError(f"{who}: population= must be (users, items), two whole numbers, got {asked.population!r}.")
        rows = opened.check()
        if not asked.distinct:
            opened.refuse_repeats()
        keyed = opened.frame.select(*opened.keys(list(opened.chosen)))
        seen = FrameIds.of(keyed, USER), FrameIds.of(keyed, ITEM)
        if asked.population is None:
            grid = f"{len(seen[0]):,} users × {len(seen[1]):,} items"
            note = f"the population was taken to be the {grid} in the log; pass population="
            return cls(opened=opened, keyed=keyed, rows=rows, seen=seen, notes=(note,))
        for found, given, noun in zip(seen, asked.population, ("users", "items"), strict=True):
            if given < len(found):
                raise InputError(
                    f"{who}: population= has {given:,} {noun}, the log {len(found):,}; give the size of the whole."
                )
        users, items = (found.among(int(n)) for found, n in zip(seen, asked.population, strict=True))
        return cls(opened=opened, keyed=keyed, rows=rows, seen=(users, items), population=asked.population)

    @property
    def users(self) -> FrameIds | Vocabulary:
        """The users of the population."""
        return self.seen[0] if self.grid is None else self.grid[0]

    @property
    def items(self) -> FrameIds | Vocabulary:
        """The items of the population."""
        return self.seen[1] if self.grid is None else self.grid[1]

    @property
    def n_users(self) -> int:
        """How many users the population has."""
        return len(self.users)

    @property
    def n_items(self) -> int:
        """How many items it has."""
        return len(self.items)

    def known(self, users: Vocabulary, items: Vocabulary) -> LogFrame:
        """The same log on a grid whose ids are known; others in the log are an error."""
        grid = (len(users), len(items))
        if self.population not in (None, grid):
            raise InputError(
                f"{self.opened.name}: population= is {self.population}, and covariates are of {grid} users and items; "
                "give those of the whole population, and leave population= out."
            )
        for key, ids in ((USER, users), (ITEM, items)):
            Lookup(key=key, of=ids).check(self.keyed, self.opened.name, "the covariates")
        return replace(self, grid=(users, items), notes=())

    def counts(self, key: str, ids: Vocabulary) -> Floats:
        """The rows of each of known ids, (ids,)."""
        return self._by_id(times(self.keyed, (key,)), key, ids, ["times"])[:, 0]

    def sums(self, users: Vocabulary, items: Vocabulary, Z: Floats) -> Floats:
        """Σ_i z_i over the rows of each user, (U, l)."""
        parts: list[Floats] = []
        for start in range(0, Z.shape[1], MAX_COLUMNS):
            names = {f"z{c}": Z[:, c] for c in range(start, min(start + MAX_COLUMNS, Z.shape[1]))}
            joined = Lookup(key=ITEM, of=items, columns=names).onto(self.keyed.select(USER, ITEM))
            summed = joined.select(USER, *names).group_by(USER).agg(*(nw.col(name).sum() for name in names))
            parts.append(self._by_id(summed, USER, users, list(names)))
        return np.hstack(parts)

    def _by_id(self, frame: Any, key: str, ids: Vocabulary, names: list[str]) -> Floats:
        table = collected(frame)
        found = np.zeros((len(ids), len(names)))
        at = ids.codes(plain_ids(table[key]))
        for c, name in enumerate(names):
            found[at, c] = table[name].cast(nw.Float64()).to_numpy()
        return found

    def rating_counts(self, most: int) -> tuple[Ratings, Floats]:
        """The distinct ratings and the rows of each; of `most` + 1 if there are more than `most`."""
        table = collected(times(self.keyed, (RATING,)).head(most + 1)).sort(RATING)
        return table[RATING].to_numpy().astype(np.float32), table["times"].cast(nw.Float64()).to_numpy()

    def few_ratings(self, most: int) -> Ratings:
        """The distinct ratings; of more than `most`, some that many with the least of all among them."""
        ratings = collected(self.keyed.select(RATING).unique().head(most + 1))[RATING].to_numpy()
        ends = self.rating_range() if len(ratings) > most else ()
        return np.append(ratings, ends).astype(np.float32)

    def rating_range(self) -> tuple[float, float]:
        """The least and the largest rating."""
        r = nw.col(RATING)
        found = only_row(self.keyed.select(r.min().alias("low"), r.max().alias("high")))
        return float(found["low"]), float(found["high"])
