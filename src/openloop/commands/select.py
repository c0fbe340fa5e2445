"""The best of several named models and settings, by cross-validation under propensities, learned and saved."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from itertools import product
from typing import Any

from openloop.commands.learning import LearnRequest, Weighing, weighing, weights_line
from openloop.commands.recipes import check_model, learner_of, option, recipe_parameters
from openloop.commands.table_files import log_line
from openloop.commands.train import coefficients_line, coefficients_of, parameters_of
from openloop.core.feedback import Feedback
from openloop.errors import InputError
from openloop.estimators.naming import method
from openloop.metrics.naming import metric
from openloop.selection.selecting import select as selected
from openloop.selection.selecting import usual_estimator
from openloop.support.atomic import FilePath, Recorded
from openloop.support.wording import counted

LISTS = ("factors", "reg")  # the parameters of which several values may be tried
LOCK_FREE = ("adg", "auc")  # what they learn depends on the number of threads: they have one


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectRequest(LearnRequest):
    """What to read, which models to compare with which settings, how, and where to save the best."""

    model: tuple[str, ...]
    factors: tuple[int, ...] = ()
    reg: tuple[float, ...] = ()
    sweeps: int | None = None
    metric: str = "mse"
    estimator: str | None = None
    threshold: float | None = None
    folds: int = 4
    checkpoint: FilePath | None = None
    threads: int | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        LearnRequest.__post_init__(self)
        for name in self.model:
            check_model(name, propensities=self.propensity is not None)
        metric(self.metric)
        if self.estimator is not None:
            method(self.estimator)
        _check_lists(self)

    def settings(self, name: str) -> list[dict[str, Any]]:
        """The settings of a model to try: all combinations of those listed parameters that it has."""
        lists = {of: values for of in LISTS if (values := getattr(self, of)) and of in recipe_parameters(name)}
        return [dict(zip(lists, chosen, strict=True)) for chosen in product(*lists.values())]

    def common(self, name: str) -> dict[str, Any]:
        """What every setting of a model has: seed, sweeps, and the threads of the last fit where they change no bit."""
        threads = None if name in LOCK_FREE else self.threads
        given = {"rng": self.seed, "sweeps": self.sweeps, "threads": threads}
        return {of: value for of, value in given.items() if value is not None and of in recipe_parameters(name)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """A model with its setting, and how good it is: the mean over folds, or why there is none."""

    model: str
    parameters: Mapping[str, Any]
    value: float | None
    stderr: float | None
    folds: tuple[float | None, ...]
    best: bool
    problem: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen(Recorded):
    """The log that was read, all settings, and the best of them, which was saved."""

    wanted: SelectRequest
    log: Feedback
    estimator: str
    settings: tuple[Compared, ...]
    model: Any

    @property
    def best(self) -> Compared:
        """The winner."""
        return next(each for each in self.settings if each.best)

    @property
    def weighing(self) -> Weighing | None:
        """Where the weights came from."""
        return weighing(self.wanted, self.log)

    @property
    def parameters(self) -> list[str]:
        """The parameters of which several values could be tried, and were given."""
        return [name for name in LISTS if getattr(self.wanted, name)]

    @property
    def notes(self) -> tuple[str, ...]:
        """How the log was read, and what the last fit had to say."""
        return (*self.log.notes, *self.model.notes_)

    @property
    def question(self) -> str:
        """How the settings were compared, in one line."""
        return (
            f"{counted(len(self.settings), 'setting')}, {self.wanted.metric} by {self.estimator}, mean of "
            f"{self.wanted.folds} folds"
        )

    def opening(self) -> str:
        """What was read and asked, a line each."""
        lines = [log_line(self.wanted.log, self.log), weights_line(self.weighing, self.log), self.question]
        return "\n".join(lines)

    def closing(self, said: Callable[[str], str] = str) -> str:
        """What was chosen, a line each; `said` puts a note in the words of the caller."""
        found = coefficients_of(self.model)
        setting = ", ".join(f"{name} {value:g}" for name, value in self.best.parameters.items())
        lines = [f"chosen: {self.best.model}" + (f", {setting}" if setting else "") + "; learned from all rows"]
        lines += [coefficients_line(found)] if found else []
        return "\n".join([*lines, *(f"- {said(note)}" for note in self.notes)])

    def records(self) -> dict[str, Any]:
        """The same as plain numbers, text, lists and dictionaries."""
        return {
            "log": str(self.wanted.log), "out": str(self.wanted.out), "rows": len(self.log),
            "users": self.log.n_users, "items": self.log.n_items, "metric": self.wanted.metric,
            "estimator": self.estimator, "folds": self.wanted.folds, "seed": self.wanted.seed,
            "weights": None if self.weighing is None else asdict(self.weighing),
            "settings": [asdict(each) for each in self.settings], "model": self.best.model,
            "parameters": parameters_of(self.model), "coefficients": coefficients_of(self.model),
            "notes": list(self.notes),
        }  # fmt: skip


def select(wanted: SelectRequest, log: Feedback, *, progress: bool = False) -> Chosen:
    """Compare all models and settings, learn the best from all rows, and save it."""
    choices = [(name, setting) for name in wanted.model for setting in wanted.settings(name)]
    learners = {
        str(number): learner_of(name, wanted.common(name) | setting, log, weighted=wanted.weighted)
        for number, (name, setting) in enumerate(choices)
    }
    how = wanted.estimator or usual_estimator(metric(wanted.metric), log)
    found = selected(
        learners, log, wanted.propensities(log), metric=wanted.metric, estimator=how, folds=wanted.folds,
        threshold=wanted.threshold, checkpoint=wanted.checkpoint, threads=wanted.threads, progress=progress,
        rng=wanted.seed,
    )  # fmt: skip
    found.model.save(wanted.out)
    settings = tuple(
        _compared(*choice, line) for choice, line in zip(choices, found.table.rows(named=True), strict=True)
    )
    return Chosen(wanted=wanted, log=log, estimator=how, settings=settings, model=found.model)


def _compared(model: str, parameters: Mapping[str, Any], line: Mapping[str, Any]) -> Compared:
    folds = tuple(value for name, value in line.items() if name.startswith("fold_"))
    rest = {name: line[name] for name in ("value", "stderr", "best", "problem")}
    return Compared(model=model, parameters=parameters, folds=folds, **rest)


# -- refusals ------------------------------------------------------------------------------------------------


def _check_lists(wanted: SelectRequest) -> None:
    if not wanted.model:
        raise InputError("--model: none is given; name at least one, as --model mf.")
    for name in ("model", *LISTS):
        values = getattr(wanted, name)
        if len(set(values)) < len(values):
            raise InputError(
                f"{option(name)}: a value is named twice in {', '.join(map(str, values))}; name each once."
            )
    for name in (*LISTS, "sweeps"):
        if getattr(wanted, name) and not any(name in recipe_parameters(model) for model in wanted.model):
            raise InputError(f"{option(name)}: {' and '.join(wanted.model)} do not use it; leave it out.")
