"""Logs as they come: a Feedback in memory, or a log that is scanned; what either knows of itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from openloop.blocks.dealing import Dealer, LocalDealer, ReadIds, deal_feedback
from openloop.blocks.joining import Dealt, JoinFacts
from openloop.blocks.population import IdSet, Population, vocabulary_of
from openloop.core.feedback import Array, Feedback, Floats, check_propensities
from openloop.core.levels import LevelSample
from openloop.core.propensities import Propensities, check_exposure, grid_of, row_propensities
from openloop.core.protocols import predicted_block
from openloop.core.vocabulary import Int64s, Vocabulary
from openloop.data import values
from openloop.data.columns import InputTable, choose
from openloop.data.events import pairs_repeat
from openloop.data.frames import open_frame
from openloop.data.scanning import Log
from openloop.errors import AlignmentError, EmptyError, InputError, LeakError, PredictionError
from openloop.moments.parts import excluded_share, one_log, other_users, unscaled
from openloop.moments.setting import BALANCED, LEVELS, SHARE, P
from openloop.sources import remarks, rules
from openloop.sources.balancing import balanced_parts
from openloop.sources.question import Question
from openloop.sources.recoding import by_id
from openloop.support.arguments import are_counts
from openloop.support.frames import is_frame

MAX_GROUPS = 50  # a table of strata that a person can read
MAX_LEVELS = 20  # of a uniform sample, whose sums are taken per user and level


def log_input(log: Any, propensities: Any, question: Question) -> LogInput:
    """A log as it will be read."""
    if isinstance(log, Feedback):
        return FeedbackInput(log, propensities, question)
    if isinstance(log, Log):
        return ScanInput(log, propensities, question)
    if isinstance(log, InputTable) or is_frame(log):
        return ScanInput(scanned(log, question, propensities), propensities, excluded_scan(question, log))
    raise InputError(
        f"evaluate: the log must be a Feedback, a scanned log or a dataframe, got {type(log).__name__}; read it with "
        "ol.read or ol.scan."
    )


def scanned(frame: Any, question: Question, propensity: Any) -> Log:
    """A frame as a log."""
    table = frame if isinstance(frame, InputTable) else replace(open_frame(frame), name="the log")
    asked = {"user": question.user, "item": question.item, "rating": question.rating, "propensity": propensity}
    population = question.population
    if population is not None and not are_counts(population):
        raise InputError(f"evaluate: population= must be (users, items), two whole numbers, got {population!r}.")
    users, items = (None, None) if population is None else (int(v) for v in population)
    share, _ = question.shares
    return Log(
        table=table, columns=choose(table, {k: c for k, c in asked.items() if k != "propensity" or isinstance(c, str)}),
        users=users, items=items, share=share if question.scaled else None, by_items=question.by_items,
    )  # fmt: skip


def excluded_scan(question: Question, log: Any) -> Question:
    """The question with the excluded frame as a log."""
    if question.exclude is None or isinstance(question.exclude, Log):
        return question
    table = replace(open_frame(question.exclude), name="exclude")
    columns = rules.id_columns(table, question.columns)
    return replace(question, exclude=Log(table=table, columns=columns, share=question.shares[1]))


class LogInput:
    """What is known of a log before its rows are joined; of a log in memory all, of a scanned one less."""

    table: InputTable | None = None  # whose columns may be models
    columns: tuple[str, ...] = ()  # of the blocks, beside ratings
    open_users: bool = False  # whether users of models' tables are users of the population
    weighted: bool = False
    scaled: bool = True
    share: float | None = 1.0
    unbalanced: Mapping[str, float] = {}
    sample: LevelSample | None = None
    rank_sample: LevelSample | None = None
    groups: Mapping[str, tuple[str, ...]] = {}
    split_words: str = remarks.BY_TIME
    whole_users: bool = False
    by_items: bool = False
    positives: bool = False
    floored: float | None = None
    kept_weight: float | None = None
    grid: Callable[[Array], Floats] | None = None
    is_one_log: bool = False  # whether what is excluded is a part of the same log, split off at random
    excludes: bool = False
    n_rows: int = 0
    n_excluded: int | None = None
    in_memory: Feedback | None = None
    excluded_in_memory: Feedback | None = None

    def new_ids(self) -> ReadIds:
        """What notes the ids of its rows."""
        raise NotImplementedError

    dealer: Dealer

    def deal(self, models: Mapping[str, str], ids: ReadIds) -> tuple[Dealt, Dealt | None]:
        """Its rows and those that are excluded, by bucket; `models` are columns that models are."""
        raise NotImplementedError

    def check(self) -> None:
        """Refuse what is wrong with its rows by themselves, once all are read."""

    def population(self, ids: ReadIds, notes: list[str]) -> Population:
        """The users and items."""
        raise NotImplementedError

    def refuse(self, facts: JoinFacts) -> None:
        """Refuse what the join found wrong."""

    def excluded_share(self, facts: JoinFacts, over: Any, population: Population) -> float | Floats:
        """t: the probability that the excluded part holds an observed row, 0 for a part of another log."""
        raise NotImplementedError

    def rows_of_items(self, scored: Int64s, *, dropped: int) -> Int64s:
        """The rows of each item in the whole log."""
        raise NotImplementedError

    def trained_rows(self, facts: JoinFacts) -> Int64s:
        """The rows of each item that models may have been trained on."""
        return facts.excluded_of_items if self.excludes else facts.rows_of_items

    def imputed_ratings(self, given: Any, population: Population) -> Callable[[Int64s], Array] | None:
        """Imputed ratings of all items for some users."""
        return None if given is None else _imputed_ratings(given, population)

    def notes(self, facts: JoinFacts, source: Any) -> Iterator[str]:
        """What the reader of estimates should know about the log."""
        raise NotImplementedError

    def kind_of(self, side: str) -> str:
        """Whether the ids of a side are integers or text."""
        raise NotImplementedError

    def some_ids(self) -> list[Any]:
        """A user and an item."""
        raise NotImplementedError


# -- in memory -----------------------------------------------------------------------------------------------


class FeedbackInput(LogInput):
    """A Feedback, its propensities and the Feedback that is excluded."""

    def __init__(self, log: Feedback, propensities: Any, question: Question) -> None:
        _check_feedback(log, question)
        self.dealer = self._local = LocalDealer()
        self._log, self._question, self._given = log, question, propensities
        self._exclude: Feedback | None = question.exclude
        if self._exclude is not None and other_users(log, self._exclude):
            self._exclude = None  # whole users were split: no scored user has an item to leave out
        self.in_memory, self.excluded_in_memory = log, self._exclude
        p, grid, made = _propensities(propensities, log)
        self.weighted, self.scaled, self.n_rows = p is not None, log.share is not None, len(log)
        self.sample = sample_of(made)
        weights = weight_columns(log, self._exclude, p, made)
        self._columns, self.unbalanced, self.rank_sample = weights.columns, weights.unbalanced, weights.rank_sample
        self.share = float(log.share[0]) if log.share is not None and not np.ptp(log.share) else None
        self.is_one_log = log.share is not None and question.exclude is not None and one_log(log, question.exclude)
        self.excludes, self.n_excluded = self._exclude is not None, _length(question.exclude)
        self.whole_users, self.positives, self.split_words = "user" in log.split, log.positives, unscaled(log)
        if made is not None:
            self.by_items = made.by_items
            self.floored, self.kept_weight = (made.clipped, made.kept_weight) if made.floor else (None, None)
        self.grid = None if grid is None or weights.unbalanced else lambda users: grid[users]
        for name, labels in question.groups.items():
            self.groups, self._columns = _grouped(self.groups, self._columns, name, labels, log)
        if self.sample is not None:
            self.groups = {**self.groups, LEVELS: tuple(str(level) for level in self.sample.levels)}
        self.columns = tuple(self._columns)

    def new_ids(self) -> ReadIds:
        return ReadIds()

    def deal(self, models: Mapping[str, str], ids: ReadIds) -> tuple[Dealt, Dealt | None]:
        del models, ids  # no column of a Feedback is a model, and its ids are known
        population, budget = self._population, self._local.budget
        dealt = deal_feedback(self._log, self._columns, population, budget)
        return dealt, None if self._exclude is None else deal_feedback(self._exclude, {}, population, budget)

    def population(self, ids: ReadIds, notes: list[str]) -> Population:
        del ids, notes
        return self._population

    @property
    def _population(self) -> Population:
        if not hasattr(self, "_known"):
            self._known = Population.of(self._log.users, self._log.items)
        return self._known

    def excluded_share(self, facts: JoinFacts, over: Any, population: Population) -> float | Floats:
        """Scored rows stay candidates: of an excluded part that holds some of them, only the rest leaves the ranking."""
        return excluded_share(self._log, self._exclude, facts.excluded)

    def rows_of_items(self, scored: Int64s, *, dropped: int) -> Int64s:
        return scored if dropped else self._log.rows_of_items

    def trained_rows(self, facts: JoinFacts) -> Int64s:
        trained = self._log if self._question.trained is None else self._question.trained
        return np.bincount(trained.item, minlength=self._log.n_items)

    def notes(self, facts: JoinFacts, source: Any) -> Iterator[str]:
        log, exclude, p = self._log, self._question.exclude, self._given
        yield from [remarks.POSITIVES] if log.positives else []
        yield from log.notes
        if isinstance(p, np.ndarray) and p.ndim == 1 and bool(np.any(np.diff(log.row) < 0)):
            yield "propensities= was taken in Feedback order; an array in input order goes through log.align(array)"
        if log.share is None and self.weighted:
            yield remarks.up_to_factor(unscaled(log), excluded=exclude is not None)
        if exclude is not None and facts.overlap:
            yield remarks.still_candidates(facts.overlap)
        if exclude is not None and self.weighted and not one_log(log, exclude):
            yield remarks.NO_PART

    def kind_of(self, side: str) -> str:
        return _kind(self._log.users if side == "user" else self._log.items)

    def some_ids(self) -> list[Any]:
        return [self._log.users.ids[:1].tolist()[0], self._log.items.ids[:1].tolist()[0]]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class WeightColumns:
    """What each row's weight is made of, as columns; and what is known of balanced weights."""

    columns: dict[str, Array]
    unbalanced: Mapping[str, float] = field(default_factory=dict[str, float])
    rank_sample: LevelSample | None = None


