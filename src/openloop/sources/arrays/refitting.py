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

from openloop.core.comparison import Comparison, Key
from openloop.core.covariates import Covariates
from openloop.core.estimate import Estimate
from openloop.core.feedback import Feedback, Floats
from openloop.core.metric import Metric
from openloop.core.propensities import grid_of, predicted_by
from openloop.errors import BalanceError, EmptyError, InputError, RatingError, UndefinedError
from openloop.estimators.naming import Method
from openloop.propensity.cell_means import CellMeans
from openloop.propensity.known import Known
from openloop.sources.arrays.rows import Outcome
from openloop.sources.arrays.source import FeedbackSource
from openloop.sources.observation import one_log
from openloop.sources.outcomes import held
from openloop.sources.plan import values
from openloop.sources.question import Question

Codes = npt.NDArray[np.int64]
Family = tuple[Metric, Method]
PER_USER = ("item", "rating", "propensity", "time", "weight", "share")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Refitting:
    """What is fitted again: a model, the log that it was fitted on, and how often."""

    source: FeedbackSource
    model: Any
    whole: Feedback
    replicates: int
    rng: Any

    @classmethod
    def of(cls, source: Any, propensities: Any, asked: Question) -> Refitting:
        """Checked: a fitted model with `refit`, and a log that holds the scored rows."""
        if not isinstance(source, FeedbackSource):
            raise InputError("evaluate: refit= does not apply: the log is a frame; read it with ol.read.")
        if isinstance(propensities, Known) or not hasattr(propensities, "refit"):
            kind = "None" if propensities is None else type(propensities).__name__
            raise InputError(
                f"evaluate: refit= needs propensities= that can be fitted again, a fitted model such as Logistic, got "
                f"{kind}; p that was given has no error of its own, and a model of your own needs refit(feedback), a "
                "fresh copy fitted on another log."
            )
        if asked.replicates < 2:
            raise InputError(f"evaluate: replicates= must be at least 2, got {asked.replicates}; 200 are usual.")
        whole = _whole(source.subject.log, asked.refit_on)
        return cls(source=source, model=propensities, whole=whole, replicates=asked.replicates, rng=asked.rng)

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
            return values(Redrawn.of(self.source, fitted, draw, gridded=any(e.strata for _, e in wanted)), wanted)
        except (UndefinedError, EmptyError, RatingError, BalanceError):
            return {}


class Redrawn(FeedbackSource):
    """The rows of drawn users under other propensities; what models say of them is what they said before."""

    def __init__(self, base: FeedbackSource, scored: Any, draw: Codes, at: Codes) -> None:
        super().__init__(scored)
        self.levelled = False  # values alone are asked for
        self._base, self._draw, self._at = base, draw, at

    @classmethod
    def of(cls, base: FeedbackSource, fitted: Any, draw: Codes, *, gridded: bool) -> Redrawn:
        """The draw of users `draw` (U,), with p from a model that was fitted to it."""
        subject = base.subject
        log, at = redrawn(subject.log, draw)
        p = predicted_by("evaluate", fitted, log)
        grid = grid_of(fitted) if gridded and subject.grid is not None else None
        scored = replace(
            subject, log=log, propensity=p.used, base=p.base, sample=p.sample, means=p.means, bounded=False,
            exclude=None if subject.exclude is None else redrawn(subject.exclude, draw)[0],
            predicted={name: array[at] for name, array in subject.predicted.items()},
            groups={name: (labels, codes[at]) for name, (labels, codes) in subject.groups.items()},
            grid=np.maximum(grid, p.floor) if grid is not None else None,
        )  # fmt: skip
        return cls(base, scored, draw, at)

    def _ranked(self, model: str, *, relevant: bool) -> Outcome:
        if not relevant:
            return self._base.ranked(model, relevant=False).take(self._at)
        counted = self._base.view("rank").rows.relevant > 0
        place = np.cumsum(counted) - 1  # among the rows that count
        return self._base.ranked(model, relevant=True).take(place[self._at[counted[self._at]]])

    def _imputed(self, metric: Metric, model: str) -> tuple[Floats, Floats]:
        residual, total = self._base.imputed(metric, model)
        return residual[self._at], total[self._draw]


def redrawn(feedback: Feedback, draw: Codes) -> tuple[Feedback, Codes]:
    """User j has the rows of user draw[j]; and which row of the feedback each row is."""
    start = feedback.user_ptr
    size = start[draw + 1] - start[draw]
    at = np.repeat(start[draw] - (np.cumsum(size) - size), size) + np.arange(size.sum())
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
        raise InputError("evaluate: refit= of a part of a log needs refit_on=, the log that the model was fitted on.")
    if not isinstance(whole, Feedback):
        raise InputError(f"evaluate: refit_on= must be the Feedback fitted on, got {type(whole).__name__}.")
    known = whole.users == scored.users and whole.items == scored.items
    if not known or not (one_log(scored, whole) and held(whole.cell, scored.cell).all()):
        raise InputError(
            f"evaluate: refit_on= must hold all {len(scored):,} scored rows, on the same users and items; give the log "
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
