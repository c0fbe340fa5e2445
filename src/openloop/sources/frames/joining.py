"""One joined frame from a log and predictions, on the engine that they are in.

Its columns are u, i, y (rating), p, its weights, and each model's prediction s or its counts h and e of candidates
above and tied. One backend, one type of id: DuckDB and Spark would match "1" with 1, so mixed types are refused.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import narwhals as nw

from openloop.core.metric import Metric
from openloop.core.propensities import part_probability
from openloop.data.columns import choose
from openloop.errors import DuplicateError, InputError
from openloop.sources import rules
from openloop.sources.frames.collecting import Fact, foresee
from openloop.sources.frames.facts import pair_counts
from openloop.sources.frames.holding import held
from openloop.sources.frames.model_tables import ModelTable, of_frame, of_log, refuse_repeats
from openloop.sources.frames.opening import PAIR, EngineTable, beside, common_types, log_columns, opened
from openloop.sources.frames.parting import WHOLE, Division
from openloop.sources.frames.predicting import with_predictions
from openloop.sources.frames.ranking import ExcludedPairs, foreseen, with_ranks
from openloop.sources.frames.rows import Weights, check_columns
from openloop.sources.question import Question
from openloop.sources.rules import SIDES, Coverage
from openloop.support.frames import rows

ROLES = {"u": "user", "i": "item", "y": "rating", "p": "propensities"}


PLAIN = Weights(probability="p", weight="w")
PART = Weights(probability="p_part", weight="w_part")  # p·s, over all cells
CANDIDATE = Weights(probability="p_candidate", weight="w_candidate")  # π, over those that are not excluded


@dataclass(frozen=True, slots=True, kw_only=True)
class Joined:
    """The joined frame and what is in it."""

    frame: Any
    names: Mapping[str, str]  # the log's columns: u, i, y and p
    coverage: Mapping[str, Coverage]  # of each model's predictions
    ranked: Mapping[int, bool]  # whether a model has a rank column, rather than full scores or counts
    tables: Sequence[ModelTable]
    rankings: Mapping[str, ModelTable]  # those that rankings are asked of, by model
    excluded: ExcludedPairs | None
    weights: Mapping[str, Weights]  # for metrics on predictions and on ranks; empty without propensities
    held: Mapping[str, int]  # the fewest scores that a user of a model has, where all were promised
    counted: Mapping[str, int]  # the most items that a model's counts tell of, with those excluded
    rows: int | None  # as many as there should be; None: not checked
    parts: Division  # ranges of users
    dropped: int = 0  # rows that some model does not predict
    filled: Mapping[str, float] = field(default_factory=dict[str, float])  # shares of rows, by model
    notes: tuple[str, ...] = ()

    @property
    def models(self) -> tuple[str, ...]:
        """The names of the models."""
        return tuple(self.coverage)

    def check_complete(self, n_items: int) -> None:
        """Refuse scores that were declared complete and are not."""
        for name, fewest in self.held.items():
            if fewest < n_items:
                raise rules.incomplete(f"model {name!r}", f"a user has scores of {fewest:,} of {n_items:,} items")
        for name, most in self.counted.items():
            if most > n_items:
                raise InputError(
                    f"model {name!r}: a user's candidates above and tied and the user's items in exclude= add up to "
                    f"{most:,}, but the population has {n_items:,} items; count without excluded items, or pass "
                    "population=."
                )

    def check_rows(self, found: int) -> None:
        """Refuse repeated predictions, which a join shows by its number of rows."""
        if self.rows is not None and found != self.rows:
            for table in self.tables:
                table.refuse_repeats(self.parts)

    def refusal(self, metric: Metric, what: str) -> str | None:
        """Why some model cannot serve this metric."""
        for model, coverage in self.coverage.items():
            if reason := coverage.refusal(metric):
                return f"{what}: model {model!r} {reason}"
        return None


def join(models: Mapping[str, Any], log: Any, propensity: str | None, asked: Question, until: ExitStack) -> Joined:
    """Join the log with each model's predictions inside the engine that has them, held there until `until` closes."""
    for loss in (m.pair_loss for m in asked.measures if m.pair_loss is not None):
        check_columns(loss)
    table, named = _log_table(log, models, propensity, asked)
    opened_tables = {name: _tables(name, model, table, named) for name, model in models.items()}
    exclude = None if asked.exclude is None else beside("exclude", asked.exclude, table, named)
    frames = [t for own in opened_tables.values() for t in own if isinstance(t, EngineTable)]
    types = common_types([table, *frames, *([] if exclude is None else [exclude])])
    tables = [
        [of_frame(name, t, types, asked.columns) if isinstance(t, EngineTable) else t for t in own]
        for name, own in opened_tables.items()
    ]
    frame, parts = _selected(table, named, types, log_columns(models)), asked.parts or WHOLE
    by_use = [rules.scores_and_ranks(f"model {name!r}", own) for name, own in zip(models, tables, strict=True)]
    excluded = (
        None if exclude is None else ExcludedPairs.of(exclude.frame.select(*exclude.keys(types)), frame, until, parts)
    )
    counted = Fact(partial(pair_counts, frame.select(*PAIR)))
    foresee([*([] if asked.distinct else [counted]), *_foreseen(by_use, asked, excluded)], frame)
    if not asked.distinct:
        refuse_repeats("the log", frame, DuplicateError, counted, parts)
    size = None if asked.distinct else rows(frame) if counted.known is None else int(counted.row["rows"] or 0)
    frame = frame if excluded is None else excluded.counted_beside(frame)
    eager = bool(frames) and isinstance(nw.from_native(log), nw.DataFrame)
    predicted = with_predictions(frame, [scores for scores, _ in by_use], asked, parts)
    ranked = with_ranks(predicted.frame, by_use, asked, excluded, parts)
    frame, weights = _with_weights(ranked.frame, asked)
    return Joined(
        frame=held(_without_own(frame), until, eager=eager), weights=weights, parts=parts,
        names={key: named[role] for key, role in ROLES.items() if role in named},
        coverage={
            name: replace(found, ranks=at in ranked.ranks, depth=ranked.depth(at, found.depth))
            for at, (name, found) in enumerate(zip(models, predicted.coverage, strict=True))
        },
        ranked={at: at not in ranked.scored and at not in ranked.counted for at in range(len(models))},
        counted={name: ranked.counted[at] for at, name in enumerate(models) if at in ranked.counted},
        held={name: ranked.scored[at] for at, name in enumerate(models) if at in ranked.scored},
        tables=[t for own in tables for t in own], excluded=excluded,
        rankings={name: ranks for name, (_, ranks) in zip(models, by_use, strict=True)},
        rows=None if size is None else size - predicted.dropped, dropped=predicted.dropped,
        filled=predicted.filled, notes=tuple(predicted.notes),
    )  # fmt: skip