def weight_columns(
    log: Feedback, exclude: Feedback | None, p: Floats | None, made: Propensities | None
) -> WeightColumns:
    """The columns of p, of shares that differ by row, and of weights that were balanced."""
    columns: dict[str, Array] = {} if p is None else {P: p}
    if log.share is not None and np.ptp(log.share):
        columns[SHARE] = np.asarray(log.share)
    if made is None or made.base is None:
        return WeightColumns(columns=columns)
    balanced = balanced_parts(log, exclude, made, sample_of(made))
    columns |= {BALANCED[on]: values for on, values in balanced.probability.items()}
    return WeightColumns(columns=columns, unbalanced=balanced.unbalanced, rank_sample=balanced.rank_sample)


def sample_of(made: Propensities | None) -> LevelSample | None:
    """The uniform sample that propensities were fitted with, in few levels."""
    return None if made is None or made.sample is None else made.sample.grouped(MAX_LEVELS)


def _length(log: Any) -> int | None:
    return None if log is None else len(log)


def _kind(ids: Vocabulary) -> str:
    return "integers" if ids.ids.dtype.kind == "i" else "text"


def _check_feedback(log: Feedback, question: Question) -> None:
    if log.uniform:
        raise LeakError(
            "evaluate: this log is marked as the uniform sample of a propensity model, and may not be scored; "
            "score another part, or read it without uniform=True."
        )
    exclude = question.exclude
    if exclude is None:
        return
    if not isinstance(exclude, Feedback):
        raise InputError(f"exclude: give the Feedback whose items leave the ranking, got {type(exclude).__name__}.")
    if exclude.users != log.users or exclude.items != log.items:
        msg = "exclude: its users and items differ from the scored log's; read it with like=log, or split one log."
        raise InputError(msg)


