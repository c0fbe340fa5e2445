"""A recommender learned from a log by name, weighted by its propensities, and saved."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from openloop.commands.learning import LearnRequest, Weighing, weighing, weights_line
from openloop.commands.recipes import PARAMETERS, check_model, check_parameters, check_weights, learner_of
from openloop.commands.table_files import log_line, refuse_overwriting
from openloop.core.feedback import Feedback
from openloop.learners.crossing import within
from openloop.support.atomic import Recorded
from openloop.support.wording import one_line


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainRequest(LearnRequest):
    """What to read, which model to learn with which weights, and where to save it; what cannot work is refused here.

    `parameters` are the learner's own, only those that were given: its defaults hold for the others.
    """

    model: str
    parameters: dict[str, Any] = field(default_factory=dict[str, Any])

    def __post_init__(self) -> None:
        LearnRequest.__post_init__(self)
        check_model(self.model, propensities=self.propensity is not None)
        check_parameters(self.model, self.parameters)
        check_weights(self.model, weighted=self.weighted)
        if (checkpoint := self.parameters.get("checkpoint")) is not None:
            refuse_overwriting([self.out, checkpoint], [self.log])


@dataclass(frozen=True, slots=True, kw_only=True)
class Trained(Recorded):
    """The log that was read, its weights, and the model that was learned and saved."""

    wanted: TrainRequest
    log: Feedback
    weighing: Weighing | None
    model: Any

    @property
    def parameters(self) -> dict[str, Any]:
        """The parameters of the learner, its defaults among them, in the order of the options."""
        return parameters_of(self.model)

    @property
    def course(self) -> dict[str, Any] | None:
        """The objective after each sweep, or the mean hinge of each chunk of updates: its first, its last, how many."""
        history = np.asarray(getattr(self.model, "history_", ()), np.float64)
        if history.size == 0:
            return None
        what, unit = ("objective", "sweeps") if history.ndim == 1 else ("mean hinge", "chunks of updates")
        values = history if history.ndim == 1 else history[:, -1]
        return {"what": what, "first": float(values[0]), "last": float(values[-1]), "count": len(values), "of": unit}

    @property
    def coefficients(self) -> list[dict[str, Any]] | None:
        """What a combined model makes of what its learners say: by column."""
        return coefficients_of(self.model)

    @property
    def notes(self) -> tuple[str, ...]:
        """How the log was read, and what the fit had to do to difficult data."""
        return (*self.log.notes, *self.model.notes_)

    def summary(self, said: Callable[[str], str] = str) -> str:
        """What was read and learned, a line each; `said` puts a note in the words of the caller."""
        return "\n".join([*self._lines(), *(f"- {said(note)}" for note in self.notes)])

    def _lines(self) -> Iterator[str]:
        yield log_line(self.wanted.log, self.log)
        chosen = ", ".join(f"{name} {_short(value)}" for name, value in self.parameters.items() if value is not None)
        yield f"learned {self.wanted.model}" + (f": {chosen}" if chosen else "")
        yield weights_line(self.weighing, self.log)
        if c := self.course:
            yield f"{c['what']}: {c['first']:.6g} at first, {c['last']:.6g} at last ({c['of']}: {c['count']:,})"
        if self.coefficients:
            yield coefficients_line(self.coefficients)

    def records(self) -> dict[str, Any]:
        """The same as plain numbers, text, lists and dictionaries."""
        return {
            "log": str(self.wanted.log), "out": str(self.wanted.out), "rows": len(self.log),
            "users": self.log.n_users, "items": self.log.n_items, "model": self.wanted.model,
            "parameters": self.parameters, "weights": None if self.weighing is None else asdict(self.weighing),
            "course": self.course, "coefficients": self.coefficients, "notes": list(self.notes),
        }  # fmt: skip


def train(wanted: TrainRequest, log: Feedback, *, progress: bool = False) -> Trained:
    """Learn the model and save it; the file appears whole, or not at all. `progress` shows the learner's own bar."""
    model = learner_of(wanted.model, wanted.parameters, log, weighted=wanted.weighted)
    if "progress" in model.get_params():
        model.set_params(progress=progress)
    model.fit(log, propensities=wanted.propensities(log))
    once = {"progress": False, "checkpoint": None}  # code that loads it may want none
    model.set_params(**{name: value for name, value in once.items() if name in model.get_params()})
    model.save(wanted.out)
    return Trained(wanted=wanted, log=log, weighing=weighing(wanted, log), model=model)


# -- what is told of a model ---------------------------------------------------------------------------------


def parameters_of(model: Any) -> dict[str, Any]:
    """A learner's parameters, in the order of the options; its own order where options are of learners within it."""
    found = model.get_params(deep=False)
    order = found if any(within(model)) else dict.fromkeys((*PARAMETERS, *found))
    return {name: one_line(found[name]) for name in order if name in found and name != "progress"}


def coefficients_of(model: Any) -> list[dict[str, Any]] | None:
    """β of a stack's columns, or level and slope of a recalibration; None of others."""
    pairs: list[tuple[str, Any]] = list(
        zip(getattr(model, "columns_", ()), getattr(model, "coefficients_", ()), strict=True)
    )
    if hasattr(model, "slope_"):
        pairs = [("level", model.level_), ("slope", model.slope_)]
    return [{"column": name, "coefficient": float(value)} for name, value in pairs] or None


def coefficients_line(found: list[dict[str, Any]]) -> str:
    """The coefficients in one line."""
    return "coefficients: " + "; ".join(f"{each['column']} {each['coefficient']:.3g}" for each in found)


def _short(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