def _foreseen(
    by_use: Sequence[tuple[ModelTable, ModelTable]], asked: Question, excluded: ExcludedPairs | None
) -> list[Fact]:
    """The facts about tables that will be asked for."""
    used = {"prediction": [scores for scores, _ in by_use if scores.score is not None]}
    used["rank"] = [ranks for _, ranks in by_use if ranks.rank is not None or asked.complete]
    tables = list({id(t): t for on in asked.kinds for t in used[on] if t.frame is not None}.values())
    return [
        *([] if excluded is None else [excluded.facts]), *(t.numbers for t in tables),
        *(fact for _, ranks in by_use for fact in foreseen(ranks, asked, excluded)),
    ]  # fmt: skip


def _log_table(
    log: Any, models: Mapping[str, Any], propensity: str | None, asked: Question
) -> tuple[EngineTable, dict[str, str]]:
    """The log on its engine, and the column of each role; columns that are models are not among them."""
    table = opened("the log", log)
    given = {"user": asked.user, "item": asked.item, "rating": asked.rating, "propensities": propensity}
    named = choose(table, given, taken=log_columns(models))
    return replace(table, ids=tuple(named[side] for side in SIDES)), named


def _tables(name: str, model: Any, log: EngineTable, named: Mapping[str, str]) -> list[EngineTable | ModelTable]:
    """The tables of a model: columns of the log, a frame, or two of them."""
    if isinstance(model, str | Mapping):
        return [of_log(name, model, log)]  # pyright: ignore[reportUnknownArgumentType]
    given: Sequence[Any] = model if isinstance(model, list | tuple) else [model]  # pyright: ignore[reportUnknownVariableType]
    return [beside(f"model {name!r}", frame, log, named) for frame in given]


def _selected(log: EngineTable, named: Mapping[str, str], types: Sequence[Any], own: Sequence[str]) -> Any:
    """u, i, y and p of the log; columns that models are stay, as log:…, until they are read."""
    numbers = [nw.col(named[ROLES[key]]).cast(nw.Float64()).alias(key) for key in "yp" if ROLES[key] in named]
    kept = [nw.col(name).alias(f"log:{name}") for name in dict.fromkeys(own) if name in log.columns]
    return log.frame.select(*log.keys(types), *numbers, *kept)


def _without_own(frame: Any) -> Any:
    """The joined rows without the log's own columns, which were read."""
    return frame.select(*(name for name in frame.collect_schema().names() if not name.startswith("log:")))


def _with_weights(frame: Any, asked: Question) -> tuple[Any, dict[str, Weights]]:
    """The frame with w = 1/p; for a part of a log with 1/(p·s) and, where another part is excluded, 1/π."""
    if "p" not in frame.collect_schema().names():
        return frame, {}
    s, t = asked.shares
    if (s, t) == (1.0, 0.0):
        plain = replace(PLAIN, certain=1.0 if asked.scaled else None)
        return frame.with_columns((1.0 / nw.col("p")).alias("w")), {"prediction": plain, "rank": plain}
    part = replace(PART, certain=1.0 / s if asked.scaled else None)
    found = {"prediction": part, "rank": part}
    if t:
        found["rank"] = replace(CANDIDATE, certain=(1.0 - t) / s if asked.scaled else None)
    probabilities = [
        part_probability(nw.col("p"), s, 0.0 if of is part else t).alias(of.probability)
        for of in dict.fromkeys(found.values())
    ]
    frame = frame.with_columns(*probabilities)
    weights = [(1.0 / nw.col(of.probability)).alias(of.weight) for of in dict.fromkeys(found.values())]
    return frame.with_columns(*weights), found