def _grouped(
    groups: Mapping[str, tuple[str, ...]], columns: dict[str, Array], name: str, labels: Any, log: Feedback
) -> tuple[dict[str, tuple[str, ...]], dict[str, Array]]:
    """The labels of a grouping, sorted, and the code of each row, beside the others."""
    given = np.asarray(labels)
    if given.shape != (len(log),):
        raise AlignmentError(
            f"groups[{name!r}]: must have one label for each of {len(log):,} rows, in Feedback order, got shape "
            f"{given.shape}; feedback.align(array) brings input order there."
        )
    names, codes = np.unique(given.astype(str), return_inverse=True)
    if len(names) > MAX_GROUPS:
        raise InputError(f"groups[{name!r}]: {len(names):,} labels are too many; merge them into at most {MAX_GROUPS}.")
    return {**groups, name: tuple(names.tolist())}, columns | {f"group {name}": codes.astype(np.int64)}


def _propensities(given: Any, log: Feedback) -> tuple[Floats | None, Floats | None, Propensities | None]:
    """The probability of each row, of the whole grid where it is known, and what they were made as."""
    if given is None:
        return log.propensity, None, None
    if isinstance(given, np.ndarray):
        return *_from_array(given, log), None
    made = row_propensities("evaluate", given, log)
    check_exposure("evaluate", made, log)
    return made.used, _grid(given, made.floor, log), made


