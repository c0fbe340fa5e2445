"""`scan`: a log whose rows stay where they are; its columns are found, and what is known of it is said once."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

import polars as pl

from openloop.core.feedback import Feedback
from openloop.core.vocabulary import Vocabulary
from openloop.data.columns import PAIR, Column, InputTable, choose, choose_log
from openloop.data.delimited import TextForm
from openloop.data.encoding import vocabulary
from openloop.data.formats import open_source
from openloop.data.impressions import ShownColumns
from openloop.data.reading import NO_RATINGS, read
from openloop.errors import InputError, did_you_mean, quoted
from openloop.support.arguments import is_number

UNUSED = ("arms", "time")  # columns of impressions that no value needs; the arms of blocks are models
SPLITS = ("random", "time", "none")
DUPLICATES = ("error", "first", "last", "mean", "count")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Log:
    """A log whose rows stay where they are; `ol.scan` makes it.

    Args:
        source: The path, the paths or the dataframe that has the rows.
        table: The same, opened.
        columns: The column of each role.
        users: The users of the population: a Vocabulary, their number, or None for those that the log shows.
        items: The items of the population, likewise.
        share: The share of this part in the log that it was split from; None where it is unknown, as after a split by
            time.
        origin: What parts of one log have in common.
        split: How this log and what is excluded were one log: "random", "time" or "none"; None: as their pairs tell.
        propensity_model: The model, or its name, that the column of p was fitted by; None: p was logged.
        positive: The number from which a row is a positive; rows below it are left out.
        duplicates: What happens to a pair that occurs more than once.
        user_features: Covariates of the users, for propensities.
        item_features: Covariates of the items, likewise, and for the similarity of lists.
        min_item_rows: Items with fewer rows leave the population of an audit.
        executors: Whether rows of Spark are reduced on its executors.
        notes: What was guessed.
        options: Keywords of `ol.read`, for `load`.

    Examples:
        >>> import polars as pl
        >>> table = pl.DataFrame({"uid": [1, 2, 1], "mid": [7, 7, 9], "stars": [5, 2, 4], "p": [0.5, 0.2, 0.4]})
        >>> ol.scan(table, user="uid", item="mid", rating="stars", propensity="p")
        Log(user 'uid', item 'mid', rating 'stars', propensity 'p')
    """

    source: Any
    table: InputTable
    columns: Mapping[str, str]
    users: Vocabulary | int | None = None
    items: Vocabulary | int | None = None
    share: float | None = 1.0
    origin: Any = None
    split: str | None = None
    propensity_model: Any = None
    positive: float | None = None
    duplicates: str = "error"
    user_features: Any = None
    item_features: Any = None
    min_item_rows: int = 0
    executors: bool = True
    notes: tuple[str, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict[str, Any], repr=False)  # of `read`, for `load`

    def __repr__(self) -> str:
        return f"Log({', '.join(f'{role} {column!r}' for role, column in self.columns.items())})"

    def frame(self) -> Any:
        """The rows as a frame of an engine, which fits on frames take.

        Returns:
            The frame that was scanned, or a lazy one of a file.
        """
        if not isinstance(self.source, str | os.PathLike):
            return self.source
        if self.table.scan is None:
            raise InputError(f"{self.table.name}: cannot be looked at without reading it; read the log with ol.read.")
        return self.table.scan(list(dict.fromkeys(self.columns.values())))

    def fit_options(self) -> dict[str, Any]:
        """What a fit on the frame is told: its columns and the size of the population."""
        sizes = [known if known is None or isinstance(known, int) else len(known) for known in (self.users, self.items)]
        columns = {role: self.columns[role] for role in ("user", "item", "rating") if role in self.columns}
        return columns if None in sizes else columns | {"population": tuple(sizes)}

    def load(self) -> Feedback:
        """The rows in memory.

        Returns:
            A Feedback, as `ol.read` makes it of the same source.
        """
        return read(self.source, **self.options)


def scan(
    source: Any,
    *,
    user: Column = None,
    item: Column = None,
    rating: Column = None,
    positive: float | None = None,
    propensity: Column = None,
    propensity_model: Any = None,
    time: Column = None,
    users: Any = None,
    items: Any = None,
    like: Any = None,
    duplicates: str = "error",
    split: str | None = None,
    user_features: Any = None,
    item_features: Any = None,
    min_item_rows: int = 0,
    separator: str | None = None,
    header: bool | None = None,
    skip: int = 0,
    comment: str | None = None,
    executors: bool = True,
    position: Column = None,
    candidates: str = "all",
    **shown: Any,
) -> Log | ShownLog:
    """Open a log whose rows stay where they are: files, or a dataframe of any engine.

    Each row is read once for an evaluation, whatever its engine, and dealt to blocks of users, in memory or on disk.
    Columns are named, or found by obvious names, as `ol.read` does.

    Args:
        source: A path, several paths of one format, a folder of them, or a dataframe of any engine.
        user: The column of users.
        item: The column of items.
        rating: The column of ratings; `rating=False` says that every row is a positive.
        positive: For a rating column of counts or durations: rows below this number are left out, and each other row is
            a positive.
        propensity: The column of the probabilities with which rows were observed.
        propensity_model: What made that column, where it was fitted: a fitted model, or its name. Without it p is taken
            to be logged.
        time: The column of times.
        users: All users of the population where the log does not show everyone: ids, or their number.
        items: All items of the population, likewise.
        like: A Feedback, Log or fitted model whose users and items are the population.
        duplicates: What happens to a pair that occurs more than once: "error", or one of the rules of `ol.read`.
        split: How this log and what is passed as `exclude=` were one log: "random", "time" or "none". Without it their
            pairs tell: parts of a random split have none in common.
        user_features: Covariates of the users, for propensities.
        item_features: Covariates of the items, likewise, and for the similarity of lists.
        min_item_rows: Items with fewer rows leave the population of an audit.
        separator: What separates the fields of delimited text; by default its first lines tell.
        header: Whether delimited text has a header; by default its first lines tell.
        skip: The number of lines to skip at the start of delimited text.
        comment: What lines begin with that are comments.
        executors: Whether rows of a Spark frame are reduced on its executors, which need openloop, or on this machine.
        position: The column of positions, from 1, which makes it a log of impressions.
        candidates: For impressions, "all" items, or "shown": what a ranker would earn by reordering what was shown.
        **shown: Columns of impressions, as `ol.read` has them.

    Returns:
        The log, which `evaluate` and `audit` take.

    Raises:
        ColumnError: A column is missing, or none could be found.
        InputError: An option is unknown or cannot be used.

    Examples:
        >>> import polars as pl
        >>> table = pl.DataFrame({"user": [1, 2, 1], "item": [7, 7, 9], "rating": [5.0, 2.0, 4.0]})
        >>> ol.scan(table, users=10, items=20).load()
        Feedback(3 of 10 users × 20 items)
    """
    form = TextForm(separator=separator, header=header, skip=skip, comment=comment)
    if position is not None:
        known = [field.name for field in fields(ShownColumns)]
        if strange := [name for name in shown if name not in known]:
            raise InputError(f"scan: {strange[0]}= is not a keyword.{did_you_mean(strange[0], known)}")
        named: dict[str, Any] = {"user": user, "item": item, "propensity": propensity, "time": time, **shown}
        return scan_impressions(
            source, ShownColumns(position=position, **named), form, candidates=candidates, items=items
        )  # fmt: skip
    if shown:
        raise InputError(f"scan: {next(iter(shown))}= is for logs with positions; name their column with position=.")
    options = {
        "user": user, "item": item, "rating": rating, "positive": positive, "propensity": propensity, "time": time,
        "users": users, "items": items, "like": like, "duplicates": duplicates, "separator": separator,
        "header": header, "skip": skip, "comment": comment, "propensity_model": propensity_model,
        "user_features": user_features, "item_features": item_features, "min_item_rows": min_item_rows,
    }  # fmt: skip
    _refuse_options(split, duplicates, positive, rating)
    asked = {"user": user, "item": item, "rating": rating, "propensity": propensity, "time": time}
    table = open_source(source, asked, form)
    columns = choose_log(table, asked)
    known_users, known_items = _population(users, items, like)
    found = [table.remark, NO_RATINGS] if "rating" not in columns and rating is None else []
    return Log(
        source=source, table=table if isinstance(source, str | os.PathLike) else replace(table, name="the log"),
        columns=columns, users=known_users, items=known_items, split=split, propensity_model=propensity_model,
        positive=positive, duplicates=duplicates, user_features=user_features, item_features=item_features,
        min_item_rows=min_item_rows, executors=executors, notes=tuple(note for note in found if note),
        options=options,
    )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ShownLog:
    """A log of impressions whose rows stay where they are; `ol.scan` makes it where `position=` is given.

    Args:
        table: What has the rows.
        columns: The column of each role.
        users: Ids of users beyond those of the rows, where they are known.
        items: Ids of items, likewise.
        candidates: "all" items, or "shown": rankers reorder what was shown.
    """

    table: InputTable
    columns: Mapping[str, str]
    users: Vocabulary | None = None
    items: Vocabulary | None = None
    candidates: str = "all"


def scan_impressions(source: Any, columns: ShownColumns, form: TextForm, *, candidates: str, items: Any) -> ShownLog:
    """The log in files or a frame of any engine."""
    table = open_source(source, columns.named, form)
    table = table if isinstance(source, str | os.PathLike) else replace(table, name="the log")
    chosen = columns.choose(table)
    return ShownLog(
        table=table, columns={role: name for role, name in chosen.items() if role.split()[0] not in UNUSED},
        items=vocabulary(items, "items"), candidates=candidates,
    )  # fmt: skip


def pairs_of(given: Any, log: Log, what: str) -> Log:
    """Another table of pairs beside a log, such as what is excluded, whose columns may be called as the log's are."""
    if isinstance(given, Log):
        return given
    if isinstance(given, Feedback):
        ids = {"user": series_of(given.users.ids, given.user), "item": series_of(given.items.ids, given.item)}
        return pairs_of(pl.DataFrame(ids), replace(log, columns={"user": "user", "item": "item"}), what)
    table = replace(given if isinstance(given, InputTable) else open_source(given, log.columns), name=what)
    named = {side: log.columns[side] if log.columns[side] in table.columns else None for side in PAIR}
    return Log(source=given, table=table, columns=choose(table, named, required=PAIR), split=log.split)


