"""Models as they come: what is asked by code, what is a table of rows, what is a column of the log."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import narwhals as nw
import numpy as np

from openloop.blocks.dealing import Dealer, ReadIds
from openloop.blocks.joining import Dealt, ModelTables
from openloop.blocks.population import Population
from openloop.core.feedback import Floats
from openloop.core.protocols import check_numbers, on_host
from openloop.data.columns import Column, InputTable, choose, named
from openloop.data.frames import open_frame
from openloop.errors import PredictionError, listing, quoted
from openloop.moments import table_rules
from openloop.moments.functions import OfIds
from openloop.moments.recoding import by_id
from openloop.support.frames import is_frame

if TYPE_CHECKING:
    import polars as pl

NUMBERS = ("score", "rank", "above", "tied")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Answerer:
    """A model that is asked: `of` makes it answer in the codes of a population."""

    of: Callable[[Population], Any]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LogColumns:
    """A model that is columns of the log, by role."""

    columns: Mapping[str, str]

    @property
    def numbers(self) -> frozenset[str]:
        """Which numbers it has."""
        return frozenset(self.columns)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Table:
    """A table of a model, and the column of each role."""

    table: InputTable
    columns: Mapping[str, str]

    @property
    def numbers(self) -> frozenset[str]:
        """Which numbers it has."""
        return frozenset(self.columns) & frozenset(NUMBERS)

    @property
    def ranks(self) -> bool:
        """Whether it was made for rankings."""
        return "rank" in self.columns or "above" in self.columns

    def dealt(self, dealer: Dealer, ids: ReadIds) -> DealtTable:
        """The rows by bucket."""
        gaps = {role: Gaps(what=self.table.name, column=self.columns[role]) for role in self.numbers}
        return DealtTable(rows=dealer.deal(self.table, self.columns, gaps, ids), name=self.table.name, gaps=gaps)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DealtTable:
    """A table that was dealt, and what is missing in its numbers."""

    rows: Dealt
    name: str
    gaps: Mapping[str, Gaps]

    def check(self) -> Dealt:
        """Its rows, once they are read: refused if there are none, or if numbers are missing."""
        if not self.rows.n_rows:
            raise table_rules.no_rows(self.name)
        for role, gap in self.gaps.items():
            gap.refuse(role)
        return self.rows


@dataclass(slots=True, kw_only=True, eq=False)
class Gaps:
    """Numbers of a column that are missing or not finite, over its batches."""

    what: str
    column: str
    rows: int = 0
    number: int = 0
    first: int = -1

    def __call__(self, column: pl.Series, _where: str) -> Floats:
        """A batch of the column as numbers; -inf ranks below all others."""
        numbers = table_rules.written_numbers(self.what, column.alias(self.column))
        bad = np.flatnonzero(~(np.isfinite(numbers) | np.isneginf(numbers)))
        if len(bad) and self.first < 0:
            self.first = self.rows + int(bad[0])
        self.rows, self.number = self.rows + len(numbers), self.number + len(bad)
        return numbers

    def add(self, later: Gaps) -> None:
        """Those of later rows, too."""
        if self.first < 0 <= later.first:
            self.first = self.rows + later.first
        self.rows, self.number = self.rows + later.rows, self.number + later.number

    def refuse(self, role: str) -> None:
        """Refuse what is not finite."""
        if self.number and role not in ("above", "tied"):  # which only scored rows need
            raise table_rules.not_finite(self.what, self.column, self.number, self.rows, self.first)


Model = Answerer | LogColumns | tuple[Table, ...]


def opened(name: str, model: Any, columns: Mapping[str, Column], log: InputTable | None) -> Model:
    """A model as it will be asked; `columns` are the names of its tables' columns, `log` a log that stays elsewhere."""
    what = f"model {name!r}"
    if isinstance(model, Answerer):
        return model
    if isinstance(model, str | Mapping):
        return _of_log(what, model, log)  # pyright: ignore[reportUnknownArgumentType]
    if isinstance(model, type):
        raise PredictionError(
            f"{what}: {model.__name__} is a class; give a fitted model, {model.__name__}().fit(train)."
        )
    if isinstance(model, np.ndarray):
        return Answerer(of=partial(checked_shape, what, model))
    if _is_table(model):
        given: Any = model if isinstance(model, list | tuple) and model else [model]
        return tuple(table_of(what, frame, columns) for frame in given)
    if hasattr(model, "predict") or hasattr(model, "scores"):
        refuse_unwrapped(what, model)
        return Answerer(of=lambda population: by_id(what, model, population.users, population.items))
    if hasattr(model, "__array__") or hasattr(model, "detach"):
        return Answerer(of=partial(checked_shape, what, on_host(model)))
    refuse_unwrapped(what, model)
    if callable(model):
        return Answerer(of=lambda p: OfIds(what=what, function=model, users=p.users, items=p.items))
    return (table_of(what, model, columns),)


