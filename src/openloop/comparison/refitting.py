"""A bootstrap over users that fits the propensities, by any model, again to every draw.

A draw has as many users as the log. A user drawn several times becomes several users with the same rows: the grid keeps
its size, no pair repeats, and a model counts the rows of each user. If a uniform sample names users, it is drawn with
them; otherwise its ratings are drawn.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
from threadpoolctl import threadpool_limits

from openloop.blocks.block import Block, Pairs
from openloop.comparison.plan import values
from openloop.core.comparison import Comparison, Key
from openloop.core.covariates import Covariates
from openloop.core.estimate import Estimate
from openloop.core.feedback import Feedback, Floats
from openloop.core.metric import Metric
from openloop.core.propensities import grid_of, predicted_by
from openloop.errors import BalanceError, EmptyError, InputError, RatingError, UndefinedError
from openloop.estimators.naming import Method
from openloop.metrics.rating import midpoints
from openloop.moments.facts import LevelCounts
from openloop.moments.imputation import Imputation, imputed
from openloop.moments.logs import weight_columns
from openloop.moments.parts import excluded_share, one_log
from openloop.moments.question import Question
from openloop.moments.source import BlockSource
from openloop.moments.whole import OneBlock, whole_block
from openloop.propensity.cell_means import CellMeans
from openloop.propensity.known import Known

Codes = npt.NDArray[np.int64]
Family = tuple[Metric, Method]
PER_USER = ("item", "rating", "propensity", "time", "weight", "share")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Refitting:
    """What is fitted again: a model, the log that it was fitted on, and how often."""

    source: BlockSource
    model: Any
    whole: Feedback
    block: Block
    replicates: int
    rng: Any
    imputation: Imputation | None = None  # with what it makes of the rows as they are

    @classmethod
    def of(cls, source: BlockSource, propensities: Any, asked: Question) -> Refitting:
        """Checked: a fitted model with `refit`, and a log that holds the scored rows."""
        if source.subject.log is None:
            raise InputError(
                "evaluate: errors=ol.Refit() fits a model again to rows in memory; read the log with ol.read."
            )
        if isinstance(propensities, Known) or not hasattr(propensities, "refit"):
            kind = "None" if propensities is None else type(propensities).__name__
            raise InputError(
                "evaluate: errors=ol.Refit() needs propensities= that can be fitted again, a fitted model such as "
                f"Logistic, got {kind}; p that was given has no error of its own, and a model of your own needs "
                "refit(feedback), a fresh copy fitted on another log."
            )
        replicates = asked.errors.replicates
        if replicates < 2:
            raise InputError(f"ol.Refit: replicates= must be at least 2, got {replicates}; 200 are usual.")
        whole, block = _whole(source.subject.log, asked.errors.on), whole_block(source.subject)
        return cls(
            source=source, model=propensities, whole=whole, block=block, replicates=replicates, rng=asked.errors.rng,
            imputation=_imputation(source, block, asked),
        )  # fmt: skip

    def applied(self, found: Comparison, families: Sequence[Family], tell: Callable[[int], None]) -> Comparison:
        """The estimates with replicates in place of the jackknife; `tell` hears how many draws are done."""
        wanted = [(m, e) for m, e in families if (self.source.models[0], m.name, e.name) in found.estimates]
        drawn: list[dict[Key, float]] = []
        seeds = np.random.default_rng(self.rng).integers(2**63, size=self.replicates)
        with threadpool_limits(1, "blas"), ThreadPoolExecutor(os.cpu_count() or 1) as pool:
            for one in pool.map(partial(self._draw, wanted), seeds.tolist()):
                drawn.append(one)
                tell(len(drawn))
        done = {
            key: _refitted(e, np.array([one.get(key, np.nan) for one in drawn])) for key, e in found.estimates.items()
        }
        lost = sum(not one for one in drawn)
        less = f", less {lost} in which they could not be fitted" if lost else ""
        note = f"errors come from {self.replicates} draws of users, with the propensities fitted again to each{less}"
        return replace(found, estimates=done, notes=(*found.notes, note))

    def _draw(self, wanted: Sequence[Family], seed: int) -> dict[Key, float]:
        """The values in one draw; none where it cannot be fitted or scored."""
        rng = np.random.default_rng(seed)
        draw = rng.integers(self.whole.n_users, size=self.whole.n_users)
        try:
            fitted = _twin(self.model, draw, rng).refit(redrawn(self.whole, draw)[0])
            return values(self._source(fitted, draw, wanted), wanted)
        except (UndefinedError, EmptyError, RatingError, BalanceError):
            return {}

    def _source(self, fitted: Any, draw: Codes, families: Sequence[Family]) -> BlockSource:
        """The rows of the users `draw` (U,) under a model that was fitted to them; models say what they said before."""
        subject, log = self.source.subject, self.source.subject.log
        assert log is not None  # noqa: S101, refused where there is none
        own, place = redrawn(log, draw)
        exclude = None if subject.exclude is None else redrawn(subject.exclude, draw)[0]
        p = predicted_by("evaluate", fitted, own)
        weights = weight_columns(own, exclude, p.used, p)
        left = 0 if exclude is None else len(_pairs(self.block.excluded, self.block.excluded_ptr, draw))
        block = _redrawn_block(self.block, draw, place, weights.columns)
        levels = LevelCounts.of(OneBlock(block=block).map)
        grid = grid_of(fitted) if subject.grid is not None and any(e.strata for _, e in families) else None
        floored = None if grid is None else np.maximum(grid, p.floor)
        setting = replace(
            subject.setting, middles=midpoints(levels.values), unbalanced=weights.unbalanced, sample=None,
            excluded_share=excluded_share(own, exclude, left), edges={},
        )  # fmt: skip
        return BlockSource(
            replace(
                subject,
                setting=setting,
                blocks=OneBlock(block=block),
                order=np.arange(len(draw), dtype=np.int32),
                levels=levels,
                bounded=False,
                grid=None if floored is None else lambda users: floored[users],
                imputation=None if self.imputation is None else self.imputation.of_draw(draw, place),
                log=own,
                exclude=exclude,
            )
        )


def _imputation(source: BlockSource, block: Block, asked: Question) -> Imputation | None:
    """What is imputed for the rows and users of the log, which draws take their share of."""
    how = source.subject.imputation
    if how is None:
        return None
    imputes, setting = any(method.imputes for method in asked.methods), source.setting
    made = {
        (metric.name, model): imputed(block, setting, setting.rows(block, metric.on), metric, model, how)
        for metric in asked.measures
        if imputes and metric.kind == "cell"
        for model in source.models
    }
    return replace(how, made=made)


def _redrawn_block(block: Block, draw: Codes, place: Codes, columns: Mapping[str, Any]) -> Block:
    """User j has the rows of user draw[j]."""
    rows = _pairs(block.rows, block.user_ptr, draw)
    return replace(
        block, rows=rows, rating=block.rating[place], columns={**_taken(block.columns, place), **columns},
        excluded=_pairs(block.excluded, block.excluded_ptr, draw), tables={},
        outcomes={name: outcome.take(place) for name, outcome in block.outcomes.items()},
    )  # fmt: skip


def _taken(columns: Mapping[str, Any], place: Codes) -> dict[str, Any]:
    return {name: values[place] for name, values in columns.items()}


def _pairs(pairs: Pairs, start: Codes, draw: Codes) -> Pairs:
    size, place = drawn_rows(start, draw)
    return Pairs(user=np.repeat(np.arange(len(draw), dtype=np.int32), size), item=pairs.item[place])


def drawn_rows(start: Codes, draw: Codes) -> tuple[Codes, Codes]:
    """How many rows each drawn user has, and which rows these are; rows of user u are start[u] : start[u + 1]."""
    size = start[draw + 1] - start[draw]
    return size, np.repeat(start[draw] - (np.cumsum(size) - size), size) + np.arange(size.sum())


def redrawn(feedback: Feedback, draw: Codes) -> tuple[Feedback, Codes]:
    """User j has the rows of user draw[j]; and which row of the feedback each row is."""
    size, at = drawn_rows(feedback.user_ptr, draw)
    taken = {name: getattr(feedback, name) for name in PER_USER}
    return replace(
        feedback, **{name: None if v is None else v[at] for name, v in taken.items()},
        user=np.repeat(np.arange(len(draw), dtype=np.int32), size), row=np.arange(len(at)), input_rows=len(at),
        origin=feedback.origin or feedback.fingerprint,  # parts of one log stay parts of one
    ), at  # fmt: skip


def _twin(model: Any, draw: Codes, rng: np.random.Generator, drawn: Mapping[str, Any] | None = None) -> Any:
    """The model with side information for the drawn users; a model inside shares what was `drawn` for the outer one."""
    twin = copy.copy(model)
    if isinstance(model, Known) and model.values is not None:
        twin.values = np.asarray(model.values)[draw]
    if getattr(model, "side_", None):
        known = drawn or {}
        twin.side_ = {
            name: known[name] if name in known else _redrawn_side(name, given, model.users_, draw, rng)
            for name, given in model.side_.items()
        }
    inner = getattr(model, "inner_", None)
    if inner is not None:
        twin.inner_ = _twin(inner, draw, rng, getattr(twin, "side_", None))
    return twin


def _redrawn_side(name: str, given: Any, users: Any, draw: Codes, rng: np.random.Generator) -> Any:
    if isinstance(given, Covariates) and name.startswith("user"):
        return replace(given, values=given.values[draw])
    if isinstance(given, CellMeans):
        return given.drawn(draw)
    if isinstance(given, Feedback) and given.users == users:
        return redrawn(given, draw)[0]
    if name == "uniform":
        rating = given.rating if isinstance(given, Feedback) else np.asarray(given)
        return rng.choice(rating, len(rating))
    return given


def _whole(scored: Feedback, whole: Any) -> Feedback:
    """The log that the model was fitted on, which has all scored rows."""
    if whole is None:
        if scored.origin is None:
            return scored
        raise InputError(
            "evaluate: errors=ol.Refit() of a part of a log needs on=, the log that the model was fitted on."
        )
    if not isinstance(whole, Feedback):
        raise InputError(f"ol.Refit: on= must be the Feedback fitted on, got {type(whole).__name__}.")
    known = whole.users == scored.users and whole.items == scored.items
    if not known or not (one_log(scored, whole) and np.isin(scored.cell, whole.cell).all()):
        raise InputError(
            f"ol.Refit: on= must hold all {len(scored):,} scored rows, on the same users and items; give the log "
            "that the model was fitted on and that the scored part was split from."
        )
    return whole


def _refitted(e: Estimate, replicates: Floats) -> Estimate:
    finite = int(np.isfinite(replicates).sum())
    if finite < max(2, len(replicates) // 2):
        return e  # too few draws have a value; the interval stays what it was, and says so
    none = np.empty(0)
    return replace(
        e, replicates=replicates, sample_effects=none, sample_size=0, p_taken="refitted" if e.p_taken else "",
    )  # fmt: skip
