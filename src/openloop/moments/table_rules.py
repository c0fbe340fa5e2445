"""The rules for predictions: what tables of them must contain, and which metrics they support.

Arrays, frames and files share them, so the same situation gives the same error wherever predictions come from.
`what` is the name that an error gives a table, such as "model 'a'".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from openloop.core.feedback import Floats
from openloop.core.lists import ListMetric
from openloop.core.metric import Metric
from openloop.data.columns import Column, Header, alike, choose, named, shared
from openloop.errors import ColumnError, InputError, PredictionError, listing, quoted

SIDES = ("user", "item")
USUAL = {"score": ("score", "prediction"), "rank": ("rank",)}  # what columns of numbers are called, the first one first
COUNTS = ("above", "tied")
MISSING = ("error", "drop", "worst")
LARGEST = 2**31  # no list is longer
LISTED = ("recall", "dcg", "ndcg")  # usual metrics that a short list can serve


def one_score(model: str, users: int, scored: int) -> str:
    """The note on a model that cannot rank for some users, as with a factor of zeros."""
    return (
        f"model {model!r}: gives all items the same score for {users:,} of {scored:,} users with scored rows, as when "
        "a user's factors are all 0; their ranking is random"
    )


# -- columns -------------------------------------------------------------------------------------------------


def id_columns(table: Header, given: Mapping[str, Column]) -> dict[str, str]:
    """The columns of user and item. One that has neither the log's name nor an obvious one has to be renamed."""
    named = {side: given.get(side) for side in SIDES}
    ways = {
        side: f"call it {column!r}, as in the log" if isinstance(column, str) and column != side else
        f"call it {side!r}, or pass {side}= with its name"
        for side, column in named.items()
    }  # fmt: skip
    return choose(table, shared(table, named), required=SIDES, ways=ways)


def number_columns(table: Header, given: Mapping[str, Column]) -> dict[str, str]:
    """The columns of score and rank, of which a table needs one: those named, of their usual names, or of obvious ones.

    A role that was named is not guessed. An obvious name counts only where no column has a usual one, and of a score
    and a rank with such names the score alone: a position may be another than that in the model's list.
    """
    found = _usual(table, given)
    for role in USUAL:
        if not found and given.get(role) is None and (column := alike(table, role)) is not None:
            found = {role: column}
    if not found:
        asked = {role: column for role in USUAL if (column := given.get(role)) is not None}
        lacks = " or ".join(f"{column!r} for {role}=" for role, column in asked.items()) or "'score' or 'rank'"
        raise ColumnError(
            f"{table.name}: no column {lacks} was found among {listing(list(table.columns), limit=20)}; pass score= or "
            f"rank= with its name.{table.note}"
        )
    return found


def _usual(table: Header, given: Mapping[str, Column]) -> dict[str, str]:
    """The columns of score and rank that were named, or have the usual names."""
    found: dict[str, str] = {}
    for role, names in USUAL.items():
        column = given.get(role)
        if isinstance(column, int) or (column is not None and column in table.columns):
            found[role] = named(table, role, column)
        elif column is None and (usual := next((name for name in names if name in table.columns), None)):
            found[role] = usual
    return found


def numbers_in(columns: Sequence[str], given: Mapping[str, Column]) -> set[str]:
    """Which of score and rank a table with these columns has; one without any is refused where it is read."""
    try:
        return {*number_columns(_Names(columns=columns), given)}
    except ColumnError:
        return set()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Names:
    """The header of a table that is not opened yet."""

    columns: Sequence[str]
    name: str = ""
    note: str = ""


def has_numbers(table: Header, given: Mapping[str, Column]) -> bool:
    """Whether a table has a column of scores or ranks that was named, or has a usual name."""
    return bool(_usual(table, given))


def count_columns(table: Header, given: Mapping[str, Column]) -> dict[str, str]:
    """The columns of how many candidates are above and tied, where a table has both."""
    known = [name for name in COUNTS if name in table.columns]
    if len(known) == 1 and not has_numbers(table, given):
        lacks = next(name for name in COUNTS if name not in known)
        raise ColumnError(
            f"{table.name}: no column {quoted(lacks)} was found beside {quoted(known[0])}; rankings need both."
        )
    return {name: name for name in known} if len(known) == len(COUNTS) else {}


# -- values --------------------------------------------------------------------------------------------------


def no_rows(what: str) -> PredictionError:
    """The error of a table without rows."""
    return PredictionError(f"{what}: the table has no rows; give a score or a rank for each (user, item) pair.")


def holds_text(what: str, column: str, words: Sequence[str], number: int, rows: int) -> PredictionError:
    """The error of a column that should hold numbers."""
    return PredictionError(
        f"{what}: column {quoted(column)} holds text in {number:,} of {rows:,} rows, such as "
        f"{listing(sorted(words)[:3])}; write numbers."
    )


def not_numbers(what: str, column: str) -> PredictionError:
    """The error of a column of dates, lists or the like."""
    return PredictionError(f"{what}: column {quoted(column)} must hold numbers, and its type is another; cast it.")


def not_finite(what: str, column: str, number: int, rows: int, first: int) -> PredictionError:
    """The error of scores or ranks that are missing, NaN or infinite; `first` is the row of the first of them."""
    return PredictionError(
        f"{what}: {number:,} of {rows:,} values in column {quoted(column)} are missing or not finite, first in row "
        f"{first + 1:,}; repair them."
    )