def _grid(given: Any, floor: float, log: Feedback) -> Floats | None:
    """The p of every cell; a broadcast grid stays one."""
    grid = None if isinstance(given, Propensities) else grid_of(given)
    if grid is None:  # shares of strata are then estimated from the weights
        return None
    if grid.shape != (log.n_users, log.n_items):
        raise AlignmentError(
            f"evaluate: {type(given).__name__}.matrix() must be users × items, {(log.n_users, log.n_items)}, got "
            f"{grid.shape}; fit the model on this log, or leave matrix() out."
        )
    return np.maximum(grid, floor) if floor else grid


def _from_array(given: Any, log: Feedback) -> tuple[Floats, Floats | None]:
    if given.shape == (log.n_users, log.n_items):
        grid = given.astype(np.float64)
        check_propensities("propensities", grid.ravel(), "give the probability of every cell.")
        return grid[log.user, log.item], grid
    if given.shape == (len(log),):
        return Propensities(values=given).used, None
    raise AlignmentError(
        f"evaluate: an array of propensities must be the grid {(log.n_users, log.n_items)} or one value per row, in "
        f"Feedback order ({len(log):,},), got {given.shape}; feedback.align(array) brings input order there."
    )


def _imputed_ratings(given: Any, population: Population) -> Callable[[Int64s], Array]:
    """Imputed ratings from a U × I array or a recommender."""
    shape = len(population.users), len(population.items)
    if isinstance(given, np.ndarray):
        if given.shape != shape or not np.isfinite(given).all():
            raise PredictionError(f"imputation: needs a finite number for every cell of {shape}, got {given.shape}.")
        return lambda users: given[users]
    if not hasattr(given, "scores"):
        raise InputError(f"imputation: give a recommender with scores, or an array, got {type(given).__name__}.")
    model = by_id("imputation", given, population.users, population.items)

    def ratings(users: Int64s) -> Array:
        block = predicted_block(model, users.astype(np.int64))
        if block.shape != (len(users), shape[1]) or not np.isfinite(block).all():
            raise PredictionError("imputation: its ratings must be a finite number for every item; repair the model.")
        return block

    return ratings


# -- scanned -------------------------------------------------------------------------------------------------


