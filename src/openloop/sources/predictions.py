"""`Predictions`: scores or ranks of (user, item) pairs in a log's codes, read from dataframes and files alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import narwhals as nw
import numpy as np
import numpy.typing as npt
import polars as pl

from openloop.core.feedback import Feedback, Floats, Ints, Vocabulary, distinct
from openloop.data import values
from openloop.data.columns import Column, InputTable
from openloop.data.encoding import find
from openloop.data.frames import open_frame
from openloop.errors import PredictionError, UnknownIdError, listing, quoted
from openloop.sources import remarks, rules
from openloop.sources.rules import LARGEST, SIDES, Coverage
from openloop.support.frames import is_frame
from openloop.support.wording import counted

MAX_DENSE = 2**28  # cells of a grid made from a table of scores: 2 GiB


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Predictions:
    """Predictions of pairs: codes of user and item, with scores, ranks, or both; ordered by cell.

    `listed` are the ranks that go with a table of scores: the first serve rankings, the second ratings.
    """

    user: npt.NDArray[np.int32]
    item: npt.NDArray[np.int32]
    score: Floats | None
    rank: Floats | None
    shape: tuple[int, int]
    listed: Predictions | None = None

    @property
    def cell(self) -> npt.NDArray[np.int64]:
        """Flat positions in the grid."""
        return self.user.astype(np.int64) * self.shape[1] + self.item

    @property
    def depth(self) -> int:
        """The deepest rank of a list."""
        return 0 if self.rank is None else int(self.rank.max())

    @property
    def ranks(self) -> bool:
        """Whether these are ranks."""
        return self.rank is not None

    @property
    def full(self) -> bool:
        """Whether every cell of the population has a score."""
        return self.score is not None and len(self.user) == self.shape[0] * self.shape[1]

    @property
    def ranking(self) -> Predictions:
        """The predictions that rankings are asked of."""
        return self if self.listed is None else self.listed

    def coverage(self, candidates: float, *, predicted: bool = True) -> Coverage:
        """Which metrics these can serve; `predicted` says that no scored row lacks a score."""
        own = self.ranking
        return Coverage(
            scores=self.score is not None, predicted=predicted, cells=self.full,
            ranks=own.full if own.rank is None else True,
            depth=None if own.rank is None or len(own.user) == candidates else own.depth,
        )  # fmt: skip

    def at(self, values: Floats, cells: npt.NDArray[np.int64]) -> Floats:
        """The value of each cell, NaN where there is none."""
        from openloop.kernels.merging import positions

        own = self.cell
        found = np.minimum(positions(own, cells), len(own) - 1)
        return np.where(own[found] == cells, values[found], np.nan)

    def lists_none(self, cells: npt.NDArray[np.int64]) -> bool:
        """Whether this is a list that has none of these cells."""
        own = self.ranking
        return own.rank is not None and bool(np.isnan(own.at(own.rank, cells)).all())

    def remarks(self, name: str, log: Feedback) -> str:
        """What is odd about a list, on whose account items rank below it; empty where nothing is."""
        own = self.ranking
        if own.rank is None:
            return ""
        first = np.flatnonzero(np.diff(own.user, prepend=-1))  # of each user's rows, which are consecutive
        length = np.diff(first, append=len(own.user))
        gaps = int(np.sum(np.maximum.reduceat(own.rank, first) > length))
        without = int(np.isin(distinct(log.user), own.user[first], invert=True).sum())
        return remarks.of_lists(name, without, gaps)

    def unlisted(self, log: Feedback) -> float:
        """The share of scored rows whose users have no list; 0 where these are no lists."""
        own = self.ranking
        return 0.0 if own.rank is None else float(np.isin(log.user, distinct(own.user), invert=True).mean())

    def grid(self, name: str) -> Floats:
        """The scores of all cells (U, I)."""
        n_users, n_items = self.shape
        if self.score is None or not self.full:
            raise PredictionError(
                f"model {name!r}: needs scores of all {n_users:,} × {n_items:,} cells, has {len(self.user):,}."
            )
        if n_users * n_items > MAX_DENSE:
            raise PredictionError(
                f"model {name!r}: {n_users:,} × {n_items:,} scores are too many for a table; give an array or ranks."
            )
        found = np.empty(self.shape)
        found[self.user, self.item] = self.score
        return found


def numbers_of(model: Any, given: Mapping[str, Column]) -> set[str]:
    """Which of score and rank a model's tables have, without a look at their rows; what is no table has scores."""
    if isinstance(model, Predictions):
        held = {"score": model.score is not None, "rank": model.ranking.ranks}
        return {role for role, there in held.items() if there}
    if isinstance(model, Mapping):
        return {"score", "rank"} & {*model}  # pyright: ignore[reportUnknownArgumentType]
    if isinstance(model, list | tuple):
        return set[str]().union(*(numbers_of(table, given) for table in model))  # pyright: ignore[reportUnknownVariableType]
    return rules.numbers_in(nw.from_native(model).collect_schema().names(), given) if is_frame(model) else {"score"}