def written_numbers(what: str, column: pl.Series) -> Floats:
    """Scores or ranks, NaN where they are missing; text may write them."""
    if isinstance(column.dtype, pl.String | pl.Categorical | pl.Enum):
        fields = column.cast(pl.String).str.strip_chars()
        numbers = fields.cast(pl.Float64, strict=False)
        words = fields.filter(numbers.is_null() & (fields != ""))
        if len(words):
            raise holds_text(what, column.name, words.unique().to_list(), len(words), len(column))
        return numbers.to_numpy()
    if not (column.dtype.is_numeric() or isinstance(column.dtype, pl.Boolean | pl.Null)):
        raise not_numbers(what, column.name)
    return column.cast(pl.Float64).to_numpy()


def pairs_twice(what: str, number: int, pairs: Sequence[Any]) -> str:
    """That pairs are in a table more than once; `pairs` are the first by user and item."""
    some = listing([tuple(pair) for pair in pairs[:3]])
    return f"{what}: {number:,} (user, item) pairs are in it more than once, such as {some}; keep one of each."


def bad_ranks(what: str) -> PredictionError:
    """The error of ranks that are not 1, 2, 3 …"""
    return PredictionError(
        f"{what}: ranks must be integers starting at 1, unique within each user; number each user's list 1, 2, 3 …"
    )


def bad_counts(what: str, columns: Sequence[str], number: int) -> PredictionError:
    """The error of counts that are none."""
    above, tied = columns
    return PredictionError(
        f"{what}: columns {quoted(above)} and {quoted(tied)} must count the candidates above an item, from 0, and "
        f"those tied with it, from 1, since it is tied with itself; {number:,} rows do not."
    )


def ranks_excluded(what: str, number: int) -> PredictionError:
    """The error of a list that ranks what may not be recommended."""
    return PredictionError(
        f"{what}: its list ranks {number:,} excluded cells; make it without them, or pass exclude=None."
    )


def incomplete(what: str, lacks: str) -> PredictionError:
    """The error of counts of candidates that some scored rows lack."""
    return PredictionError(f"{what}: {lacks}; give all, or give ranks.")


def scores_and_ranks(what: str, tables: Sequence[Any]) -> tuple[Any, Any]:
    """The table that ratings are asked of and the one that rankings are asked of; a single one serves both."""
    if len(tables) == 1:
        return tables[0], tables[0]
    scores, lists = ([t for t in tables if t.ranks == ranked] for ranked in (False, True))
    if (len(scores), len(lists)) != (1, 1):
        raise PredictionError(
            f"{what}: several tables of one model must be two, the scores of the log's pairs and a list with a rank "
            f"column, got {len(scores)} without and {len(lists)} with ranks; number each user's list 1, 2, 3 …"
        )
    return scores[0], lists[0]


# -- predictions that are missing ----------------------------------------------------------------------------


def check_missing(policy: str) -> None:
    """Refuse an unknown policy."""
    if policy not in MISSING:
        raise InputError(f'evaluate: missing must be "error", "drop" or "worst", got {policy!r}.')


def not_predicted(what: str, number: int, rows: int, users: Sequence[Any]) -> PredictionError:
    """The error of scored rows without a prediction; `users` are the first of them."""
    return PredictionError(
        f"{what}: no prediction for {number:,} of {rows:,} scored rows, such as those of users {listing(users[:3])}; "
        'predict them, or pass missing="drop" or missing="worst".'
    )


def missing_note(policy: str, gaps: Mapping[str, int], dropped: int) -> str:
    """What was done about scored rows without a prediction; `gaps` is their number by model."""
    counts = ", ".join(f"{name} {number:,}" for name, number in gaps.items())
    if policy == "worst":
        return f"missing predictions count as the furthest rating: {counts} rows"
    return f"{dropped:,} rows that some model does not predict were dropped ({counts}), which may bias the estimates"


# -- which metrics predictions can serve ---------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """What the predictions of one model hold."""

    scores: bool = True  # predicted ratings, few or many
    predicted: bool = True  # those of all scored rows, or `missing=` says what to do about the others
    cells: bool = True  # scores of every cell of the population
    ranks: bool = True  # a rank column, or scores that can be ranked
    depth: int | None = None  # the deepest rank of lists that do not hold all candidates
    rows_alone: bool = False  # ranks of the log's rows, and no lists

    def refusal(self, metric: Metric, *, everywhere: bool = False) -> str | None:
        """Why such a model cannot serve a metric; `everywhere`: on every cell, as imputation needs."""
        if (everywhere or metric.on == "prediction") and not self.scores:
            return "has ranks and no scores."
        if metric.on == "prediction" and not self.predicted:
            listed = "" if self.depth is None else f"is a top-{self.depth} list, and "
            return f'{listed}lacks predictions of some scored rows; give them, or pass missing="drop".'
        if everywhere and not self.cells:
            return "has scores of some cells only, and imputation needs those of every cell."
        return None if metric.on == "prediction" else self.unranked(metric.k)

    def unranked(self, k: int | None) -> str | None:
        """Why such a model has no ranks down to k, or at all."""
        if not self.ranks:
            return (
                "has neither ranks nor the scores of all cells, which rankings need; give a rank column or "
                "name it with rank=, or give all scores."
            )
        if self.depth is None or (k is not None and k <= self.depth):
            return None
        return (
            f"is a top-{self.depth} list, which serves only @k with k ≤ {self.depth}: ask for "
            f"{', '.join(f'{name}@{self.depth}' for name in LISTED)} or the like."
        )


def unlisted(models: Mapping[str, Coverage], metric: ListMetric) -> str | None:
    """Why some model has no lists of a metric's length."""
    for name, coverage in models.items():
        if reason := coverage.unranked(metric.k):
            return f"model {name!r} {reason}"
    return None
