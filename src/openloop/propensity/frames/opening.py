"""A log frame given to a propensity model: columns are chosen, ids and ratings checked by small queries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from inspect import signature
from typing import Any

import narwhals as nw
import numpy as np

from openloop.errors import DuplicateError, EmptyError, InputError, RatingError, did_you_mean, listing
from openloop.support.columns import PAIR, Column, choose, shared
from openloop.support.frames import absent, collected, flag, lazy, only_row, rows, times, too_wide

# What rows are joined by; no log has columns of these names.
USER, ITEM, RATING = "openloop_user", "openloop_item", "openloop_rating"
KEYS = {"user": USER, "item": ITEM, "rating": RATING}
LARGEST = float(np.finfo(np.float32).max)  # ratings are numbers of 32 bits, in memory as here
ERRORS: dict[str, tuple[type[InputError], str]] = {
    "user": (InputError, "no user id"),
    "item": (InputError, "no item id"),
    "wide_user": (InputError, "a user id that does not fit 64 signed bits"),
    "wide_item": (InputError, "an item id that does not fit 64 signed bits"),
    "rating": (RatingError, "a missing or infinite rating"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameOptions:
    """What a fit is told about a log that is a frame."""

    user: Column = None
    item: Column = None
    rating: Column = None
    population: tuple[int, int] | None = None
    distinct: bool = False

    @classmethod
    def of(cls, model: Any, given: Mapping[str, Any]) -> FrameOptions:
        """From the keywords of a model's fit."""
        own = [field.name for field in fields(cls)]
        for name in given:
            if name not in own:
                known = [*list(signature(model.fit).parameters)[:-1], *own]  # the last takes the keywords of frames
                raise TypeError(f"{type(model).__name__}.fit: no argument {name!r}.{did_you_mean(name, known)}")
        return cls(**given)

    @property
    def columns(self) -> dict[str, Column]:
        """The columns by role."""
        return {"user": self.user, "item": self.item, "rating": self.rating}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OpenedLog:
    """A frame on its engine, under the name that errors give it, and the column of each role."""

    name: str
    native: Any
    frame: Any
    columns: tuple[str, ...]
    chosen: Mapping[str, str]
    note: str = ""

    @classmethod
    def of(
        cls, who: str, native: Any, asked: Mapping[str, Column], known: Mapping[str, str], needed: Sequence[str]
    ) -> OpenedLog:
        """Columns are those asked for, those of `known` names that the frame has, or obvious ones."""
        frame = lazy(native)
        columns = tuple(frame.collect_schema().names())
        bare = cls(name=f"{who}: the log", native=native, frame=frame, columns=columns, chosen={})
        named = shared(bare, {role: known[role] for role in needed if role in known})
        chosen = choose(bare, named | {role: name for role, name in asked.items() if name is not None}, needed)
        found = cls(name=bare.name, native=native, frame=frame, columns=columns, chosen=chosen)
        found._check_types()
        return found

    @property
    def eager(self) -> bool:
        """Whether its rows are in memory, in an order."""
        return isinstance(nw.from_native(self.native), nw.DataFrame)

    def key(self, role: str) -> Any:
        """The ids, or ratings, that rows are joined by: 64-bit integers, text, or a rating as it is held in memory."""
        column, kind = nw.col(self.chosen[role]), self._types[role]
        if role == "rating":
            # The second cast rounds as Feedback does; adding 0 makes one zero of two.
            return (column.cast(nw.Float64()).cast(nw.Float32()).cast(nw.Float64()) + 0.0).alias(RATING)
        return column.cast(nw.Int64() if kind.is_integer() else nw.String()).alias(KEYS[role])

    def keys(self, roles: Sequence[str]) -> list[Any]:
        """Several of them."""
        return [self.key(role) for role in roles]

    @property
    def _types(self) -> dict[str, Any]:
        schema = self.frame.collect_schema()
        return {role: schema[column] for role, column in self.chosen.items()}

    def _check_types(self) -> None:
        for role, kind in self._types.items():
            text = kind in (nw.String, nw.Categorical, nw.Enum)
            number = kind.is_integer() if role != "rating" else kind.is_numeric() or kind == nw.Boolean
            if number or kind == nw.Unknown or (text and role != "rating"):  # a column of nulls alone is unknown
                continue
            if not rows(self.frame):  # pandas makes up the types of columns without values
                raise self._empty()
            error, noun, kinds = (RatingError, "ratings", "numbers") if role == "rating" else (
                InputError, "ids", "integers or text"
            )  # fmt: skip
            what = f"{self.name}: {role} column {self.chosen[role]!r}"
            raise error(f"{what}: {noun} must be {kinds}, not {kind}; cast the column.")

    def _empty(self) -> EmptyError:
        return EmptyError(f"{self.name} has no rows; propensities need at least one observed cell.")

    def check(self) -> int:
        """How many rows there are, once none of them lacks an id or a rating; one query."""
        wrong: dict[str, Any] = {}
        for role, column in self.chosen.items():
            value = nw.col(column)
            if role == "rating":
                number = value.cast(nw.Float64())
                wrong[role] = absent(number) | (number.abs() > LARGEST)
                continue
            wrong[role] = value.is_null()
            if (wide := too_wide(self.frame, column)) is not None:
                wrong[f"wide_{role}"] = wide
        flags = {"n": nw.lit(1.0)} | {f"n_{name}": flag(condition) for name, condition in wrong.items()}
        found = only_row(self.frame.select(**flags).select(*(nw.col(name).sum() for name in flags)))
        size = int(found["n"] or 0)
        if not size:
            raise self._empty()
        for name in wrong:
            if number := int(found[f"n_{name}"]):
                error, what = ERRORS[name]
                column = self.chosen[name.removeprefix("wide_")]
                raise error(f"{self.name}: {number:,} of {size:,} rows have {what} in column {column!r}; drop them.")
        return size

    def refuse_repeats(self) -> None:
        """Refuse pairs that are there more than once."""
        pairs = self.frame.select(*self.keys(PAIR))
        again = times(pairs, (USER, ITEM)).filter(nw.col("times") > 1).select(USER, ITEM)
        some = collected(again.head(1))
        if not len(some):
            return
        some = collected(again.sort(USER, ITEM).head(3))
        shown = listing(list(zip(some[USER].to_list(), some[ITEM].to_list(), strict=True)))
        what = f"{rows(again):,} (user, item) pairs are in it more than once"
        raise DuplicateError(f"{self.name}: {what}, such as {shown}; keep one of each.")