# -- reading -------------------------------------------------------------------------------------------------


def from_frames(what: str, frames: Sequence[Any], log: Feedback, given: Mapping[str, Column]) -> Predictions:
    """One dataframe of predictions, or two: scores of the scored pairs, and a list with a rank column."""
    return together(what, [read_predictions(_opened(what, frame, log), log, given) for frame in frames])


def together(what: str, tables: Sequence[Predictions]) -> Predictions:
    """One table, or a table of scores with its list."""
    scores, ranks = rules.scores_and_ranks(what, tables)
    return scores if scores is ranks else replace(scores, listed=ranks)


def _opened(what: str, frame: Any, log: Feedback) -> InputTable:
    try:
        nw.from_native(frame)
    except TypeError as error:
        raise PredictionError(
            f"{what}: {type(frame).__name__} is neither a recommender (predict, scores), a "
            f"{log.n_users} × {log.n_items} array, a dataframe, nor a function of ids; models of other libraries, and "
            "pairs of vectors, go through ol.wrap."
        ) from error
    return replace(open_frame(frame), name=what)


def read_predictions(table: InputTable, log: Feedback, given: Mapping[str, Column]) -> Predictions:
    """The predictions in a table, of a file or in memory, whose name is what errors call it; ids as the log's codes."""
    chosen = rules.pair_columns(table, given)
    rows = table.fetch(list(chosen.values()))
    if rows.height == 0:
        raise rules.no_rows(table.name)
    user, item = (
        codes(table.name, side, rows[chosen[side]], known, text=table.text)
        for side, known in zip(SIDES, (log.users, log.items), strict=True)
    )
    score, rank = (written_numbers(table.name, rows[chosen[r]]) if r in chosen else None for r in ("score", "rank"))
    found = Predictions(user=user, item=item, score=score, rank=rank, shape=(log.n_users, log.n_items))
    return _checked(table.name, _ordered(found), log, chosen)


def codes(what: str, side: str, column: pl.Series, known: Vocabulary, *, text: bool) -> Ints:
    """The codes of a column of ids; unknown ones are refused."""
    integers = known.ids.dtype.kind == "i"
    ids = values.ids(column, f"{what}: {side} column {quoted(column.name)}", text=text, keep_text=not integers)
    found = find(ids, known, text=text)
    if bool((found < 0).any()):
        strange = ids.filter(pl.Series(found < 0))
        names = strange.unique()
        like = known.ids[:2].tolist() if bool((found < 0).all()) and len(names) > 1 else ()
        raise unknown_ids(what, side, names, len(strange), integers=integers, like=like)
    return found


