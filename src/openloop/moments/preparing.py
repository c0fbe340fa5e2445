"""From models and a log to a `BlockSource`: tables are read once, joined in blocks, and checked; models are asked."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from openloop.blocks.block import Block, Outcome, Pairs
from openloop.blocks.dealing import SIDES, ReadIds
from openloop.blocks.joining import UNLISTED, Join, JoinFacts, TableFacts
from openloop.blocks.local import Blocks
from openloop.blocks.population import Population
from openloop.core.feedback import Floats
from openloop.core.metric import default_threshold
from openloop.core.vocabulary import Int64s
from openloop.errors import EmptyError, PredictionError, UnknownIdError, listing
from openloop.metrics.rating import midpoints
from openloop.moments import remarks, table_rules
from openloop.moments.facts import LevelCounts
from openloop.moments.imputation import Imputation
from openloop.moments.inputs import Answerer, Dealing, LogColumns, Model, deal_models, opened
from openloop.moments.logs import LogInput, log_input
from openloop.moments.models import Asked, Masked
from openloop.moments.question import Question
from openloop.moments.recoding import told
from openloop.moments.setting import P, Setting, relevant_places
from openloop.moments.source import BlockSource, Subject
from openloop.moments.table_rules import Coverage


def block_source(
    models: Mapping[str, Any], log: Any, propensities: Any, question: Question
) -> tuple[BlockSource, list[str]]:
    """The source of a log, wherever it lives, and what the reader of its estimates should know."""
    return _Preparation(models, log, propensities, question).source()


@dataclass(slots=True, kw_only=True, eq=False)
class _Said:
    """What models say of the rows of all blocks, beyond what the join told."""

    tables: dict[str, TableFacts] = field(default_factory=dict[str, TableFacts])
    masked: dict[str, Masked] = field(default_factory=dict[str, Masked])
    flat: dict[str, int] = field(default_factory=dict[str, int])


class _Preparation:
    """The way from inputs to a source, step by step."""

    def __init__(self, models: Mapping[str, Any], log: Any, propensities: Any, question: Question) -> None:
        self.question, self.notes = question, list[str]()
        if question.device is not None:
            from openloop.kernels.cuda.devices import device_of

            device_of("evaluate", question.device)
        self.log: LogInput = log_input(log, propensities, question)
        columns = {**self.log.names, **question.columns}
        self.models: dict[str, Model] = {
            name: opened(name, model, columns, self.log.table) for name, model in models.items()
        }

    def source(self) -> tuple[BlockSource, list[str]]:
        """The source, and notes."""
        question = self.question
        try:
            blocks, population, dealing = self._joined()
            facts = blocks.facts
            self._refuse(facts, dealing)
            if facts.excluded and not self.log.excludes:
                _run(blocks.update(readmitted))
            asked = self._asked(population)
            levels = LevelCounts.of_parts(facts.levels)
            self.log.with_levels(levels.span)
            p = self.log.fit(facts, population, self.notes)
            threshold = default_threshold(levels.values) if question.threshold is None else float(question.threshold)
            said = self._ask(blocks, asked, population, threshold, p)
            self._note_masks(said, levels, threshold)
            predicted = self._predicted(said)
            dropped, filled = self._without_gaps(blocks, predicted, said, levels)
            coverage = {
                name: self._coverage(name, said.tables[name], is_predicted=name in predicted) for name in self.models
            }
            subject = self._subject(
                blocks, population, asked, coverage, levels, threshold, facts, said, dropped, filled
            )
        except BaseException:
            self.log.dealer.close()
            raise
        source = BlockSource(subject)
        return source, self._all_notes(source, asked, facts, said)

    # -- reading and joining ---------------------------------------------------------------------------------

    def _joined(self) -> tuple[Blocks, Population, Dealing]:
        """All tables read once, and joined."""
        log, question = self.log, self.question
        columns = {
            f"model {name} {role}": column
            for name, model in self.models.items()
            if isinstance(model, LogColumns)
            for role, column in model.columns.items()
        }
        ids = log.new_ids()
        dealt, exclude = log.deal(columns, ids)
        shared_users = ids.sets.get("user") if log.open_users else None
        shared_items = ids.sets.get("item")

        def ids_of() -> ReadIds:
            sets = {"user": shared_users, "item": shared_items}
            return ReadIds(sets={side: ids for side, ids in sets.items() if ids is not None})

        dealing = deal_models(self.models, log.dealer, ids_of)
        log.dealer.finish()
        log.check()
        dealing.check()
        population = log.population(ids, self.notes)
        join = Join(
            population=population, log=dealt, exclude=exclude, models=dealing.models, columns=(*log.columns,),
            kinds=frozenset(question.kinds), keep=question.keeps_tables, duplicates=log.duplicates,
        )  # fmt: skip
        return log.dealer.join(join), population, dealing

    def _refuse(self, facts: JoinFacts, dealing: Dealing) -> None:
        """Refuse what the join found, the log first; in the words that do not depend on where rows are."""
        self.log.refuse(facts)
        for name, found in facts.tables.items():
            what = f"model {name!r}"
            if name in dealing.ids:
                _refuse_strangers(what, found, self.log, dealing.ids[name])
            if found.repeats:
                raise PredictionError(table_rules.pairs_twice(what, found.repeats, found.repeated))
            if found.bad_ranks:
                raise table_rules.bad_ranks(what)
            if found.bad_counts:
                raise table_rules.bad_counts(what, ("above", "tied"), found.bad_counts)
            if found.uncounted and found.most:
                raise table_rules.incomplete(what, f"{found.uncounted:,} scored rows have no counts")
            if found.excluded and not self.question.checked:
                raise table_rules.ranks_excluded(what, found.excluded)
            if strange := _strangers(what, found):
                self.notes.append(strange)

    # -- asking models ---------------------------------------------------------------------------------------

    def _asked(self, population: Population) -> dict[str, Asked]:
        n_items = len(population.items)
        return {
            name: Asked(name=name, model=model.of(population), n_items=n_items, device=self.question.device)
            for name, model in self.models.items()
            if isinstance(model, Answerer)
        }

    def _ask(
        self, blocks: Blocks, asked: Mapping[str, Asked], population: Population, threshold: float, p: Any
    ) -> _Said:
        """Ask the models that are no tables, and put what lists leave out below them."""
        facts, said = blocks.facts, _Said(tables=dict(blocks.facts.tables))
        lists = [name for name, found in facts.tables.items() if found.depth]
        if not asked and not lists and p is None:
            return said
        work = Asking(
            models=asked, kinds=frozenset(self.question.kinds), threshold=threshold,
            every=any(m.on == "rank" and m.kind == "cell" for m in self.question.measures),
            predicts={name: _predicts(model.model) or not self.question.lenient for name, model in asked.items()},
            depths={name: facts.tables[name].depth for name in lists}, n_items=population.n_items, p=p,
        )  # fmt: skip
        for part in blocks.update(work):
            for name, (found, masked, flat) in part.items():
                said.tables[name] = said.tables.get(name, TableFacts()) + found
                said.masked[name] = said.masked.get(name, Masked()) + masked
                said.flat[name] = said.flat.get(name, 0) + flat
        return said

    def _note_masks(self, said: _Said, levels: LevelCounts, threshold: float) -> None:
        """Count what tables mask, as models that are asked did; masks of all that is ranked are refused."""
        every = any(m.on == "rank" and m.kind == "cell" for m in self.question.measures)
        for name, table in said.tables.items():
            if table.hidden:
                counts = [part for part in table.hidden_levels if len(part)]
                hidden = LevelCounts.of_parts(counts) if counts else None
                said.masked[name] = Masked(
                    cells=table.hidden, users=table.hidden_users, candidates=table.hidden_candidates,
                    rows=0 if hidden is None else _ranked(hidden, threshold, every=every),
                    ranked=_ranked(levels, threshold, every=every),
                )  # fmt: skip
        for name, masked in said.masked.items():
            masked.check(name)

    def _predicted(self, said: _Said) -> set[str]:
        """The models whose predictions serve ratings; those of others may be masked, or of a list alone."""
        question = self.question
        if "prediction" not in question.kinds:
            return set()
        partly, served = question.missing != "error", set[str]()
        for name, model in self.models.items():
            found = said.tables[name]
            if not _has_predictions(model):
                continue
            is_list = isinstance(model, tuple) and len(model) == 1 and model[0].ranks
            if found.lacking and not partly and (is_list or question.lenient):
                continue
            if found.masked:
                if not question.lenient:
                    raise _masked_rows(name, found.masked, self.log.n_rows)
                continue
            served.add(name)
        return served

    def _without_gaps(
        self, blocks: Blocks, predicted: set[str], said: _Said, levels: LevelCounts
    ) -> tuple[int, dict[str, int]]:
        """Rows that some model does not predict are refused, dropped or filled."""
        gaps = {
            name: said.tables[name].lacking for name in self.models if name in predicted and said.tables[name].lacking
        }
        if not gaps:
            return 0, {}
        missing = self.question.missing
        if missing == "error":
            name = next(iter(gaps))
            users = [user for (user,) in said.tables[name].lacking_users]
            raise table_rules.not_predicted(f"model {name!r}", gaps[name], self.log.n_rows, users)
        if missing == "worst":
            low, high = levels.span
            _run(blocks.update(Filling(models=tuple(gaps), low=low, high=high)))
            self.notes.append(table_rules.missing_note(missing, gaps, 0))
            return 0, gaps
        dropped = sum(blocks.update(Dropping(models=tuple(gaps))))
        if dropped == self.log.n_rows:
            raise EmptyError(
                'no rows are left, as some model lacks a prediction of each; give predictions, or pass missing="worst".'
            )
        self.notes.append(table_rules.missing_note(missing, gaps, dropped))
        return dropped, {}

    def _coverage(self, name: str, found: TableFacts, *, is_predicted: bool) -> Coverage:
        """What a model's predictions hold; a recommender or an array has the scores of every cell."""
        model = self.models[name]
        if isinstance(model, Answerer):
            return Coverage(predicted=is_predicted)
        tables = [model] if isinstance(model, LogColumns) else list(model)
        numbers = frozenset[str]().union(*(table.numbers for table in tables))
        counts = "above" in numbers
        ranked = "rank" in numbers
        own_rows = isinstance(model, LogColumns)
        return Coverage(
            scores="score" in numbers, predicted=is_predicted,
            cells="score" in numbers and not own_rows and not found.incomplete and len(tables) == 1 and not ranked,
            ranks=counts or ranked or (not own_rows and not found.short),
            depth=found.depth if ranked and not counts and (own_rows or found.short) else None,
            rows_alone=own_rows or counts,
        )  # fmt: skip

    # -- what is scored --------------------------------------------------------------------------------------

    def _subject(
        self, blocks: Blocks, population: Population, asked: Mapping[str, Asked], coverage: Mapping[str, Coverage],
        levels: LevelCounts, threshold: float, facts: JoinFacts, said: _Said, dropped: int, filled: Mapping[str, int],
    ) -> Subject:  # fmt: skip
        question, log = self.question, self.log
        n_rows, scored_users, scored_of_items = int(facts.rows_of_items.sum()), facts.users, facts.rows_of_items
        if dropped:
            levels = LevelCounts.of(blocks.map)
            counts = list(blocks.map(partial(_row_counts, len(population.items))))
            scored_of_items = np.sum([items for items, _ in counts], axis=0)
            n_rows, scored_users = int(scored_of_items.sum()), sum(users for _, users in counts)
        self._check_metrics(blocks, [name for name in self.models if coverage[name].predicted])
        setting = Setting(
            n_users=population.n_users, n_items=population.n_items, threshold=threshold,
            middles=midpoints(levels.values), weighted=log.weighted, scaled=log.scaled, share=log.share,
            excluded_share=log.excluded_share(facts, blocks, population), excludes=log.excludes,
            unbalanced=log.unbalanced, sample=log.sample, groups=log.groups,
        )  # fmt: skip
        unlisted = {name: found.unlisted_rows / n_rows for name, found in said.tables.items() if found.unlisted_rows}
        return Subject(
            setting=setting, blocks=blocks, population=population, order=population.by_bucket[0],
            models=tuple(self.models), asked=asked,
            coverage=coverage, levels=levels, rows_of_items=log.rows_of_items(scored_of_items, dropped=dropped),
            scored_of_items=scored_of_items, n_rows=n_rows, scored_users=scored_users,
            n_excluded=log.n_excluded, n_lost=facts.excluded if log.excludes else 0,
            overlap=0 if log.is_one_log else facts.overlap,
            split=log.split_words, whole_users=log.whole_users, by_items=log.by_items or question.by_items,
            positives=log.positives, floored=log.floored, kept_weight=log.kept_weight, rank_sample=log.rank_sample,
            bounded=any(m.name == "ips" for m in question.methods), grid=log.grid,
            imputation=self._imputation(population, asked), dropped=dropped, filled=filled, unlisted=unlisted,
            masked=said.masked, flat=said.flat, trained_rows=log.trained_rows(facts), log=log.in_memory,
            exclude=log.excluded_in_memory,
        )  # fmt: skip

    def _check_metrics(self, blocks: Blocks, predicted: Sequence[str]) -> None:
        """Some metrics take predictions of a certain kind only, as 0 and 1."""
        checks = [m.check for m in self.question.measures if m.check is not None]
        if checks:
            _run(blocks.map(Checking(checks=tuple(checks), models=tuple(predicted))))

    def _imputation(self, population: Population, asked: Mapping[str, Asked]) -> Imputation | None:
        ratings = self.log.imputed_ratings(self.question.imputation, population)
        return None if ratings is None else Imputation(ratings=ratings, models=asked)

    # -- notes -----------------------------------------------------------------------------------------------

    def _all_notes(self, source: BlockSource, asked: Mapping[str, Asked], facts: JoinFacts, said: _Said) -> list[str]:
        """What the reader of the estimates should know about how they were made."""
        notes = [*self.notes]
        notes += [note for name, model in asked.items() for note in told(f"model {name!r}", model.model)]
        notes += self.log.notes(facts, source)
        if "rank" in self.question.kinds and not self.question.checked:
            lists = {name: found for name, found in said.tables.items() if found.depth}
            notes += [remarks.lists_none(name) for name, found in lists.items() if not found.listed]
            notes += [
                text
                for name, found in lists.items()
                if (text := remarks.of_lists(name, found.unlisted_users, found.gaps))
            ]
        return notes


