"""Logs as they come: a Feedback in memory, or a log that is scanned; what either knows of itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import polars as pl

from openloop.blocks.block import Block
from openloop.blocks.dealing import SIDES, Dealer, LocalDealer, ReadIds, deal_feedback
from openloop.blocks.joining import Dealt, JoinFacts
from openloop.blocks.population import IdSet, Population, vocabulary_of
from openloop.core.feedback import Array, Feedback, Floats, check_propensities
from openloop.core.levels import LevelSample
from openloop.core.positives import only_positives
from openloop.core.propensities import Propensities, check_exposure, grid_of, predicted_by, row_propensities
from openloop.core.protocols import predicted_block
from openloop.core.vocabulary import Int64s, Vocabulary
from openloop.data import values
from openloop.data.columns import PAIR, InputTable, named
from openloop.data.events import pairs_repeat
from openloop.data.frames import open_frame
from openloop.data.scanning import Log, pairs_of, scan
from openloop.errors import AlignmentError, EmptyError, InputError, LeakError, PredictionError, UnknownIdError
from openloop.moments import remarks, table_rules
from openloop.moments.balancing import balanced_parts
from openloop.moments.parts import excluded_share, one_log, other_users, unscaled
from openloop.moments.question import Question
from openloop.moments.recoding import by_id
from openloop.moments.setting import BALANCED, LEVELS, SHARE, P
from openloop.propensity.checks.by_item import CountModel
from openloop.support.frames import is_frame
from openloop.support.wording import rows_at

ADDED = "openloop_propensity"  # the column that a model adds to a frame
MAX_CELLS = 2**27  # of a grid of p beside a scanned log: 1 GiB
MAX_GROUPS = 50  # a table of strata that a person can read
MAX_LEVELS = 20  # of a uniform sample, whose sums are taken per user and level


def log_input(log: Any, propensities: Any, question: Question) -> LogInput:
    """A log as it will be read."""
    if isinstance(log, Feedback):
        return FeedbackInput(log, propensities, question)
    if isinstance(log, Log):
        return ScanInput(log, propensities, question)
    if isinstance(log, InputTable) or is_frame(log):
        scanned = scan(log)
        assert isinstance(scanned, Log)  # noqa: S101, without a column of positions
        return ScanInput(scanned, propensities, question)
    raise InputError(
        f"evaluate: the log must be a Feedback, a scanned log or a dataframe, got {type(log).__name__}; read it with "
        "ol.read or ol.scan."
    )


class LogInput:
    """What is known of a log before its rows are joined; of a log in memory all, of a scanned one less."""

    table: InputTable | None = None  # whose columns may be models
    names: Mapping[str, str] = {}  # of its columns of ids, which models' tables may have, too
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
    way: str = "none"
    duplicates: str = "error"
    item_rows: Int64s | None = None
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

    def fit(self, facts: JoinFacts, population: Population, notes: list[str]) -> Callable[[Block], Floats] | None:
        """What gives p to the rows of a block, where no column does."""
        del facts, population, notes
        return None

    def with_levels(self, span: tuple[float, float]) -> None:
        """What the span of ratings tells of the log."""

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
        self.grid = None if grid is None or weights.unbalanced else partial(rows_of_grid, grid)
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
        """Scored rows stay candidates: of an excluded part that holds some, only the rest leaves the ranking."""
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


def rows_of_grid(grid: Floats, users: Array) -> Floats:
    """The p of all cells of some users, (u, I); of a broadcast grid all users have the same row, and this stays one."""
    return grid[users] if grid.strides[0] else np.broadcast_to(grid[0], (len(users), grid.shape[1]))


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


@dataclass(slots=True, kw_only=True, eq=False)
class ColumnOfP:
    """A column of p under a floor, checked batch by batch; and what the floor raises."""

    floor: float = 0.0
    rows: int = 0
    raised: int = 0
    weight: float = 0.0  # Σ1/p
    kept: float = 0.0  # Σ1/max(p, floor)

    def __call__(self, column: pl.Series, what: str) -> Floats:
        """The p that weights are computed from."""
        p = values.propensities(column, what)
        if not self.floor:
            return p
        used = np.maximum(p, self.floor)
        self.rows, self.raised = self.rows + len(p), self.raised + int(np.count_nonzero(p < self.floor))
        self.weight, self.kept = self.weight + float((1.0 / p).sum()), self.kept + float((1.0 / used).sum())
        return used

    def add(self, later: ColumnOfP) -> None:
        """What later rows have, too."""
        self.rows, self.raised = self.rows + later.rows, self.raised + later.raised
        self.weight, self.kept = self.weight + later.weight, self.kept + later.kept


class ScanInput(LogInput):
    """A log whose rows stay where they are, and one like it that is excluded."""

    def __init__(self, log: Log, propensities: Any, question: Question) -> None:
        if question.groups:
            raise InputError("audit: groups= has a label for each row of a log in memory; read the log with ol.read.")
        self.dealer = _dealer(log)
        self._log, self._question = log, question
        self._exclude: Log | None = None if question.exclude is None else pairs_of(question.exclude, log, "exclude")
        self.table = log.table
        self.names = {side: log.columns[side] for side in PAIR} if log.table.headed else {}
        self._model: Any = None  # what gives p to the rows of each block
        self._p = ColumnOfP(floor=question.floor)
        self._column = self._propensity(propensities)
        self.weighted = self._column is not None or self._model is not None
        self.columns = () if self._column is None else (P,)
        self.excludes = self._exclude is not None
        self.open_users = isinstance(log.users, int)
        self._ids, self._excluded_ids, self._known = ReadIds(), ReadIds(), dict[str, Any]()
        self._dealt: Dealt
        self._excluded: Dealt | None = None
        self._split, self.duplicates = log.split, log.duplicates

    def _propensity(self, given: Any) -> str | None:
        """The column of p; a model is asked about each block, or was fitted where rows are and adds a column there."""
        if given is None:
            return self._log.columns.get("propensity")
        if isinstance(given, str):
            return named(self._log.table, "propensities", given)
        if isinstance(given, CountModel):
            self._model, self.by_items = given, given.model.fits_items
            return None
        if not hasattr(given, "predict"):
            raise InputError(
                f"evaluate: propensities= of a scanned log must be the name of a column or a fitted model, got "
                f"{type(given).__name__}; add p as a column, or read the log with ol.read."
            )
        self.by_items = bool(getattr(given, "fits_items", False))
        if getattr(given, "frame_", None) is None:
            self._model = given
            return None
        log, roles = self._log, ("user", "item", "rating")
        names = {role: log.columns[role] for role in roles if role in log.columns}
        frame = given.with_column(log.frame(), ADDED, **names)
        self.table = replace(open_frame(frame), name=log.table.name)
        return ADDED

    def new_ids(self) -> ReadIds:
        """Sets for the sides whose ids are not known."""
        sides = {"user": self._log.users, "item": self._log.items}
        self._ids = ReadIds(sets={side: IdSet() for side, known in sides.items() if not isinstance(known, Vocabulary)})
        sample = self._question.sample
        for side, ids in self._ids.sets.items() if isinstance(sample, Feedback) else ():
            known: Any = (sample.users if side == "user" else sample.items).ids
            ids.add(pl.Series(known if known.dtype.kind == "i" else known.tolist()))
        return self._ids

    def deal(self, models: Mapping[str, str], ids: ReadIds) -> tuple[Dealt, Dealt | None]:
        """The rows by bucket, numbered as they were."""
        log, exclude = self._log, self._exclude
        columns = {role: log.columns[role] for role in ("user", "item", "rating") if role in log.columns}
        checks: dict[str, Any] = {"rating": values.ratings, P: self._p, "time": values.times}
        if self._column is not None:
            columns[P] = self._column
        if log.duplicates != "error" and "time" in log.columns:
            columns["time"] = log.columns["time"]
        checks |= {role: partial(_numbers, log.table.name) for role in models}
        assert self.table is not None  # noqa: S101, a scanned log has one
        self._dealt = self.dealer.deal(
            self.table, columns | dict(models), checks, ids, is_log=True, positive=log.positive
        )
        if exclude is not None:
            roles = SIDES if exclude.positive is None else (*SIDES, "rating")
            pairs = {role: exclude.columns[role] for role in roles}
            self._excluded_ids = ReadIds(sets=ids.sets)
            self._excluded = self.dealer.deal(
                exclude.table, pairs, {"rating": values.ratings}, self._excluded_ids, is_log=True,
                positive=exclude.positive,
            )  # fmt: skip
        return self._dealt, self._excluded

    def check(self) -> None:
        """Refuse a log without rows, and ids of two kinds."""
        log, exclude = self._log, self._exclude
        if not self._dealt.n_rows:
            positives = "" if log.positive is None else f" with a rating of positive={log.positive:g} or more"
            raise EmptyError(f"{log.table.name}: no rows{positives}; an estimate needs at least one observed cell.")
        self.n_rows = self._dealt.n_rows
        if exclude is None or self._excluded is None:
            return
        self.n_excluded = self._excluded.n_rows
        for side, kind in self._excluded_ids.kinds.items():
            if kind != self._ids.kinds[side]:
                raise InputError(
                    f"{exclude.table.name}: its {side} ids are {kind}, the log's {self._ids.kinds[side]}; cast one "
                    "side."
                )

    def population(self, ids: ReadIds, notes: list[str]) -> Population:
        """The known ids, or those that were read; a number counts also users and items that no row shows."""
        log, found, sizes = self._log, list[Vocabulary](), list[int]()
        for side, known in (("user", log.users), ("item", log.items)):
            ids_found = known if isinstance(known, Vocabulary) else vocabulary_of(ids.sets[side].ids)
            if isinstance(known, int):
                ids_found = _counted_from_zero(ids_found, known, side)
            found.append(ids_found)
            sizes.append(known if isinstance(known, int) else len(ids_found))
        if log.users is None or log.items is None:
            notes.append(
                f"the population was taken to be the {sizes[0]:,} users × {sizes[1]:,} items in the log; pass users= "
                "and items= if it is larger"
            )
        self._known = {"user": found[0], "item": found[1]}
        return Population(users=found[0], items=found[1], n_users=sizes[0], n_items=sizes[1])

    def refuse(self, facts: JoinFacts) -> None:
        """Pairs that are there more than once, and ids that the population lacks; and how the log was split."""
        named_logs = [(self._log.table.name, facts.log)]
        named_logs += [] if self._exclude is None else [(self._exclude.table.name, facts.exclude)]
        for name, faults in named_logs:
            if faults.n_strange:
                raise UnknownIdError(
                    f"{name}: {faults.n_strange:,} rows have ids that are not in the population, in "
                    f"{rows_at(list(faults.strange))}; pass users= and items= with all ids, or drop those rows."
                )
            if faults.pairs:
                numbers = list(faults.rows) if isinstance(self.dealer, LocalDealer) else []  # frames of Spark have none
                raise pairs_repeat(name, faults.pairs, faults.first, numbers)
        self.n_rows = int(facts.rows_of_items.sum())  # each pair once, as shares of a log count its rows
        self.n_excluded = None if self._exclude is None else int(facts.excluded_of_items.sum())
        self._resolve_split(facts)

    def _resolve_split(self, facts: JoinFacts) -> None:
        """How the log and what is excluded were one log: as said, or as their pairs tell."""
        log, exclude = self._log, self._exclude
        self.scaled, self.share, self._t = log.share is not None, log.share, 0.0
        if exclude is None:
            return
        if log.origin is not None and log.origin is exclude.origin:  # parts of `ol.split`
            self._resolve_parts(facts, exclude)
            return
        way = self._split or ("none" if facts.overlap else "random")
        if way != "none" and facts.overlap:
            raise InputError(
                f"{log.table.name}: split={way!r}, but {facts.overlap:,} pairs are in it and in what is excluded, "
                "which parts of one log never share; drop them from one, or pass split='none'."
            )
        if facts.overlap == self.n_rows:
            raise LeakError(
                "exclude: holds every row of the log, so models would be judged by what they were trained on; judge "
                "them by rows that were held out."
            )
        self.is_one_log = way == "random"
        total = self.n_rows + (self.n_excluded or 0)
        if way == "random":
            self.share, self._t = self.n_rows / total, (self.n_excluded or 0) / total
            if not facts.excluded_of_scored:  # whole users were split: no scored user has an item to leave out
                self.excludes, self.whole_users, self._t = False, True, 0.0
        self.scaled = self.scaled and way != "time"
        self.share = self.share if self.scaled else None
        self.way = way

    def _resolve_parts(self, facts: JoinFacts, exclude: Log) -> None:
        """The shares of two parts of `ol.split`, as they came out."""
        if self._split == "user":  # no scored user has an item to leave out
            self.excludes = False
        elif self.share is not None and exclude.share is not None:
            total = self.n_rows + (self.n_excluded or 0)
            self.share, self._t = self.n_rows / total, (self.n_excluded or 0) / total
        self.is_one_log, self.way = self.share is not None, "random" if self.share is not None else "time"

    def excluded_share(self, facts: JoinFacts, over: Any, population: Population) -> float | Floats:
        """The excluded part's share of the log."""
        return self._t

    def rows_of_items(self, scored: Int64s, *, dropped: int) -> Int64s:
        """Of the log and, where both are one log, of what is excluded."""
        return scored if self.item_rows is None else self.item_rows

    def fit(self, facts: JoinFacts, population: Population, notes: list[str]) -> Callable[[Block], Floats] | None:
        """What gives p to the rows of a block, where no column does."""
        is_one = self._exclude is not None and self.way != "none"
        counts = facts.rows_of_items + (facts.excluded_of_items if is_one else 0)
        self.item_rows = counts
        if isinstance(self._model, CountModel):
            model = self._model
            notes += [
                f"{model.name}: {note}"
                for note in model.model.fit_counts(counts.astype(np.float64), population.n_users)
            ]
            of_item = model.fitted
            self.grid = lambda users: np.broadcast_to(of_item, (len(users), len(of_item)))
            return lambda block: of_item[block.item]
        if self._model is None:
            if self._p.floor:
                self.floored, self.kept_weight = self._p.raised / self._p.rows, self._p.kept / self._p.weight
            return None
        if grids_like(self._model, population):  # as in memory, shares of strata are then those of all cells
            grid = grid_of(self._model)
            self.grid = None if grid is None else lambda users: grid[users]
        return PredictedP(model=self._model, population=population)

    def with_levels(self, span: tuple[float, float]) -> None:
        """What ratings tell of the log: of positives none says that something was not liked."""
        self.positives = only_positives(*span)

    def notes(self, facts: JoinFacts, source: Any) -> Iterator[str]:
        """What the reader of estimates should know about the log."""
        yield from [remarks.POSITIVES] if self.positives else []
        yield from self._log.notes
        if self.weighted and not self.scaled:
            yield remarks.up_to_factor(remarks.BY_TIME, excluded=self.excludes)
        if facts.overlap:
            yield remarks.still_candidates(facts.overlap)
        if self._exclude is None or self._split is not None or self._log.origin is not None:
            return
        if self.way == "none":
            yield f"log and excluded log share {facts.overlap:,} pairs, so they are treated as two separate logs"
        elif self.share is not None:
            yield (
                "log and excluded log share no pair, so they are treated as one log split at random, "
                f"{self.share:.1%} and {self._t:.1%} of it; otherwise scan the log with split='time' or split='none'"
            )

    def kind_of(self, side: str) -> str:
        """Whether the ids of a side are integers or text."""
        return self._ids.kinds[side]

    def some_ids(self) -> list[Any]:
        """A user and an item."""
        return [self._known[side].ids[:1].tolist()[0] for side in ("user", "item")]


