"""Predicted ratings beside the rows of a log frame, and rows that a model does not predict."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from operator import or_
from typing import Any

import narwhals as nw

from openloop.errors import InputError, PredictionError
from openloop.sources import rules
from openloop.sources.frames.model_tables import ModelTable
from openloop.sources.frames.opening import PAIR
from openloop.sources.frames.parting import WHOLE, Division
from openloop.sources.question import Question
from openloop.sources.rules import Coverage
from openloop.support.frames import absent, collected, flag, only_row


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictedFrame:
    """A frame with the predictions s0, s1 … of the models that have them."""

    frame: Any
    coverage: Sequence[Coverage]
    dropped: int = 0
    filled: Mapping[str, float] = field(default_factory=dict[str, float])  # shares of the rows, by model
    notes: Sequence[str] = ()


def with_predictions(
    frame: Any, tables: Sequence[ModelTable], asked: Question, parts: Division = WHOLE
) -> PredictedFrame:
    """Join each model's scores, and drop, fill or refuse the rows without one."""
    if "prediction" not in asked.kinds:
        return PredictedFrame(frame=frame, coverage=[Coverage(scores=table.score is not None) for table in tables])
    serving = {f"s{at}": table for at, table in enumerate(tables) if table.score is not None}
    depths = {own: table.check() for own, table in serving.items() if table.frame is not None}
    joined = _joined(frame, serving, parts)
    gaps = _gaps(joined, serving)
    if asked.missing == "error" and gaps.rows:
        for own in gaps.rows:
            if not (asked.lenient or _is_list(serving[own])):
                raise _not_predicted(joined, own, serving[own], gaps)
        serving = {own: table for own, table in serving.items() if own not in gaps.rows}
        gaps = Gaps()  # the columns of the others stay: what they say of some rows tells whether they are ratings
    found = _resolved(joined, serving, gaps, asked.missing)
    _check_values(found, list(serving), asked)
    coverage = [
        Coverage(scores=table.score is not None, predicted=own in serving, depth=depths.get(own))
        for own, table in ((f"s{at}", table) for at, table in enumerate(tables))
    ]
    counts = {serving[own].model: number for own, number in gaps.rows.items()}
    dropped = gaps.any if asked.missing == "drop" else 0
    notes = [rules.missing_note(asked.missing, counts, dropped)] if counts else []
    filled = {model: number / gaps.of for model, number in counts.items() if asked.missing == "worst"}
    return PredictedFrame(frame=found, coverage=coverage, dropped=dropped, filled=filled, notes=notes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Gaps:
    """How many rows lack a prediction: of each model that lacks some, of any, and of how many."""

    rows: Mapping[str, int] = field(default_factory=dict[str, int])
    any: int = 0
    of: int = 0


def _is_list(table: ModelTable) -> bool:
    """Whether a table was made for rankings, and so need not score every row."""
    return table.ranks and table.frame is not None


def _joined(frame: Any, serving: Mapping[str, ModelTable], parts: Division) -> Any:
    scores: list[Any] = []
    for own, table in serving.items():
        if table.frame is None:
            frame = frame.with_columns(nw.col(f"log:{table.score}").cast(nw.Float64()).alias(own))
        else:
            scores.append(table.frame.select(*PAIR, nw.col(str(table.score)).alias(own)))
    return parts.each(beside_pairs, frame, *scores) if scores else frame


def beside_pairs(frame: Any, *tables: Any) -> Any:
    """The frame with the columns that tables have of its pairs."""
    for table in tables:
        frame = frame.join(table, on=list(PAIR), how="left")
    return frame


def without_pairs(frame: Any, *tables: Any) -> Any:
    """The frame without the pairs of tables."""
    for table in tables:
        frame = frame.join(table, on=list(PAIR), how="anti")
    return frame


def _gaps(frame: Any, serving: Mapping[str, ModelTable]) -> Gaps:
    """By one query for all models."""
    if not serving:
        return Gaps()
    nameless = nw.col("u").is_null() | nw.col("i").is_null()
    flags = {own: flag(absent(nw.col(own))) for own in serving} | {
        "any": flag(_lacking(serving)), "of": nw.lit(1.0), "nameless": flag(nameless),
    }  # fmt: skip
    found = only_row(frame.select(**flags).select(*(nw.col(name).sum() for name in flags)))
    counts = {name: int(value or 0) for name, value in found.items()}
    if (number := counts.pop("nameless")) and counts["any"]:  # no model can have predictions for them
        raise InputError(f"evaluate: {number:,} rows of the log have no user or item id; drop or repair them.")
    return Gaps(any=counts.pop("any"), of=counts.pop("of"), rows={own: n for own, n in counts.items() if n})


def _lacking(columns: Iterable[str]) -> Any:
    return reduce(or_, (absent(nw.col(own)) for own in columns))


def _not_predicted(frame: Any, own: str, table: ModelTable, gaps: Gaps) -> PredictionError:
    users = frame.filter(absent(nw.col(own))).select("u").unique().sort("u").head(3)
    return rules.not_predicted(table.what, gaps.rows[own], gaps.of, collected(users)["u"].to_list())


def _resolved(frame: Any, serving: Mapping[str, ModelTable], gaps: Gaps, missing: str) -> Any:
    """The frame without the rows that some model does not predict, or with the furthest rating in their place."""
    if not gaps.rows:
        return frame
    if missing == "drop":
        return frame.filter(~_lacking(serving))
    y = nw.col("y")
    limits = only_row(frame.select(y.min().alias("low"), y.max().alias("high")))
    low, high = float(limits["low"]), float(limits["high"])
    furthest = nw.when(y - low > high - y).then(nw.lit(low)).otherwise(nw.lit(high))
    filled = [nw.when(absent(nw.col(own))).then(furthest).otherwise(nw.col(own)).alias(own) for own in gaps.rows]
    return frame.with_columns(*filled)


def _check_values(frame: Any, predicted: Sequence[str], asked: Question) -> None:
    """Some metrics take predictions of a certain kind only, as 0 and 1."""
    for check in (m.check for m in asked.measures if m.check is not None):
        for own in predicted:
            some = frame.select(own).unique().head(3)  # a 0/1 matrix has no third value
            check(collected(some)[own].to_numpy())