# -- passes that change blocks -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Asking:
    """Predictions and ranks of the models that are no tables; and ranks below their lists for what lists leave out."""

    models: Mapping[str, Asked]
    kinds: frozenset[str]
    threshold: float
    every: bool  # whether all rows are ranked, or the relevant ones
    predicts: Mapping[str, bool]
    depths: Mapping[str, int]
    n_items: int
    p: Callable[[Block], Floats] | None  # what gives p to the rows, where no column does

    def __call__(self, block: Block) -> tuple[Block, dict[str, tuple[TableFacts, Masked, int]]]:
        """The block with outcomes, and of each model what is missing, masked, and for how many users it is flat."""
        outcomes = dict(block.outcomes)
        for name, depth in self.depths.items():
            above = outcomes[name].above
            assert above is not None  # noqa: S101, a list has ranks
            outcomes[name] = replace(outcomes[name], above=np.where(above == UNLISTED, depth, above))
        said: dict[str, tuple[TableFacts, Masked, int]] = {}
        rows = np.arange(len(block)) if self.every else relevant_places(block, self.threshold)
        for name, model in self.models.items():
            prediction, facts = self._predictions(block, model)
            outcome, masked, flat = Outcome(), Masked(), 0
            if "rank" in self.kinds:
                ranked, masked = model.ranks(block, rows)
                outcome, flat = _spread(ranked, rows, len(block)), self._flat(block, ranked, rows)
            outcomes[name] = replace(outcome, prediction=prediction)
            said[name] = facts, masked, flat
        columns = block.columns if self.p is None else {**block.columns, P: self.p(block)}
        return replace(block, outcomes=outcomes, columns=columns), said

    def _predictions(self, block: Block, model: Asked) -> tuple[Floats | None, TableFacts]:
        if "prediction" not in self.kinds or not self.predicts[model.name]:
            return None, TableFacts()
        values = model.predictions(block)
        gaps = np.isnan(values)
        users = np.unique(block.users[block.user[gaps]])[:3].tolist()
        return values, TableFacts(
            lacking=int(gaps.sum()), lacking_users=tuple((u,) for u in users), masked=int(np.isneginf(values).sum())
        )

    def _flat(self, block: Block, ranked: Outcome, rows: Int64s) -> int:
        """Users with ranked rows whose candidates all have one score."""
        if ranked.tied is None:
            return 0
        candidates = self.n_items - np.diff(block.excluded_ptr)[block.user[rows]]
        return len(np.unique(block.user[rows][(ranked.tied >= candidates) & (candidates > 1)]))