def series_of(ids: Any, codes: Any) -> pl.Series:
    """The id of each code."""
    known = pl.Series(ids) if ids.dtype.kind == "i" else pl.Series(ids.tolist(), dtype=pl.String)
    return known.gather(pl.Series(codes))


def _population(users: Any, items: Any, like: Any) -> tuple[Any, Any]:
    """The users and items: as numbers where numbers are given, since ids may be any."""
    if like is None:
        return _ids_or_number(users, "users"), _ids_or_number(items, "items")
    if users is not None or items is not None:
        raise InputError("like= sets both vocabularies; pass either like= or users= and items=.")
    names = ("users", "items") if isinstance(like, Feedback | Log) else ("users_", "items_")
    known_users, known_items = (getattr(like, name, None) for name in names)
    if not isinstance(like, Log) and not all(isinstance(ids, Vocabulary) for ids in (known_users, known_items)):
        raise InputError(
            f"like= must be a Feedback, a Log or a fitted model, got {type(like).__name__}; pass users= and items= "
            "instead."
        )
    return known_users, known_items


def _ids_or_number(given: Any, what: str) -> Vocabulary | int | None:
    return int(given) if is_number(given) and not isinstance(given, bool) else vocabulary(given, what)


def _refuse_options(split: str | None, duplicates: str, positive: float | None, rating: Column) -> None:
    for name, value, known in (("split", split or "none", SPLITS), ("duplicates", duplicates, DUPLICATES)):
        if value not in known:
            raise InputError(f"{name}={quoted(value)} is not an option.{did_you_mean(str(value), known)}")
    if positive is not None and (not is_number(positive) or rating is False):
        raise InputError(
            f"positive={quoted(positive)}: give the number from which a row of the rating column is a positive, such "
            "as 30."
        )
