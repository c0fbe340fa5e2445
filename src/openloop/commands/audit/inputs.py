"""An audit from files: log, models and propensities, read, brought to one population, and judged."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

import numpy as np
import polars as pl

from openloop.audits.auditing import conduct
from openloop.audits.results import Audit
from openloop.commands.audit import scans
from openloop.commands.audit.model_files import candidate
from openloop.commands.audit.request import (
    GUESSED,
    UNEXPOSED,
    AuditInputs,
    AuditRequest,
    Choice,
    given_ids,
    guesses,
    is_number_of_strata,
    mixed_ids,
    propensity_choice,
    split_of,
)
from openloop.commands.fitting import fit
from openloop.core.covariates import Covariates
from openloop.core.feedback import Array, Feedback, Vocabulary
from openloop.core.propensities import Propensities, check_exposure, predicted_by
from openloop.data.columns import choose, choose_log, shared
from openloop.data.contents import cut_short
from openloop.data.features import features_beside
from openloop.data.formats import open_file
from openloop.data.reading import read
from openloop.data.splitting import split
from openloop.errors import ColumnError, InputError, did_you_mean
from openloop.support.atomic import FilePath
from openloop.support.clock import seconds_since, start
from openloop.support.progress import Step, silent
from openloop.support.system_errors import FULL

READING = 0.4  # of the work


def run(wanted: AuditRequest, command: str, step: Step = silent) -> Audit:
    """The audit that was asked for; `command` is the command line that asks for it again."""
    began = start()
    try:
        inputs = gather(wanted, _part(step, 0.0, READING))
        found = conduct(inputs.models, inputs.log, inputs.propensities, inputs.asked, _part(step, READING, 1.0))
    except (
        pl.exceptions.PolarsError,
        pl.exceptions.PanicException,
    ) as error:  # of rows that are read only now
        raise cut_short(f"{wanted.log} or a file beside it", str(error)) from error
    except OSError as error:
        if error.errno in FULL:  # of the disk where rows are joined
            raise
        name = error.filename or wanted.log
        raise InputError(
            f"{name}: cannot be read ({error.strerror or error}); check it and its permissions."
        ) from error
    return _with_sources(found, inputs, command, seconds_since(began))


def _part(step: Step, low: float, high: float) -> Step:
    """A step of one part of the work."""
    return lambda what, done: step(what, low + (high - low) * done)


def _with_sources(found: Audit, inputs: AuditInputs, command: str, seconds: float) -> Audit:
    words = {"log": inputs.about_log, "propensity": inputs.about_propensity, "command": command}
    setting = replace(found.setting, **words, seconds=seconds)
    return replace(found, setting=setting, notes=tuple(dict.fromkeys((*inputs.notes, *found.notes))))


def gather(wanted: AuditRequest, step: Step = silent) -> AuditInputs:
    """Read everything, and say what was guessed or assumed."""
    notes: list[str] = []
    if scans.is_scanned(wanted, notes):
        return scans.gather(wanted, notes, step)
    step("reading the log", 0.0)
    found = _Reading(wanted)
    log, train, whole = found.parts()
    models = found.models()
    step("fitting propensities", 0.6)
    propensities = found.propensities(log, whole)
    return AuditInputs(
        models=models, log=log, propensities=propensities,
        asked=wanted.question(
            exclude=None if wanted.repeats == "keep" else train, trained_on=train, sample=found.open_loop,
            columns=wanted.model_columns(found.chosen),
            groups=found.groups(log), check=wanted.check and whole, item_features=found.item_features(log),
        ),
        notes=found.notes, about_log=str(wanted.log),
        about_propensity=found.choice.source(split=whole is not log) + wanted.corrections,
    )  # fmt: skip


class _Reading:
    """The files as they come in: what was chosen, what was found, and notes on it."""

    def __init__(self, wanted: AuditRequest) -> None:
        self.wanted = wanted
        self.notes: list[str] = []
        self.table = open_file(wanted.log, wanted.columns, wanted.form)
        self.chosen: dict[str, Any] = choose_log(self.table, wanted.columns)
        self.notes += guesses(self.table, self.chosen, wanted.columns)
        self.choice = propensity_choice(wanted, self.table, self.notes)
        self.open_loop: Feedback | None = None

    # -- one population --------------------------------------------------------------------------------------

    def parts(self) -> tuple[Feedback, Feedback | None, Feedback]:
        """The log, the excluded log, and the log that propensities are about; on one grid."""
        wanted = self.wanted
        known = [given_ids(role, given, self.chosen[role]) for role, given in self._given()]
        reading: dict[str, Any] = wanted.reading | {
            "propensity": self.choice.column,
            "users": known[0],
            "items": known[1],
        }
        if wanted.test is None:
            log = read(wanted.log, **reading)
            train = None if wanted.exclude is None else self._beside(wanted.exclude, known, self._alike)
        else:
            train, log = split(wanted.log, wanted.test, by="time", repeats=wanted.repeats, **reading)
        sample = None if wanted.open_loop is None else self._beside(wanted.open_loop, known, {})
        told = [note for part in (train, log) if part is not None for note in part.notes]
        self.notes = list(dict.fromkeys([*self.notes, *told]))
        parts = [part for part in (log, train, sample) if part is not None]
        users, items = (
            ids or united(role, [getattr(part, f"{role}s") for part in parts])
            for (role, _), ids in zip(self._given(), known, strict=True)
        )
        log, train, self.open_loop = (None if p is None else onto(p, users, items) for p in (log, train, sample))
        found: Any = (log, None, log) if log is None or train is None else self._split(log, train)
        if self.choice.guessed and found[2].positives:
            self.choice = Choice()
            self.notes.append(UNEXPOSED)
        return found

    def _given(self) -> tuple[tuple[str, Any], tuple[str, Any]]:
        return ("user", self.wanted.users), ("item", self.wanted.items)

    @property
    def _alike(self) -> dict[str, Any]:
        """What an excluded log is read by as the log is."""
        wanted = self.wanted
        rated: dict[str, Any] = {"positive": wanted.positive} if "rating" in self.chosen else {"rating": False}
        return rated | {"duplicates": wanted.duplicates}

    def _beside(self, path: FilePath, known: list[Vocabulary | None], more: dict[str, Any]) -> Feedback:
        """A log beside the log: columns of the same names, others by obvious ones; ratings where the log has them."""
        form = self.wanted.form_of(path)
        table = open_file(path, self.chosen, form)
        named: dict[str, Any] = shared(table, self.chosen | {"time": self.wanted.time})
        if "rating" in self.chosen:
            choose(table, named)
        found = read(path, **named | more | asdict(form), users=known[0], items=known[1])
        return replace(found, notes=tuple(f"{path}: {note}" for note in found.notes))

    def _split(self, log: Feedback, train: Feedback) -> tuple[Feedback, Feedback, Feedback]:
        """Both parts with their shares, and the whole; see `ol.split`."""
        way = "time"
        if self.wanted.test is None:
            way = split_of(
                self.wanted,
                int(np.isin(log.cell, train.cell, assume_unique=True).sum()),
                (len(log), len(train)),
                self.notes,
            )
        if way == "none":
            return log, train, log
        whole = _merged(log, train)
        shares = [None if way == "time" else np.array([len(part) / len(whole)]) for part in (log, train)]
        known = {"origin": whole.fingerprint, "item_rows": whole.rows_of_items, "positives": whole.positives,
                 "split": ("time" if way == "time" else "row",)}  # fmt: skip
        log, train = (replace(part, share=share, **known) for part, share in zip((log, train), shares, strict=True))
        return log, train, whole

    def models(self) -> dict[str, Any]:
        """The models, whose tables are read when they are evaluated."""
        named = self.wanted.model_columns(self.chosen)
        return {name: candidate(name, paths, named, self.notes) for name, paths in self.wanted.tables.items()}

    # -- propensities ----------------------------------------------------------------------------------------

    def propensities(self, log: Feedback, whole: Feedback) -> Any:
        """The log's own column, or a model fitted on the whole log; none if it is unknown what was shown."""
        wanted, model = self.wanted, self.choice.model
        if self.choice.none:
            return None
        self.notes += [GUESSED] if self.choice.guessed else []
        if model is None:
            return Propensities(values=log.propensity, floor=wanted.floor, fingerprint=log.fingerprint)  # pyright: ignore[reportArgumentType], it was read
        fitted = fit(model, whole, self.chosen, wanted.seed)
        self.notes += [f"{model}: {note}" for note in getattr(fitted, "notes_", ())]
        if whole.positives:
            check_exposure(f"--propensity {model}", predicted_by("audit", fitted, log), log)
        return fitted

    def item_features(self, log: Feedback) -> Covariates | None:
        """What is known about the items, to say how alike those of a list are."""
        path = self.wanted.item_features
        return None if path is None else features_beside("item", path, log.items, self.chosen["item"])

    def groups(self, log: Feedback) -> dict[str, Array]:
        """Columns of the log that were asked for as strata, as groupings of its rows."""
        names = [s for s in self.wanted.strata if not is_number_of_strata(s)]
        for name in names:
            if name not in self.table.columns:
                raise ColumnError(
                    f"--strata {name!r}: is neither a number of strata, as 5 or 2:width, nor a column of "
                    f"{self.wanted.log}.{did_you_mean(name, self.table.columns)}"
                )
        return {
            name: log.align(self.table.fetch([name])[name].cast(pl.String).fill_null("(missing)").to_numpy())
            for name in names
        }