def _ranked(levels: LevelCounts, threshold: float, *, every: bool) -> int:
    """How many rows are ranked: all, or the relevant ones."""
    return int(levels.rows.sum()) if every else levels.reaching(threshold)


def _spread(ranked: Outcome, rows: Int64s, n_rows: int) -> Outcome:
    """Ranks of some rows among all; the others are not looked at."""
    above, tied = np.zeros(n_rows, np.int64), np.ones(n_rows, np.int64)
    above[rows], tied[rows] = np.asarray(ranked.above), np.asarray(ranked.tied)
    return Outcome(above=above, tied=tied)


def readmitted(block: Block) -> tuple[Block, None]:
    """The block without exclusions, which are of users without scored rows."""
    none = np.zeros(0, np.int32)
    return replace(block, excluded=Pairs(user=none, item=none)), None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Filling:
    """The end of the scale that is furthest from each rating, where a model has no prediction."""

    models: tuple[str, ...]
    low: float
    high: float

    def __call__(self, block: Block) -> tuple[Block, None]:
        """The block without gaps."""
        low, high = np.float32(self.low), np.float32(self.high)
        furthest = np.where(block.rating - low > high - block.rating, low, high).astype(np.float64)
        outcomes = dict(block.outcomes)
        for name in self.models:
            prediction = np.asarray(outcomes[name].prediction)
            outcomes[name] = replace(outcomes[name], prediction=np.where(np.isnan(prediction), furthest, prediction))
        return replace(block, outcomes=outcomes), None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Dropping:
    """Only the rows that all models predict."""

    models: tuple[str, ...]

    def __call__(self, block: Block) -> tuple[Block, int]:
        """The block with these rows, and how many were dropped."""
        gaps = [np.isnan(np.asarray(block.outcomes[name].prediction)) for name in self.models]
        keep = ~np.any(gaps, axis=0)
        return block.take(keep), int(len(keep) - keep.sum())


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Checking:
    """What metrics refuse of predictions."""

    checks: tuple[Callable[[Floats], None], ...]
    models: tuple[str, ...]

    def __call__(self, block: Block) -> None:
        """Check the predictions of a block."""
        for check in self.checks:
            for name in self.models:
                prediction = block.outcomes[name].prediction
                if prediction is not None:
                    check(prediction)