def unknown_ids(
    what: str, side: str, strange: pl.Series, rows: int, *, integers: bool | None, like: Sequence[Any] = ()
) -> UnknownIdError:
    """The error of ids outside the population, where `integers` says whether the log's are integers.

    `like` are some of the log's, where the table has none of them.
    """
    remedy = f"pass {side}s= with all {side}s where the log is read"
    if len(like):
        remedy = f"it has none of the log's, which are written as {listing(like)}, so write both alike"
    if integers is not None and integers != (strange.dtype == pl.Int64):
        kinds = ("integers", "text") if integers else ("text", "integers")
        remedy = f"the log's are {kinds[0]} and these {kinds[1]}, so cast one of them"
    return UnknownIdError(
        f"{what}: the population lacks {counted(len(strange), side)} (in {counted(rows, 'row')}), such as "
        f"{listing(strange.sort().head(3).to_list())}; {remedy}."
    )


def written_numbers(what: str, column: pl.Series) -> Floats:
    """Scores or ranks, NaN where they are missing; text may write them."""
    if isinstance(column.dtype, pl.String | pl.Categorical | pl.Enum):
        fields = column.cast(pl.String).str.strip_chars()
        numbers = fields.cast(pl.Float64, strict=False)
        words = fields.filter(numbers.is_null() & (fields != ""))
        if len(words):
            raise rules.holds_text(what, column.name, words.unique().to_list(), len(words), len(column))
        return numbers.to_numpy()
    if not (column.dtype.is_numeric() or isinstance(column.dtype, pl.Boolean | pl.Null)):
        raise rules.not_numbers(what, column.name)
    return column.cast(pl.Float64).to_numpy()


# -- checking ------------------------------------------------------------------------------------------------


def _ordered(found: Predictions) -> Predictions:
    own = found.cell
    if bool(np.all(own[1:] >= own[:-1])):
        return found
    order = np.argsort(own, kind="stable")
    score, rank = (None if v is None else v[order] for v in (found.score, found.rank))
    return replace(found, user=found.user[order], item=found.item[order], score=score, rank=rank)


def _checked(what: str, found: Predictions, log: Feedback, columns: Mapping[str, str]) -> Predictions:
    """The same, once it is known that all numbers are finite, no pair is there twice, and ranks are ranks."""
    for role, numbers in (("score", found.score), ("rank", found.rank)):
        masked = np.isneginf(numbers) if role == "score" and numbers is not None else False  # ranks below all others
        if numbers is not None and len(bad := np.flatnonzero(~(np.isfinite(numbers) | masked))):
            pair = _ids(found.cell[bad[:1]], log)[0]
            raise rules.not_finite(what, columns[role], len(bad), len(numbers), pair)
    own = found.cell
    twice = distinct(own[1:][own[1:] == own[:-1]])
    if len(twice):
        raise PredictionError(rules.pairs_twice(what, len(twice), _ids(twice[:3], log)))
    if found.rank is not None and not _are_ranks(found.user, found.rank, log.n_users):
        raise rules.bad_ranks(what)
    return found


def _ids(cells: npt.NDArray[np.int64], log: Feedback) -> list[tuple[Any, Any]]:
    user, item = np.divmod(cells, log.n_items)
    return list(zip(log.users.ids[user].tolist(), log.items.ids[item].tolist(), strict=True))


def _are_ranks(user: Ints, rank: Floats, n_users: int) -> bool:
    if bool(np.any((rank < 1) | (rank > LARGEST) | (rank != np.floor(rank)))):
        return False
    return _each_once(user, rank.astype(np.int64), n_users)


def _each_once(user: Ints, rank: npt.NDArray[np.int64], n_users: int) -> bool:
    """Whether no user has a rank twice; short lists are ticked off, which is quicker than sorting them."""
    width = int(rank.max()) + 1
    places = user * np.int64(width) + rank
    if n_users * width > MAX_DENSE:
        return len(distinct(places)) == len(places)
    seen = np.zeros(n_users * width, bool)
    seen[places] = True
    return int(np.count_nonzero(seen)) == len(places)