class ScanInput(LogInput):
    """A log whose rows stay where they are, and one like it that is excluded."""

    def __init__(self, log: Log, propensities: Any, question: Question) -> None:
        self.dealer = _dealer(log)
        self._log, self._question = log, question
        self._exclude: Log | None = question.exclude
        self.table = log.table
        self._p = log.columns.get("propensity") if propensities is None else propensities
        if self._p is not None and not isinstance(self._p, str):
            raise InputError(
                f"evaluate: of a scanned log, propensities= is the name of a column, got {type(self._p).__name__}; add "
                "them as a column, or read the log with ol.read."
            )
        self.weighted = self._p is not None
        self.columns = (P,) if self.weighted else ()
        self.scaled, self.share = log.share is not None, log.share
        self.excludes, self.by_items, self.positives = self._exclude is not None, log.by_items, log.positives
        self._excluded_share = 0.0 if self._exclude is None else self._exclude.share or 0.0
        self.is_one_log = self._exclude is not None and log.origin is not None and log.origin is self._exclude.origin
        self.open_users = isinstance(log.users, int)
        self._ids = self._excluded_ids = ReadIds()
        self._dealt: Dealt
        self._excluded: Dealt | None = None
        self._population_found: Population | None = None

    def new_ids(self) -> ReadIds:
        sides = {"user": self._log.users, "item": self._log.items}
        self._ids = ReadIds(sets={side: IdSet() for side, known in sides.items() if not isinstance(known, Vocabulary)})
        return self._ids

    def deal(self, models: Mapping[str, str], ids: ReadIds) -> tuple[Dealt, Dealt | None]:
        log, exclude = self._log, self._exclude
        columns = {role: log.columns[role] for role in ("user", "item", "rating") if role in log.columns}
        checks: dict[str, Any] = {"rating": values.ratings, P: values.propensities}
        if self._p is not None:
            columns[P] = self._p
        checks |= {role: partial(_numbers, log.table.name) for role in models}
        self._dealt = self.dealer.deal(log.table, columns | dict(models), checks, ids, numbered=True)
        if exclude is not None:
            pairs = {side: exclude.columns[side] for side in ("user", "item")}
            self._excluded_ids = replace_kinds(ids)
            self._excluded = self.dealer.deal(exclude.table, pairs, {}, self._excluded_ids, numbered=True)
        return self._dealt, self._excluded

    def check(self) -> None:
        log, exclude, kinds = self._log, self._exclude, self._ids.kinds
        if not self._dealt.n_rows:
            raise EmptyError(f"{log.table.name}: no rows; an estimate needs at least one observed cell.")
        self.n_rows = self._dealt.n_rows
        if exclude is None or self._excluded is None:
            return
        self.n_excluded = self._excluded.n_rows
        for side, kind in self._excluded_ids.kinds.items():
            if kind != kinds[side]:
                raise InputError(
                    f"{exclude.table.name}: its {side} ids are {kind}, the log's {kinds[side]}; cast one side."
                )

    def population(self, ids: ReadIds, notes: list[str]) -> Population:
        users, items = (
            known if isinstance(known, Vocabulary) else vocabulary_of(ids.sets[side].ids)
            for side, known in (("user", self._log.users), ("item", self._log.items))
        )
        n_users, n_items = (
            known if isinstance(known, int) else len(found)
            for known, found in ((self._log.users, users), (self._log.items, items))
        )
        self._population_found = Population(users=users, items=items, n_users=n_users, n_items=n_items)
        return self._population_found

    def refuse(self, facts: JoinFacts) -> None:
        """Pairs that are there more than once."""
        named = [(self._log.table.name, facts.log)]
        named += [] if self._exclude is None else [(self._exclude.table.name, facts.exclude)]
        for name, faults in named:
            if faults.pairs:
                numbers = list(faults.rows) if isinstance(self.dealer, LocalDealer) else []  # frames of Spark have none
                raise pairs_repeat(name, faults.pairs, faults.first, numbers)

    def excluded_share(self, facts: JoinFacts, over: Any, population: Population) -> float | Floats:
        return self._excluded_share

    def rows_of_items(self, scored: Int64s, *, dropped: int) -> Int64s:
        return scored if self._log.item_rows is None else self._log.item_rows

    def notes(self, facts: JoinFacts, source: Any) -> Iterator[str]:
        yield from [remarks.POSITIVES] if self.positives else []
        yield from self._log.notes
        if self.weighted and not self.scaled:
            yield remarks.up_to_factor(remarks.BY_TIME, excluded=self.excludes)
        if facts.overlap:
            yield remarks.still_candidates(facts.overlap)

    def kind_of(self, side: str) -> str:
        return self._ids.kinds[side]

    def some_ids(self) -> list[Any]:
        found = self._population_found
        return [] if found is None else [found.users.ids[:1].tolist()[0], found.items.ids[:1].tolist()[0]]


def _dealer(log: Log) -> Dealer:
    """Executors for frames of Spark, if they have openloop; else this machine."""
    if log.table.frame is None or not log.executors:
        return LocalDealer()
    from openloop.blocks.spark import SparkDealer

    return SparkDealer(log.table.frame.sparkSession)


def _numbers(what: str, column: Any, _where: str) -> Floats:
    from openloop.sources.rules import written_numbers

    return written_numbers(what, column)


def replace_kinds(ids: ReadIds) -> ReadIds:
    """The same sets of ids, for another table, whose kinds may differ."""
    return ReadIds(sets=ids.sets)
