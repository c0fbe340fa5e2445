"""A uniformly collected test set: what it says of the models, and every estimator scored against it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
import polars as pl

from openloop.audits.contrasts import contrasts, estimators_of
from openloop.audits.rankings import kendall
from openloop.audits.results import OpenLoop, Score, StrataLine, StrataTable
from openloop.audits.strata import judged
from openloop.blocks.block import Block
from openloop.core.comparison import Comparison
from openloop.core.feedback import Feedback
from openloop.core.metric import Metric
from openloop.data.reading import read
from openloop.data.scanning import Log, scan, series_of
from openloop.errors import InputError, PredictionError, UndefinedError
from openloop.estimators.sensitivity import least_gamma
from openloop.evaluation import prepared
from openloop.metrics.naming import metric as metric_named
from openloop.moments.question import Question
from openloop.moments.requests import LogFacts
from openloop.moments.source import BlockSource


def open_loop_of(
    models: Mapping[str, Any], sample: Any, result: Comparison, asked: Question, source: BlockSource
) -> OpenLoop:
    """What a uniform sample says of the models by the plain average, which is unbiased there, and of the log's weights.

    Rankings are among the candidates, so that cells which were excluded are no part of their open loop.
    """
    if source.subject.log is None:
        return _beside_scan(models, sample, result, asked, source)
    rows, notes = {"prediction": sample, "rank": sample}, list[str]()
    if asked.exclude is not None:
        outside = ~np.isin(sample.cell, asked.exclude.cell)
        rows["rank"] = sample.take(outside)
        if not outside.all():
            notes.append(f"{int((~outside).sum()):,} rows of the open loop are excluded, and left out of its rankings")
    return _judged(models, rows, notes, result, asked, source)


def _beside_scan(
    models: Mapping[str, Any], sample: Any, result: Comparison, asked: Question, source: BlockSource
) -> OpenLoop:
    """The same where the log is scanned: the sample has the log's population, and loses what the log excludes."""
    users, items = source.subject.population.users, source.subject.population.items
    log = sample if isinstance(sample, Feedback) else sample.load() if isinstance(sample, Log) else read(sample)
    user, item = users.find(log.users.ids)[log.user], items.find(log.items.ids)[log.item]
    if bool((user < 0).any() or (item < 0).any()):
        raise InputError("sample: it has users or items that the log lacks; scan the log with users= and items=.")
    cells, n_items, notes = user.astype(np.int64) * len(items) + item, len(items), list[str]()

    def excluded(block: Block) -> Any:
        own = block.users[block.excluded.user].astype(np.int64) * n_items + block.excluded.item
        return np.isin(cells, own)

    gone = np.any(list(source.over(excluded)), axis=0)
    frame = pl.DataFrame(
        {"user": series_of(users.ids, user), "item": series_of(items.ids, item), "rating": log.rating}
    )  # fmt: skip
    every = replace(scan(frame), users=users, items=items, split="none")
    rows = {"prediction": every}
    if not gone.all():
        rows["rank"] = replace(scan(frame.filter(pl.Series(~gone))), users=users, items=items, split="none")
    if gone.any():
        notes.append(f"{int(gone.sum()):,} rows of the open loop are excluded, and left out of its rankings")
    return _judged(models, rows, notes, result, asked, source)


def _judged(
    models: Mapping[str, Any], rows: Mapping[str, Any], notes: Sequence[str], result: Comparison, asked: Question,
    source: BlockSource,
) -> OpenLoop:  # fmt: skip
    """What the plain average of the sample's rows says, by kind of metric."""
    parts, facts = list[Comparison](), list[LogFacts]()
    for on, part in rows.items():
        wanted = [m for m in asked.measures if m.name in result.metrics and m.on == on]
        if wanted:
            compared, about = _sampled(models, part, wanted, asked, source.about().threshold)
            parts.append(compared)
            facts.append(about)
    estimates = {key: e for part in parts for key, e in part.estimates.items()}
    if not estimates:
        raise UndefinedError("open_loop: none of its rows can be scored; give ratings of more cells.")
    found = replace(parts[0], estimates=estimates, better=result.better, notes=tuple(notes))
    sample = rows["prediction"]
    size = len(sample) if isinstance(sample, Feedback) else max(e.diagnostics.n for e in estimates.values())
    return replace(against_open_loop(result, found, size), gamma_min=gamma_min(source, facts[0], asked.level))


def gamma_min(source: BlockSource, sample: LogFacts, level: float) -> float | None:
    """By what factor the log's weights must at least be off; None without weights, or where ratings are not levels."""
    about, summary = source.about(), source.summary(metric_named("mae"))  # for which every scored row counts
    if summary is None or not about.masses or not sample.ratings:
        return None
    seen, drawn = dict(zip([y for y, _ in about.ratings], about.masses, strict=True)), dict(sample.ratings)
    levels = sorted({*seen, *drawn})
    mass, number = (np.array([counts.get(y, 0.0) for y in levels], np.float64) for counts in (seen, drawn))
    return least_gamma(mass, summary.effective_size, number, level)


def _sampled(
    models: Mapping[str, Any], sample: Any, metrics: Sequence[Metric], asked: Question, threshold: float
) -> tuple[Comparison, LogFacts]:
    """What the plain average says, and what was scored."""
    question = Question(
        metrics=metrics, estimators=["naive"], exclude=asked.exclude, threshold=threshold, missing=asked.missing,
        level=asked.level, columns=asked.columns, checked=True,
    )  # fmt: skip
    try:
        with prepared(models, sample, None, question) as ready:
            return ready.compare([]), ready.source.about()
    except PredictionError as error:
        raise PredictionError(f"open_loop: {error}") from error


def with_open_loop(table: StrataTable, found: OpenLoop) -> StrataTable:
    """The table with a line for the open loop."""
    known = {m: found.result[m, table.metric, "naive"] for m in found.result.models if
             (m, table.metric, "naive") in found.result.estimates}  # fmt: skip
    line = StrataLine(name="open loop", kind="open loop", rows=found.rows, estimates=known)
    return replace(table, lines=(*table.lines, judged(line, found.result, table.metric))) if known else table


def against_open_loop(result: Comparison, sample: Comparison, rows: int) -> OpenLoop:
    """Every estimator scored against what a uniform sample says."""
    scores = tuple(
        _score(result, sample, metric, estimator)
        for metric in result.metrics
        if estimators_of(sample, metric)
        for estimator in estimators_of(result, metric)
    )
    judged_by = {metric: contrasts(sample, metric, "naive") for metric in sample.metrics}
    return OpenLoop(rows=rows, result=sample, scores=scores, contrasts=judged_by)


def _score(result: Comparison, sample: Comparison, metric: str, estimator: str) -> Score:
    ours = np.array([result[m, metric, estimator].value for m in result.models])
    open_loop = np.array([sample[m, metric, "naive"].value for m in result.models])
    judged = contrasts(sample, metric, "naive")
    right = [
        bool((ours[i] - ours[j]) * (open_loop[i] - open_loop[j]) > 0) for i, j in combinations(range(len(ours)), 2)
    ]  # fmt: skip
    clear = [c.better is not None for c in judged]
    varied = len(ours) > 2 and np.ptp(ours) > 0 and np.ptp(open_loop) > 0
    return Score(
        metric=metric, estimator=estimator, error=float(np.abs(ours - open_loop).mean()), right=sum(right),
        pairs=len(right), separated=sum(clear), separated_right=sum(r for r, c in zip(right, clear, strict=True) if c),
        tau=kendall(ours, open_loop, level=result.level) if varied else None,
    )  # fmt: skip