# -- one population ------------------------------------------------------------------------------------------


def united(role: str, parts: list[Vocabulary]) -> Vocabulary:
    """All ids of some vocabularies of one kind."""
    first, *others = parts
    if all(other == first for other in others):
        return first
    if len({part.ids.dtype.kind == "i" for part in parts}) > 1:
        raise mixed_ids(role, [part.ids[0] for part in parts])
    return Vocabulary.of(np.concatenate([part.ids for part in parts]))


def onto(part: Feedback, users: Vocabulary, items: Vocabulary) -> Feedback:
    """The same rows on a larger grid; ids stay in order, so rows do."""
    if part.users == users and part.items == items:
        return replace(part, users=users, items=items)
    user, item = users.find(part.users.ids)[part.user], items.find(part.items.ids)[part.item]
    return replace(part, user=user, item=item, users=users, items=items, item_rows=None)  # of the other grid


def _merged(a: Feedback, b: Feedback) -> Feedback:
    """Both parts as the log that they were split from; of a pair that both have, the second's row."""
    a = a.take(~np.isin(a.cell, b.cell, assume_unique=True))
    cell = np.concatenate([a.cell, b.cell])
    order = np.argsort(cell, kind="stable")
    columns: dict[str, Any] = {
        name: np.concatenate([getattr(a, name), getattr(b, name)])[order] for name in ("user", "item", "rating")
    }
    # One part may lack bad ratings by chance.
    return Feedback(**columns, users=a.users, items=a.items, positives=a.positives and b.positives)