def _is_table(model: Any) -> bool:
    return isinstance(model, list | tuple | InputTable | Table) or is_frame(model)


def checked_shape(what: str, scores: Any, population: Population) -> Any:
    """Scores of all cells of a population, (U, I)."""
    check_numbers(what, scores)
    expected = len(population.users), len(population.items)
    if scores.shape != expected:
        raise PredictionError(
            f"{what}: its shape is {scores.shape}, and the population has {expected[0]:,} users × {expected[1]:,} "
            "items; give a score for each."
        )
    return scores


def _of_log(what: str, model: str | Mapping[str, str], log: InputTable | None) -> LogColumns:
    """Columns of the log: a score, or by role."""
    if log is None:
        raise PredictionError(
            f"{what}: {quoted(str(model))} names a column of the log, and a Feedback has none; scan the log with "
            "ol.scan, or give a table."
        )
    columns = {"score": model} if isinstance(model, str) else model
    unknown = [role for role in columns if role not in NUMBERS]
    if unknown or not columns:
        named_by = f"got {listing(unknown)}" if unknown else "got none"
        raise PredictionError(
            f"{what}: columns of the log are named by 'score', 'rank', 'above' and 'tied', {named_by}; give such as "
            "{'score': 'column'}."
        )
    chosen = choose(log, {role: columns.get(role) for role in NUMBERS}, required=())
    return LogColumns(columns={role: column for role, column in chosen.items() if role in NUMBERS})


def table_of(what: str, given: Any, columns: Mapping[str, Column]) -> Table:
    """A model's table and its columns; ids may be called as the log's are."""
    if isinstance(given, Table):
        return given
    table = given if isinstance(given, InputTable) else _opened(what, given)
    counts = table_rules.count_columns(table, columns)
    numbers = (
        table_rules.number_columns(table, columns) if not counts or table_rules.has_numbers(table, columns) else {}
    )
    return Table(table=table, columns=table_rules.id_columns(table, columns) | counts | numbers)


def predictions(
    table: Any, *, score: Column = None, rank: Column = None, user: Column = None, item: Column = None
) -> Table:
    """A model's table of predictions whose columns have names of their own.

    Args:
        table: A dataframe of any engine with a row for each pair of user and item.
        score: The column of scores. Without `score` and `rank` both are found by obvious names.
        rank: The column of ranks, 1, 2, 3 … within each user. Columns `above` and `tied` are found by these names.
        user: The column of users; by default the one of an obvious name.
        item: The column of items, likewise.

    Returns:
        A model for `evaluate` and `audit`.

    Raises:
        ColumnError: A column is missing, or none could be found.
        PredictionError: The table is none.

    Examples:
        >>> import polars as pl
        >>> log = ol.read(pl.DataFrame({"user": [1, 1, 2], "item": [7, 9, 7], "rating": [5, 2, 4]}))
        >>> table = pl.DataFrame({"who": [1, 1, 2], "what": [7, 9, 7], "guess": [4, 2, 4]})
        >>> model = ol.predictions(table, score="guess", user="who", item="what")
        >>> result = ol.evaluate({"mine": model}, log, metrics=["mae"], estimators=["naive"])
        >>> round(result["mine", "mae", "naive"].value, 3)
        0.333
    """
    opened_table = _opened("predictions", table)
    numbers = {role: column for role, column in (("score", score), ("rank", rank)) if column is not None}
    chosen = {role: named(opened_table, role, column) for role, column in numbers.items()}
    ids, counts = choose(opened_table, {"user": user, "item": item}, required=table_rules.SIDES), {}
    if not chosen:
        counts = table_rules.count_columns(opened_table, {})
        if not counts or table_rules.has_numbers(opened_table, {}):
            chosen = table_rules.number_columns(opened_table, {})
    return Table(table=opened_table, columns=ids | counts | chosen)