def _dealer(log: Log) -> Dealer:
    """Executors for frames of Spark, if they have openloop; else this machine."""
    if log.table.frame is None or not log.executors:
        return LocalDealer()
    from openloop.blocks.spark import SparkDealer

    return SparkDealer(log.table.frame.sparkSession)


def grids_like(model: Any, population: Population) -> bool:
    """Whether a fitted model has the p of all cells of a population, and memory for them."""
    known = getattr(model, "users_", None), getattr(model, "items_", None)
    cells = population.n_users * population.n_items
    return known == (population.users, population.items) and cells <= MAX_CELLS


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PredictedP:
    """The p of a block's rows by a fitted model."""

    model: Any
    population: Population

    def __call__(self, block: Block) -> Floats:
        """p in the order of the block's rows."""
        if not len(block):  # which no Feedback can be made of
            return np.empty(0)
        users, items = self.population.users, self.population.items
        cell = block.users[block.user].astype(np.int64) * len(items) + block.item
        order = np.argsort(cell)
        log = Feedback(
            user=(cell[order] // len(items)).astype(np.int32), item=block.item[order], rating=block.rating[order],
            users=users, items=items,
        )  # fmt: skip
        made = predicted_by("evaluate", self.model, log)
        if made.base is not None:
            raise InputError("evaluate: balanced propensities need the log in memory; read it with ol.read.")
        p = np.empty(len(cell))
        p[order] = made.used
        return p


def _counted_from_zero(ids: Vocabulary, n: int, side: str) -> Vocabulary:
    """The ids 0 … n − 1 where all that were read are among them, or all of them were read; else those that were read.

    Where all n are known, others that a model's table brings along are strangers.
    """
    is_from_zero = ids.ids.dtype.kind == "i" and int(ids.ids[0]) >= 0
    if is_from_zero and (int(ids.ids[-1]) < n or (len(ids) > n and int(ids.ids[n - 1]) == n - 1)):
        return Vocabulary.range(n)
    if len(ids) > n:
        raise InputError(
            f"evaluate: {side}s={n:,}, and the log has {len(ids):,}; give the size of the whole population."
        )
    return ids


def _numbers(what: str, column: pl.Series, _where: str) -> Floats:
    return table_rules.written_numbers(what, column)