def _row_counts(n_items: int, block: Block) -> tuple[Int64s, int]:
    return np.bincount(block.item, minlength=n_items), int(np.count_nonzero(np.diff(block.user_ptr)))


def _run(parts: Iterator[Any]) -> None:
    for _ in parts:
        pass


# -- refusals ------------------------------------------------------------------------------------------------


def _predicts(model: Any) -> bool:
    """Whether a model says anything about ratings; some rank only."""
    return isinstance(model, np.ndarray) or hasattr(model, "predict")


def _has_predictions(model: Model) -> bool:
    if isinstance(model, Answerer):
        return True
    tables = [model] if isinstance(model, LogColumns) else list(model)
    return any("score" in table.numbers for table in tables)


def _masked_rows(name: str, masked: int, rows: int) -> PredictionError:
    return PredictionError(
        f"model {name!r}: the scores of {masked:,} of {rows:,} scored rows are -inf, as of a masked history, and "
        "metrics on ratings need a number; give the scores before they are masked, or metrics of rankings."
    )


def _strangers(what: str, found: TableFacts) -> str:
    """The note on rows of ids that the population lacks; empty where there are none."""
    parts = [f"{found.strange_users:,} rows of users that the log lacks were left out"] if found.strange_users else []
    parts += [f"{found.strange_items:,} rows of items that it lacks keep their ranks"] if found.strange_items else []
    return f"{what}: {'; '.join(parts)}" if parts else ""


def _refuse_strangers(what: str, found: TableFacts, log: LogInput, ids: ReadIds) -> None:
    """Refuse a table without any of the log's pairs of ids: its ids are of another kind, or of another log."""
    if found.pairs:
        return
    for side in SIDES:
        own, theirs = ids.kinds.get(side), log.kind_of(side)
        if own is not None and own != theirs:
            raise UnknownIdError(f"{what}: the log's {side} ids are {theirs} and these {own}; cast one of them.")
    raise UnknownIdError(
        f"{what}: it has none of the log's users and items, which are as {listing(log.some_ids())}; write both alike."
    )