def _opened(what: str, frame: Any) -> InputTable:
    try:
        nw.from_native(frame)
    except TypeError as error:
        raise PredictionError(
            f"{what}: {type(frame).__name__} is neither a recommender (predict, scores), a users × items array, a "
            "dataframe, nor a function of ids; models of other libraries, and pairs of vectors, go through ol.wrap."
        ) from error
    return replace(open_frame(frame), name=what)


def refuse_unwrapped(what: str, model: Any) -> None:
    """Refuse a model of a library that numbers users and items in its own way: its positions are not a log's codes."""
    from openloop.learners.adapters.wrapping import family_of

    family = None if hasattr(model, "scores") else family_of(model)
    if family is not None:
        raise PredictionError(
            f"{what}: {type(model).__name__} is a model of {family.name}, which has users and items in an order of its "
            "own; pass ol.wrap(model, users=, items=), with the ids of its rows."
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Dealing:
    """The tables of models, dealt; and the kinds of ids of each, by name of the model."""

    models: Mapping[str, ModelTables] = field(default_factory=dict[str, ModelTables])
    ids: Mapping[str, ReadIds] = field(default_factory=dict[str, ReadIds])
    tables: Sequence[DealtTable] = ()

    def check(self) -> None:
        """Refuse what is wrong with a table by itself."""
        for table in self.tables:
            table.check()


def deal_models(models: Mapping[str, Model], dealer: Dealer, ids_of: Callable[[], ReadIds]) -> Dealing:
    """Read the tables of all models; `ids_of` makes what notes their ids."""
    dealt: dict[str, ModelTables] = {}
    ids: dict[str, ReadIds] = {}
    tables: list[DealtTable] = []
    for name, model in models.items():
        if isinstance(model, LogColumns):
            dealt[name] = ModelTables(columns={role: f"model {name} {role}" for role in model.columns})
        elif isinstance(model, tuple):
            scores, ranking = table_rules.scores_and_ranks(f"model {name!r}", model)
            ids[name] = ids_of()
            own = [table.dealt(dealer, ids[name]) for table in dict.fromkeys((scores, ranking))]
            dealt[name] = ModelTables(scores=own[0].rows, ranking=own[-1].rows)
            tables += own
    return Dealing(models=dealt, ids=ids, tables=tables)


def numbers_of(model: Any, columns: Mapping[str, Column]) -> set[str]:
    """Which of score and rank a model's tables have, without a look at their rows; what is no table has scores."""
    if isinstance(model, Mapping):
        return {"score", "rank"} & {*model}  # pyright: ignore[reportUnknownArgumentType]
    if isinstance(model, Table):
        return {"score", "rank"} & model.numbers
    if isinstance(model, list | tuple):
        return set[str]().union(*(numbers_of(table, columns) for table in model))  # pyright: ignore[reportUnknownVariableType]
    if isinstance(model, InputTable):
        return table_rules.numbers_in(model.columns, columns)
    if isinstance(model, Answerer):
        return {"score"}
    return (
        table_rules.numbers_in(nw.from_native(model).collect_schema().names(), columns)
        if is_frame(model)
        else {"score"}
    )
