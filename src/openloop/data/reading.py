"""`read`: a log, from a file or any dataframe, becomes Feedback, or Impressions where it has positions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from openloop.core.feedback import Array, Feedback, Ints, Vocabulary
from openloop.core.impressions import Impressions
from openloop.core.positives import only_positives
from openloop.data import values
from openloop.data.cells import Duplicates
from openloop.data.columns import PAIR, Column, InputTable, choose, choose_log, surely_ratings
from openloop.data.delimited import TextForm
from openloop.data.encoding import Unknown, coded, vocabulary
from openloop.data.events import Events, Mask
from openloop.data.formats import open_source
from openloop.data.impressions import ShownColumns, read_impressions
from openloop.errors import ColumnError, EmptyError, InputError, did_you_mean, quoted
from openloop.support.arguments import is_number
from openloop.support.fields import changed, fields_of

if TYPE_CHECKING:
    import polars as pl

NO_RATINGS = "no column of ratings was named or found, so each row counts as a positive; name one with rating="

_LARGEST = float(np.finfo(np.float32).max)  # of a rating

OF_FEEDBACK = ("rating", "positive", "weight", "duplicates", "uniform")

_CHECKED = {
    "rating": values.ratings,
    "propensity": values.propensities,
    "time": values.times,
    "weight": values.weights,
}


@overload
def read(source: Any, *, position: str | int, **options: Any) -> Impressions: ...
@overload
def read(
    source: Any, *, user: Column = None, item: Column = None, rating: Column = None, time: Column = None, **options: Any
) -> Feedback: ...
def read(
    source: Any,
    *,
    user: Column = None,
    item: Column = None,
    rating: Column = None,
    positive: float | None = None,
    propensity: Column = None,
    time: Column = None,
    weight: Column = None,
    users: Any = None,
    items: Any = None,
    like: Any = None,
    unknown: Unknown = "error",
    duplicates: Duplicates = "error",
    separator: str | None = None,
    header: bool | None = None,
    skip: int = 0,
    comment: str | None = None,
    uniform: bool = False,
    propensity_model: Any = None,
    user_features: Any = None,
    item_features: Any = None,
    min_item_rows: int = 0,
    position: Column = None,
    candidates: str = "all",
    **shown: Any,
) -> Feedback | Impressions:
    """Read a log of ratings, positives or impressions from a file or any dataframe.

    Files are CSV, TSV, `::`-separated text, Parquet or JSON lines, and `.gz` of these. Dataframes are of any engine
    that narwhals knows. A column is named, or given by its position from 0. `user`, `item` and `rating` are also found
    by obvious names (userId, movie_id, stars …) and, in a file without a header, by position: user, item, rating, time.
    Where the third of three columns looks like times, it is the time.

    Ids are integers, text or UUIDs (as text). A column of a delimited file with any id that is not a plain integer
    stays text, so "007" is not 7. Ratings may be booleans. Times are integers, floats, or dates and datetimes, which
    become microseconds since 1970 in UTC.

    A log without ratings has `.positives`, and each rating is 1: a row says that something was liked, and no row says
    that it was not. A log whose ratings are all the same, or all 4 or 5, has `.positives`, too.

    With `position=` the log becomes Impressions, one row for each item that was shown, and a pair may occur any number
    of times.

    Args:
        source: A path, or a dataframe of any engine.
        user: The column of users. For impressions `user=False` says that there is none.
        item: The column of items.
        rating: The column of ratings; `rating=False` says that every row is a positive.
        positive: For a rating column of counts or durations: rows below this number are left out, and each other row is
            a positive.
        propensity: The column of the probabilities with which rows were observed, or of π0 for impressions.
        time: The column of times.
        weight: The column of weights, which learners multiply a row's weight by.
        users: All users of the population where the log does not show everyone: ids, or n for the ids 0 … n-1.
        items: All items of the population, likewise.
        like: A Feedback or fitted model whose users and items are the population.
        unknown: What happens to rows with ids outside the population: "error", or "drop", which counts them in
            `.dropped`. Impressions drop whole requests.
        duplicates: What happens to a pair that occurs more than once: "error"; keep its "first" or "last" row (by time
            where there is one, else by order); take the "mean" of its ratings; or keep the last row with the "count" of
            its rows as `.weight`.
        separator: What separates the fields of delimited text; by default its first lines tell.
        header: Whether delimited text has a header; by default its first lines tell.
        skip: The number of lines to skip at the start of delimited text.
        comment: What lines begin with that are comments.
        uniform: Whether the log is a uniform sample of the population's cells.
        propensity_model: What made the column of p, where it was fitted: a fitted model, or its name.
        user_features: Covariates of the users, for propensities.
        item_features: Covariates of the items, likewise, and for the similarity of lists.
        min_item_rows: Items with fewer rows leave the population of an audit.
        position: The column of positions, from 1. It makes the log Impressions.
        candidates: For impressions, "all" items, or "shown": what a ranker would earn by reordering what was shown.
        **shown: Columns of impressions: `request` (the list; `request=False` says that there is none), `reward` (a
            click, or any number that is not negative), and what the logging policy did: `exposure` (a list of columns,
            the probability at each position), `prefix`, `slate`, `shuffled`, `pool` (the number of candidates) and
            `arms` (a list of columns, ranks under the arms of an experiment).

    Returns:
        Feedback, or Impressions where `position` is given. `.row` holds each cell's row in the input, so
            `.align(array)` brings an array in input order along. `.notes` say what was found or left out.

    Raises:
        ColumnError: A column is missing, or none could be found.
        FormatError: The file is empty, truncated or of another format.
        InputError: A value cannot be used. The message names column, row, rule and remedy.

    Examples:
        >>> import polars as pl
        >>> table = pl.DataFrame({"uid": ["ann", "bob", "ann"], "mid": [7, 7, 9], "stars": [5, 2, 4]})
        >>> log = ol.read(table, user="uid", item="mid", rating="stars")
        >>> log
        Feedback(3 of 2 users × 2 items)
        >>> log.users.ids.tolist()
        ['ann', 'bob']
        >>> clicks = pl.DataFrame({"uid": [1, 1, 2], "mid": [7, 9, 7], "pos": [1, 2, 1], "click": [0, 1, 1]})
        >>> ol.read(clicks, user="uid", item="mid", position="pos", reward="click", request=False)
        Impressions(3 of 2 items, no request ids of 2 users)
    """
    given = locals()
    request = ReadRequest(**fields_of(ReadRequest, given))
    _refuse_option("candidates", candidates, ("all", "shown"))
    of_shown = shown if candidates == "all" else {**shown, "candidates": candidates}
    if position is not None or of_shown:
        _refuse_mixture(position, of_shown, [name for name in changed(read, given) if name in OF_FEEDBACK])
    if position is None:
        if min_item_rows < 0:
            raise InputError(f"min_item_rows={min_item_rows}: give the least number of rows of an item, such as 30.")
        return replace(
            request.events(source).merged(duplicates), propensity_model=propensity_model, user_features=user_features,
            item_features=item_features, min_item_rows=min_item_rows,
        )  # fmt: skip
    columns = ShownColumns(position=position, item=item, user=user, propensity=propensity, time=time, **shown)
    table = open_source(source, columns.named, request.form)
    known: dict[str, Vocabulary | None] = dict(zip(PAIR, _known(users, items, like), strict=True))
    return replace(read_impressions(table, columns, known, unknown), candidates=candidates)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadRequest:
    """The arguments of `read` besides the source; `read` documents each."""

    user: Column = None
    item: Column = None
    rating: Column = None
    positive: float | None = None
    propensity: Column = None
    time: Column = None
    weight: Column = None
    users: Any = None
    items: Any = None
    like: Any = None
    unknown: Unknown = "error"
    duplicates: Duplicates = "error"
    separator: str | None = None
    header: bool | None = None
    skip: int = 0
    comment: str | None = None
    uniform: bool = False

    def __post_init__(self) -> None:
        _refuse_option("unknown", self.unknown, ("error", "drop"))
        _refuse_option("duplicates", self.duplicates, ("error", "first", "last", "mean", "count"))
        if self.positive is not None and not (is_number(self.positive) and abs(self.positive) <= _LARGEST):
            raise InputError(
                f"positive={quoted(self.positive)}: give the number from which a row is a positive, such as 30."
            )
        if self.positive is not None and (self.uniform or self.rating is False):
            raise InputError(
                f"positive={self.positive:g}: is for a log with a column of counts or durations, rating=; leave out "
                "uniform= and rating=False."
            )

    @property
    def columns(self) -> dict[str, Column]:
        """The columns that were named."""
        return {role: getattr(self, role) for role in ("user", "item", *_CHECKED)}

    @property
    def form(self) -> TextForm:
        """How delimited text is read."""
        return TextForm(**fields_of(TextForm, self))

    def events(self, source: Any) -> Events:
        """The rows of a log, checked and coded, before repeats are merged."""
        table = open_source(source, self.columns, self.form)
        chosen = choose(table, self.columns) if self.uniform else choose_log(table, self.columns)
        frame = table.fetch(list(chosen.values()))
        if frame.height == 0:
            raise EmptyError(f"{table.name}: no rows; an estimate needs at least one observed cell.")
        self._refuse_times(table, chosen, frame)
        known = _known(self.users, self.items, self.like)
        users, user = coded(table, frame[chosen["user"]], "user", known[0], self.unknown)
        items, item = coded(table, frame[chosen["item"]], "item", known[1], self.unknown)
        columns: dict[str, Array] = {"rating": np.broadcast_to(np.float32(1), (frame.height,))}
        for role, checked in _CHECKED.items():
            if role in chosen:
                columns[role] = checked(frame[chosen[role]], f"{table.name}: {role} column {quoted(chosen[role])}")
        kept, notes = self._positives(table, chosen, columns)
        low, high = (float(limit(columns["rating"])) for limit in (np.min, np.max))
        return Events(
            name=table.name, user=user, item=item, users=users, items=items, columns=columns, kept=kept,
            known=_both(user, item),
            uniform=self.uniform, positives=not self.uniform and only_positives(low, high), notes=notes,
        )  # fmt: skip

    def _positives(
        self, table: InputTable, chosen: dict[str, str], columns: dict[str, Array]
    ) -> tuple[Mask | None, tuple[str, ...]]:
        """Which rows are positives, where only some are, and what should be known; those become rated 1."""
        if "rating" not in chosen and self.positive is not None:
            raise ColumnError(f"{table.name}: positive={self.positive:g} needs a column; name it with rating=.")
        if self.positive is None:
            found = [table.remark, NO_RATINGS] if "rating" not in chosen and self.rating is None else []
            return None, tuple(note for note in found if note)
        kept = columns["rating"] >= self.positive
        columns["rating"] = np.broadcast_to(np.float32(1), kept.shape)
        below = f"{np.sum(~kept):,} of {len(kept):,} rows have {quoted(chosen['rating'])} below {self.positive:g}"
        return kept, (f"{below} and are left out; each of the others is a positive",)

    def _refuse_times(self, table: InputTable, chosen: dict[str, str], frame: pl.DataFrame) -> None:
        """Times are not silently read as ratings: a column that was found must not look like them."""
        column = chosen.get("rating")
        if self.rating is not None or column is None or surely_ratings(table, column):
            return
        if values.look_like_times(frame[column].head(1000)):
            raise ColumnError(
                f"{table.name}: column {quoted(column)} was taken for ratings but looks like times, such as "
                f"{quoted(frame[column][0])}; pass rating= with the column of ratings, or rating=False where every "
                f"row is a positive.{table.note}"
            )


def _known(users: Any, items: Any, like: Any) -> tuple[Vocabulary | None, Vocabulary | None]:
    if like is None:
        return vocabulary(users, "users"), vocabulary(items, "items")
    if users is not None or items is not None:
        raise InputError("like= sets both vocabularies; pass either like= or users= and items=.")
    if isinstance(like, Feedback):
        return like.users, like.items
    known = getattr(like, "users_", None), getattr(like, "items_", None)
    if not all(isinstance(ids, Vocabulary) for ids in known):
        msg = f"like= must be a Feedback or a fitted model, got {type(like).__name__}; pass users= and items= instead."
        raise InputError(msg)
    return known


def _both(user: Ints, item: Ints) -> Mask | None:
    """The rows whose ids are known; None where all are."""
    return None if user.min() >= 0 and item.min() >= 0 else (user >= 0) & (item >= 0)


def _refuse_mixture(position: Column, shown: Mapping[str, Any], feedback: Sequence[str]) -> None:
    """Keywords of impressions need a position, and keywords of Feedback alone have no meaning beside one."""
    known = [*(field.name for field in fields(ShownColumns)), "candidates"]
    if strange := [name for name in shown if name not in known]:
        raise InputError(f"read: {strange[0]}= is not a keyword.{did_you_mean(strange[0], known)}")
    if position is None and (alone := [name for name, value in shown.items() if value is not None]):
        raise InputError(f"read: {alone[0]}= is for logs with positions; name their column with position=.")
    if position is not None and feedback:
        raise InputError(f"read: {feedback[0]}= is for logs without positions; leave out either it or position=.")


def _refuse_option(name: str, value: str, known: tuple[str, ...]) -> None:
    if value not in known:
        raise InputError(f"{name}={quoted(value)} is not an option.{did_you_mean(str(value), known)}")
