"""An audit of impressions from files: the log with its positions, rankers, and how examination is found."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from openloop import learners, propensity
from openloop.audits.results import Audit
from openloop.audits.shown import ESTIMATORS, ShownAuditQuestion, conduct_shown
from openloop.commands.audit.model_files import is_model_file
from openloop.commands.audit.request import OWN, ModelFile
from openloop.core.impressions import Impressions
from openloop.data.columns import Column, InputTable
from openloop.data.delimited import TextForm
from openloop.data.formats import open_file
from openloop.data.impressions import IDS, ShownColumns
from openloop.data.reading import read
from openloop.errors import InputError, OpenloopError, UndefinedError, did_you_mean
from openloop.estimators.shown import shown_method, shown_metric
from openloop.propensity.naming import EXAMINED_BY
from openloop.support.atomic import FilePath
from openloop.support.clock import seconds_since, start
from openloop.support.fields import fields_of
from openloop.support.progress import Step, silent

if TYPE_CHECKING:
    from openloop.propensity import Examination

EXAMINATION, LOGGED = "examination", "logged"
AFFINE = "affine"
UNEXAMINED = "examination was not fitted"
WAYS = (*EXAMINED_BY, AFFINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownRequest:
    """Which files to audit and how, where the log has positions.

    `propensity` is "examination" (θ is fitted, "examination:user-item" says how), "logged" (the column "propensity",
    and no θ), or a column of π0. But for "logged", θ is fitted where the log identifies it.
    """

    log: FilePath
    models: tuple[ModelFile, ...]
    position: Column
    user: Column = None
    item: Column = None
    score: Column = None
    rank: Column = None
    request: Column = None
    reward: Column = None
    propensity: str | None = None
    exposure: tuple[str, ...] = ()
    prefix: Column = None
    slate: Column = None
    shuffled: Column = None
    pool: Column = None
    arms: tuple[str, ...] = ()
    time: Column = None
    separator: str | None = None
    header: bool | None = None
    skip: int = 0
    comment: str | None = None
    candidates: str = "all"
    metrics: tuple[str, ...] = ()
    estimators: tuple[str, ...] = ()
    baseline: str | None = None
    level: float = 0.95
    seed: int = 0

    def __post_init__(self) -> None:
        names = [name for name, _ in self.models]
        if len({*names}) < max(2, len(names)):
            raise InputError(
                f"audit: compares rankers, so it needs at least two names with one table each, got {names}; add "
                "another NAME=TABLE."
            )
        for name in self.metrics:
            shown_metric(name)
        for name in self.estimators:
            shown_method(name)
        if self.examines_by not in ("", *WAYS):
            known = did_you_mean(self.examines_by, WAYS)
            raise InputError(f"--propensity {self.propensity}: unknown for a log with positions.{known}")

    @property
    def examines(self) -> bool:
        """Whether θ was asked for by name."""
        return (self.propensity or "").partition(":")[0] == EXAMINATION

    @property
    def examines_by(self) -> str:
        """How θ is fitted, where that is said."""
        return (self.propensity or "").partition(":")[2] if self.examines else ""

    @property
    def form(self) -> TextForm:
        """How the log's text is read."""
        return TextForm(**fields_of(TextForm, self))

    @property
    def inputs(self) -> list[FilePath]:
        """The files to read."""
        return [self.log, *(path for _, path in self.models)]


def run_shown(wanted: ShownRequest, command: str, step: Step = silent) -> Audit:
    """The audit that was asked for; `command` is the command line that asks for it again."""
    began = start()
    notes: list[str] = []
    step("reading the log", 0.0)
    log, exam = _read(wanted, notes)
    step("reading the models", 0.3)
    models = {name: _ranker(path) for name, path in wanted.models}
    named: dict[str, Any] = {side: c for side in IDS if isinstance(c := getattr(wanted, side), str)}
    named |= {"score": wanted.score, "rank": wanted.rank}
    asked = ShownAuditQuestion(
        metrics=wanted.metrics or None, estimators=wanted.estimators or ESTIMATORS, candidates=wanted.candidates,
        level=wanted.level, baseline=wanted.baseline, rng=wanted.seed, columns=named,
    )  # fmt: skip
    try:
        found = conduct_shown(models, log, exam, asked, lambda what, done: step(what, 0.4 + 0.6 * done))
    except UndefinedError as error:  # the notes say why there is no examination
        why = " ".join(note for note in notes if note.startswith(UNEXAMINED))
        raise UndefinedError(f"{error} {why}".rstrip()) from error
    setting = replace(found.setting, log=str(wanted.log), command=command, seconds=seconds_since(began))
    return replace(found, setting=setting, notes=tuple(dict.fromkeys((*notes, *found.notes))))


def _read(wanted: ShownRequest, notes: list[str]) -> tuple[Impressions, Examination | None]:
    given = {name: column for name, column in fields_of(ShownColumns, wanted).items() if column not in (None, ())}
    table = open_file(wanted.log, {"position": wanted.position}, wanted.form)
    log = read(wanted.log, **given | {"propensity": _logged(wanted, table, notes)}, **fields_of(TextForm, wanted))
    return log, _examined(wanted, log, notes)


def _logged(wanted: ShownRequest, table: InputTable, notes: list[str]) -> str | None:
    """The column of π0."""
    named = wanted.propensity
    if named is not None and named != LOGGED and not wanted.examines:
        return named  # a column that is not there is an error of reading
    if OWN in table.columns:
        notes.append(f"propensities are the log's column {OWN!r}")
        return OWN
    if named == LOGGED:
        raise InputError(f"--propensity {LOGGED}: {wanted.log} has no column {OWN!r}; name the one that has them.")
    return None


def _examined(wanted: ShownRequest, log: Impressions, notes: list[str]) -> Examination | None:
    """θ, where it was asked for, or where nothing was asked for and the log identifies it."""
    if wanted.propensity == LOGGED:
        return None
    by = wanted.examines_by or _way(log)
    try:
        exam = propensity.Examination(**{"method" if by == AFFINE else "by": by}).fit(log)
    except OpenloopError as reason:
        if wanted.examines:
            raise
        notes.append(f"{UNEXAMINED}: {reason}")
        return None
    notes += [f"examination is that of {by}: θ fitted on this log; pass --propensity to choose", *exam.notes_]
    return exam


def _way(log: Impressions) -> str:
    """How the log tells positions and items apart, the surest way first."""
    if log.shuffled is not None and bool(log.shuffled.any()):
        return "randomised"
    if log.arms is not None:
        return "assignment"
    return "randomised" if log.propensity is not None else "user-item"


def _ranker(path: FilePath) -> Any:
    """A table of lists, or a model file."""
    if is_model_file(path):
        return learners.load(path)
    return open_file(path, {"rating": None})
