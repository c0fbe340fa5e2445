"""A recommender learned from a log by name, weighted by its propensities, and saved."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from openloop import learners
from openloop.commands.log_files import LogRequest
from openloop.commands.table_files import check_extension, log_line, refuse_overwriting
from openloop.core.feedback import Feedback, Floats
from openloop.core.propensities import Propensities
from openloop.core.weights import effective_size
from openloop.data.columns import Column
from openloop.data.reading import read
from openloop.errors import InputError, did_you_mean
from openloop.support.atomic import FilePath, Recorded
from openloop.support.progress import Step, silent

MODELS = {
    "mf": "MF",
    "adg": "ADG",
    "auc": "AUC",
    "wmf": "WMF",
    "svd": "PureSVD",
    "popularity": "Popularity",
    "bias": "Bias",
}
# The parameters that have an option; those of a learner beyond them keep their defaults.
PARAMETERS = (
    "factors", "reg", "bias_reg", "loss", "solver", "iterations", "tol", "updates", "gamma", "rate", "threshold",
    "threads", "rng",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainRequest(LogRequest):
    """What to read, which model to learn with which weights, and where to save it; what cannot work is refused here.

    `parameters` are the learner's own, only those that were given: its defaults hold for the others. `users` and
    `items` are sizes of a population with the ids 0 … n-1.
    """

    out: FilePath
    model: str
    parameters: dict[str, Any] = field(default_factory=dict[str, Any])
    users: int | None = None
    items: int | None = None
    propensity: Column = None
    weight: Column = None
    floor: float = 0.0

    def __post_init__(self) -> None:
        LogRequest.__post_init__(self)
        if self.model not in MODELS:
            raise InputError(f"--model {self.model!r} is no model.{did_you_mean(self.model, MODELS)}")
        _check_parameters(self.model, self.parameters)
        _check_weights(self)
        check_extension(self.out, [".safetensors"])
        refuse_overwriting([self.out], [self.log])


@dataclass(frozen=True, slots=True, kw_only=True)
class Weighing:
    """Where sample weights came from, and how much they leave of the rows; `raised` is the share below the floor."""

    column: Column  # None: rows of a pair, counted
    inverse: bool  # of propensities
    counts: bool = False  # times the number of a pair's rows, or the sum of their weights
    effective_size: float
    largest_share: float
    raised: float = 0.0

    @classmethod
    def of(cls, w: Floats, **source: Any) -> Weighing:
        """Effective size (Σw)²/Σw², and the largest weight's share of Σw."""
        return cls(effective_size=effective_size(w), largest_share=float(1 / np.sum(w / w.max())), **source)

    def text(self, rows: int) -> str:
        """The same in one line."""
        counts = "the rows of each pair, counted" if self.counts else ""
        source = "" if self.column is None else f"column {self.column!r}"
        source = f"1/p of {source}" if self.inverse else f"{source}, summed" if source and counts else source
        source = f"{source} times {counts}" if self.inverse and counts else source or counts
        floor = f", the floor raises {self.raised:.1%} of p" if self.raised else ""
        return (
            f"weights: {source}{floor}; {self.effective_size:,.0f} effective of {rows:,} rows, "
            f"the largest has {self.largest_share:.2%} of the sum"
        )


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
        found = self.model.get_params()
        return {
            name: found[name] for name in dict.fromkeys((*PARAMETERS, *found)) if name in found and name != "progress"
        }

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
    def notes(self) -> tuple[str, ...]:
        """How the log was read, and what the fit had to do to difficult data."""
        return (*self.log.notes, *self.model.notes_)

    def summary(self) -> str:
        """What was read and learned, a line each."""
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        yield log_line(self.wanted.log, self.log)
        chosen = ", ".join(f"{name} {_short(value)}" for name, value in self.parameters.items() if value is not None)
        yield f"learned {self.wanted.model}" + (f": {chosen}" if chosen else "")
        yield "weights: none" if self.weighing is None else self.weighing.text(len(self.log))
        if c := self.course:
            yield f"{c['what']}: {c['first']:.6g} at first, {c['last']:.6g} at last ({c['of']}: {c['count']:,})"
        yield from (f"- {note}" for note in self.notes)

    def records(self) -> dict[str, Any]:
        """The same as plain numbers, text, lists and dictionaries."""
        return {
            "log": str(self.wanted.log), "out": str(self.wanted.out), "rows": len(self.log),
            "users": self.log.n_users, "items": self.log.n_items, "model": self.wanted.model,
            "parameters": self.parameters, "weights": None if self.weighing is None else asdict(self.weighing),
            "course": self.course, "notes": list(self.notes),
        }  # fmt: skip


def read_log(wanted: TrainRequest, step: Step = silent) -> Feedback:
    """The log with its column of propensities or weights."""
    step("reading the log", 0.0)
    return read(
        wanted.log, **wanted.reading, propensity=wanted.propensity, weight=wanted.weight, users=wanted.users,
        items=wanted.items,
    )  # fmt: skip


def train(wanted: TrainRequest, log: Feedback, *, progress: bool = False) -> Trained:
    """Learn the model and save it; the file appears whole, or not at all. `progress` shows the learner's own bar."""
    model = _learner(wanted.model)
    if "factors" in model.get_params():  # the default may be more than a small grid can have
        model.set_params(factors=min(model.factors, log.n_users, log.n_items))
    model.set_params(**wanted.parameters)
    if "progress" in model.get_params():
        model.set_params(progress=progress)
    weights, weighing = _weights(wanted, log)
    model.fit(log, sample_weight=weights)
    if "progress" in model.get_params():
        model.set_params(progress=False)  # whoever loads it may want none
    model.save(wanted.out)
    return Trained(wanted=wanted, log=log, weighing=weighing, model=model)


def _learner(name: str) -> Any:
    return getattr(learners, MODELS[name])()


def _weights(wanted: TrainRequest, log: Feedback) -> tuple[Floats | None, Weighing | None]:
    counts = wanted.duplicates == "count"
    if wanted.propensity is not None:
        p = Propensities(values=log.propensity, floor=wanted.floor, fingerprint=log.fingerprint)  # pyright: ignore[reportArgumentType], it was read
        w = p.weights if log.weight is None else p.weights * log.weight
        return w, Weighing.of(w, column=wanted.propensity, inverse=True, raised=p.clipped, counts=counts)
    if log.weight is not None:
        return log.weight, Weighing.of(log.weight, column=wanted.weight, inverse=False, counts=counts)
    return None, None


def _short(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


# -- refusals ------------------------------------------------------------------------------------------------


def option(parameter: str) -> str:
    """The option that sets a learner's parameter."""
    return "--seed" if parameter == "rng" else f"--{parameter.replace('_', '-')}"


def _check_parameters(name: str, given: dict[str, Any]) -> None:
    taken = _learner(name).get_params()
    own = [parameter for parameter in PARAMETERS if parameter in taken]
    for parameter in given:
        if parameter not in own:
            takes = f"takes {', '.join(map(option, own))}" if own else "has nothing to set"
            raise InputError(f"{option(parameter)}: {name} does not use it, it {takes}; leave it out.")


def _check_weights(wanted: TrainRequest) -> None:
    if wanted.propensity is not None and wanted.weight is not None:
        raise InputError("--propensity makes the weights 1/p, and --weight names others; leave one of them out.")
    if wanted.floor and wanted.propensity is None:
        raise InputError("--floor bounds propensities, and there are none; pass --propensity COLUMN, or leave it out.")
    if not 0 <= wanted.floor <= 1:
        raise InputError(f"--floor must lie in [0, 1], got {wanted.floor:g}; 0 raises nothing.")
