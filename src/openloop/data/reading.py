"""`read`: a log, from a file or any dataframe, becomes Feedback, or Impressions where it has positions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, overload

import numpy as np

from openloop.core.feedback import Array, Feedback, Ints, Vocabulary
from openloop.core.impressions import Impressions
from openloop.data import values
from openloop.data.cells import (
    Duplicates,
    Int64s,
    first_of_each,
    last_of_each,
    mean_of_each,
    repeated,
    sort_cells,
)
from openloop.data.columns import PAIR, Column, choose, choose_log
from openloop.data.encoding import Unknown, coded, vocabulary
from openloop.data.formats import open_source
from openloop.data.impressions import ShownColumns, read_impressions
from openloop.data.values import row_list
from openloop.errors import DuplicateError, EmptyError, InputError, did_you_mean

BEST = 4.0, 5.0  # of five stars: a log that has no others was filtered

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
    uniform: bool = False,
    position: Column = None,
    **shown: Any,
) -> Feedback | Impressions:
    """Feedback from a path (CSV, TSV, `::`, Parquet, JSON lines; also .gz) or any dataframe.

    Columns are names, or positions from 0; user, item and rating are found by obvious names (userId,
    movie_id, stars …) and, in a file without a header, by position: user, item, rating, time. Delimited text
    is divided as its first lines suggest unless `separator` and `header` say otherwise.

    Ids are integers, text or UUIDs (as text); a column of a delimited file whose ids are not all plain
    integers stays text, so "007" is not 7. Ratings may be booleans. Times are integers, floats, or dates and
    datetimes, which become microseconds since 1970 in UTC.

    `users` and `items` list the whole population where the log does not show everyone (ids, or n for ids
    0 … n-1); `like` takes both from another Feedback, or from a fitted model. Rows with other ids are an error, or
    are left out with `unknown="drop"` (counted in `.dropped`; what they show of the other side stays in its
    vocabulary).
    A log without ratings, in which none is named or found, or that is read with `rating=False` (as a file without a
    header needs, whose third column would be taken for one), has `.positives`, and each rating is 1: a row says that
    something was liked, and no row says that it was not. So has a log in which all ratings are the same, or 4 to 5.
    A pair that occurs more than once is an error, or becomes its `duplicates="first"`, `"last"` or `"mean"`
    rating (with "mean" the other columns are the last row's).

    `.row` is each cell's row in the input, counted from 0 without header and blank lines, so that
    `.align(array)` brings an array in input order along. `uniform` marks a uniform sample of the population.

    `position=` makes it Impressions, one row for each item that was shown: `position` counts from 1, `reward=` is a
    click, or any number that is not negative, `request=` the list, `user=` whose; a pair may come any number of times.
    What the logging policy did: `propensity=`, `exposure=[…]` (its probability at each position), `prefix=`, `slate=`,
    `shuffled=`, `pool=` (how many candidates), `arms=[…]` (ranks under the arms of an experiment). request, user, item
    and reward are found by obvious names; `request=False` and `user=False` say that there are none. With
    `unknown="drop"` a request is left out as a whole.
    """
    if position is not None or shown:
        others = {"rating": rating, "weight": weight, "like": like, "uniform": uniform or None}
        others["duplicates"] = None if duplicates == "error" else duplicates
        _refuse_mixture(position, shown, [name for name, value in others.items() if value is not None])
    if position is not None:
        _refuse_option("unknown", unknown, ("error", "drop"))
        columns = ShownColumns(position=position, item=item, user=user, propensity=propensity, time=time, **shown)
        table = open_source(source, columns.named, separator=separator, header=header)
        return read_impressions(table, columns, dict(zip(PAIR, _known(users, items, None), strict=True)), unknown)
    _refuse_option("unknown", unknown, ("error", "drop"))
    _refuse_option("duplicates", duplicates, ("error", "first", "last", "mean"))
    asked = {"user": user, "item": item, "rating": rating}
    asked |= {"propensity": propensity, "time": time, "weight": weight}
    table = open_source(source, asked, separator=separator, header=header)
    chosen = choose(table, asked) if uniform else choose_log(table, asked)
    frame = table.fetch(list(chosen.values()))
    if frame.height == 0:
        raise EmptyError(f"{table.name}: no rows; an estimate needs at least one observed cell.")
    known_users, known_items = _known(users, items, like)
    user_ids, user_codes = coded(table, frame[chosen["user"]], "user", known_users, unknown)
    item_ids, item_codes = coded(table, frame[chosen["item"]], "item", known_items, unknown)
    columns = {
        role: _CHECKED[role](frame[column], f"{table.name}: {role} column {column!r}")
        for role, column in chosen.items()
        if role in _CHECKED
    }
    columns = {"rating": np.ones(frame.height, np.float32), **columns}
    log = _Log(table.name, user_codes, item_codes, user_ids, item_ids, columns)
    low, high = (float(limit(columns["rating"])) for limit in (np.min, np.max))
    return _feedback(log, duplicates, uniform=uniform, positives=not uniform and only_positives(low, high))


def only_positives(low: float, high: float) -> bool:
    """Whether ratings from `low` to `high` say of nothing that it was not liked: one above 0, or 4 to 5 of five."""
    return low == high > 0 or (low >= BEST[0] and high <= BEST[1])


@dataclass(frozen=True, slots=True)
class _Log:
    """A log in the order of its input; codes are -1 where the id is unknown."""

    name: str
    user: Ints
    item: Ints
    users: Vocabulary
    items: Vocabulary
    columns: Mapping[str, Array]


def _known(users: Any, items: Any, like: Any) -> tuple[Vocabulary | None, Vocabulary | None]:
    if like is None:
        return vocabulary(users, "users"), vocabulary(items, "items")
    if users is not None or items is not None:
        raise InputError("like= brings both vocabularies; pass either like= or users= and items=.")
    if isinstance(like, Feedback):
        return like.users, like.items
    known = getattr(like, "users_", None), getattr(like, "items_", None)
    if not all(isinstance(ids, Vocabulary) for ids in known):
        msg = f"like= must be a Feedback or a fitted model, got {type(like).__name__}; pass users= and items= instead."
        raise InputError(msg)
    return known


def _feedback(log: _Log, duplicates: Duplicates, **known: bool) -> Feedback:
    cell, row = _in_order(log)
    kept = _each_once(log, cell, row, duplicates)
    rating = log.columns["rating"][row]
    rating = mean_of_each(cell, rating) if duplicates == "mean" else rating[kept]
    dropped = len(log.user) - len(row)
    row = row[kept]
    rest: dict[str, Any] = {role: column[row] for role, column in log.columns.items() if role != "rating"}
    return Feedback(
        user=log.user[row], item=log.item[row], rating=rating, users=log.users, items=log.items, row=row,
        input_rows=len(log.user), dropped=dropped, **known, **rest,
    )  # fmt: skip


def _in_order(log: _Log) -> tuple[Int64s, Int64s]:
    """The cells of the rows whose ids are known, in order, and the row of each."""
    cell = log.user.astype(np.int64) * len(log.items) + log.item
    known = (log.user >= 0) & (log.item >= 0)
    if bool(known.all()):
        return sort_cells(cell)
    rows = np.flatnonzero(known)
    if len(rows) == 0:
        raise EmptyError(f"{log.name}: all {len(cell):,} rows have unknown ids, so none is left; check the ids' type.")
    cell, at = sort_cells(cell[rows])
    return cell, rows[at]


def _each_once(log: _Log, cell: Int64s, row: Int64s, duplicates: Duplicates) -> Int64s | slice:
    """The positions to keep, so that no cell occurs twice."""
    twice = repeated(cell)
    if len(twice) == 0:
        return slice(None)
    if duplicates != "error":
        return first_of_each(cell) if duplicates == "first" else last_of_each(cell)
    here = row[cell == cell[twice[0]]].tolist()
    pair = log.users.ids[log.user[here]].tolist()[0], log.items.ids[log.item[here]].tolist()[0]
    raise DuplicateError(
        f"{log.name}: {len(twice):,} (user, item) pairs occur more than once, as {pair} "
        f"in {row_list(here)}; pass duplicates='last', 'first' or 'mean', or drop all but one of each."
    )


def _refuse_mixture(position: Column, shown: Mapping[str, Any], feedback: Sequence[str]) -> None:
    """Keywords of impressions need a position, and keywords of Feedback alone have no meaning beside one."""
    known = [field.name for field in fields(ShownColumns)]
    if strange := [name for name in shown if name not in known]:
        raise InputError(f"read: {strange[0]}= is no keyword.{did_you_mean(strange[0], known)}")
    if position is None and (alone := [name for name, value in shown.items() if value is not None]):
        raise InputError(f"read: {alone[0]}= is for logs with positions; name their column with position=.")
    if position is not None and feedback:
        raise InputError(f"read: {feedback[0]}= is for logs without positions; leave out either it or position=.")


def _refuse_option(name: str, value: str, known: tuple[str, ...]) -> None:
    if value not in known:
        raise InputError(f"{name}={value!r} is no option.{did_you_mean(str(value), known)}")
