"""The files of an audit: log, models and propensities, read and brought to one population.

This module knows nothing about terminals; its messages speak of the options of `openloop audit`.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl

from openloop import propensity
from openloop.commands.audit import scans as streaming
from openloop.commands.audit.model_files import candidate, shared
from openloop.commands.audit.request import (
    GUESSED,
    PROPENSITIES,
    AuditRequest,
    Gathered,
    given_ids,
    guesses,
    is_number_of_strata,
    propensity_choice,
    split_of,
)
from openloop.core.feedback import Array, Feedback, Vocabulary
from openloop.core.propensities import Propensities
from openloop.data import values
from openloop.data.columns import InputTable, choose, names_a
from openloop.data.features import features_beside
from openloop.data.formats import open_file
from openloop.data.reading import read
from openloop.errors import ColumnError, EmptyError, InputError, did_you_mean, listing
from openloop.sources.outcomes import places
from openloop.support.atomic import FilePath
from openloop.support.progress import Step, silent

THREADS = 4  # models that are read at a time, each of which needs memory


def gather(wanted: AuditRequest, step: Step = silent) -> Gathered:
    """Read everything, and say what was guessed or assumed."""
    notes: list[str] = []
    if streaming.wanted_so(wanted, notes):
        return streaming.gather(wanted, notes, step)
    step("reading the log", 0.0)
    found = _Reading(wanted)
    log, train, whole = found.parts()
    models = found.models(log, step)
    step("fitting propensities", 0.6)
    propensities = found.propensities(log, whole)
    strata, groups = found.strata(log)
    return Gathered(
        models=models, log=log, propensities=propensities, exclude=train, open_loop=found.open_loop, groups=groups,
        strata=strata, notes=tuple(found.notes), about_log=str(wanted.log), about_propensity=found.words,
        whole=whole, doubts=(GUESSED,) if found.model.guessed else (),
    )  # fmt: skip


class _Reading:
    """The files as they come in: what was chosen, what was found, and what should be said of it."""

    def __init__(self, wanted: AuditRequest) -> None:
        self.wanted = wanted
        self.notes: list[str] = []
        self.words = ""
        self.table = open_file(wanted.log, wanted.columns)
        self.chosen: dict[str, Any] = choose(self.table, wanted.columns)
        self.notes += guesses(self.chosen, wanted.columns)
        self.model = propensity_choice(wanted, self.table, self.notes)
        self.open_loop: Feedback | None = None

    # -- one population --------------------------------------------------------------------------------------

    def parts(self) -> tuple[Feedback, Feedback | None, Feedback]:
        """The log, the excluded log, and the log whose cells propensities speak of; on one grid."""
        wanted = self.wanted
        known = [given_ids(role, given, self.chosen[role]) for role, given in self._given()]
        log = read(wanted.log, **self.chosen, propensity=self.model.column, users=known[0], items=known[1])
        beside = [None if path is None else self._beside(path, known) for path in (wanted.exclude, wanted.open_loop)]
        parts = [part for part in (log, *beside) if part is not None]
        users, items = (
            ids or united(role, [getattr(part, f"{role}s") for part in parts])
            for (role, _), ids in zip(self._given(), known, strict=True)
        )
        log, train, self.open_loop = (None if p is None else onto(p, users, items) for p in (log, *beside))
        if log is None or train is None:
            return log, None, log  # pyright: ignore[reportReturnType], the log is there
        return self._apart(log, train)

    def _given(self) -> tuple[tuple[str, Any], tuple[str, Any]]:
        return ("user", self.wanted.users), ("item", self.wanted.items)

    def _beside(self, path: FilePath, known: list[Vocabulary | None]) -> Feedback:
        return read(path, **self._shared(path), users=known[0], items=known[1])

    def _shared(self, path: FilePath) -> dict[str, Any]:
        """Those of the log's columns that a file has under the same name; others are found by obvious names."""
        return dict(shared(open_file(path, self.chosen), self.chosen))

    def _apart(self, log: Feedback, train: Feedback) -> tuple[Feedback, Feedback, Feedback]:
        """Both parts with their shares, and the whole; see `ol.split`."""
        way = split_of(self.wanted, len(places(log, train)), (len(log), len(train)), self.notes)
        if way == "none":
            return log, train, log
        whole = _merged(log, train)
        shares = [None if way == "time" else np.array([len(part) / len(whole)]) for part in (log, train)]
        log, train = (
            replace(part, share=share, origin=whole.fingerprint)
            for part, share in zip((log, train), shares, strict=True)
        )
        return log, train, whole

    def models(self, log: Feedback, step: Step) -> dict[str, Any]:
        """The models in the log's codes; several are read at a time, their sorts and casts let go of the lock."""
        tables, models = self.wanted.tables, dict[str, Any]()
        with ThreadPoolExecutor(min(THREADS, os.cpu_count() or 1)) as pool:
            read = pool.map(lambda name: candidate(name, tables[name], log, self.chosen), tables)
            for done, (name, (model, note)) in enumerate(zip(tables, read, strict=True)):
                models[name] = model
                self.notes += [note] if note else []
                step("reading the models", 0.2 + 0.4 * (done + 1) / len(tables))
        return models

    # -- propensities ----------------------------------------------------------------------------------------

    def propensities(self, log: Feedback, whole: Feedback) -> Any:
        """The log's own column, or a model fitted on the whole log."""
        wanted, chosen = self.wanted, self.model
        floor = f", raised to at least {wanted.floor:g}" if wanted.floor else ""
        if chosen.column is not None:
            self.words = f"column {chosen.column!r} of the log{floor}"
            return Propensities(values=log.propensity, floor=wanted.floor, fingerprint=log.fingerprint)  # pyright: ignore[reportArgumentType], it was read
        model = getattr(propensity, PROPENSITIES[chosen.model])()
        if "rng" in model.get_params():
            model.set_params(rng=wanted.seed)
        if wanted.floor:
            model = propensity.Calibrated(model, method=None, floor=wanted.floor, rng=wanted.seed)
        fitted = model.fit(whole, **self._side(whole))
        on = "log and excluded log together" if whole is not log else "the log"
        self.words = f"{chosen.model}, fitted on {on}{floor}"
        self.notes += [f"{chosen.model}: {note}" for note in getattr(fitted, "notes_", ())]
        return fitted

    def _side(self, whole: Feedback) -> dict[str, Any]:
        """What the fit takes beside the log."""
        wanted, side = self.wanted, dict[str, Any]()
        if wanted.sample is not None:
            side["uniform"] = self._sample(wanted.sample)
        for role, path, ids in (
            ("user", wanted.user_features, whole.users),
            ("item", wanted.item_features, whole.items),
        ):
            if path is not None:
                side[f"{role}_features"] = features_beside(role, path, ids, self.chosen[role])
        return side

    def _sample(self, path: FilePath) -> Feedback | Array:
        """The uniform sample: a log, or ratings alone."""
        what, table = f"--propensity naive-bayes={path}", open_file(path, self.chosen, undivided=True)
        if len(table.columns) == 1 and not any(names_a(side, table.columns[0]) for side in ("user", "item")):
            return _ratings(what, table)
        try:
            choose(table, shared(table, self.chosen))
        except ColumnError as error:
            raise ColumnError(
                f"{what}: must have columns of user, item and rating, or one column, of ratings alone, got "
                f"{listing(list(table.columns))}; name them as in the log, or keep the ratings."
            ) from error
        return read(path, **self._shared(path), uniform=True)

    # -- strata ----------------------------------------------------------------------------------------------

    def strata(self, log: Feedback) -> tuple[tuple[str, ...], dict[str, Array]]:
        """Strata of propensity as they were asked for, and columns of the log as groupings of its rows."""
        names = [s for s in self.wanted.strata if not is_number_of_strata(s)]
        for name in names:
            if name not in self.table.columns:
                raise ColumnError(
                    f"--strata {name!r}: is neither a number of strata, as 5 or 2:width, nor a column of "
                    f"{self.wanted.log}.{did_you_mean(name, self.table.columns)}"
                )
        groups = {name: log.align(_labels(self.table.fetch([name])[name])) for name in names}
        return tuple(s for s in self.wanted.strata if s not in names), groups


# -- one population ------------------------------------------------------------------------------------------


def united(role: str, parts: list[Vocabulary]) -> Vocabulary:
    """All ids of some vocabularies of one kind."""
    first, *others = parts
    if all(other == first for other in others):
        return first
    if len({part.ids.dtype.kind == "i" for part in parts}) > 1:
        some = listing([part.ids[0] for part in parts])
        raise InputError(f"the {role} ids of the files are integers in one and text in another, as {some}; cast one.")
    return Vocabulary.of(np.concatenate([part.ids for part in parts]))


def onto(part: Feedback, users: Vocabulary, items: Vocabulary) -> Feedback:
    """The same rows on a larger grid; ids stay in order, so rows do."""
    if part.users == users and part.items == items:
        return replace(part, users=users, items=items)
    user, item = users.find(part.users.ids)[part.user], items.find(part.items.ids)[part.item]
    return replace(part, user=user, item=item, users=users, items=items)


def _merged(a: Feedback, b: Feedback) -> Feedback:
    """Both parts as the log that they were split from."""
    cell = np.concatenate([a.cell, b.cell])
    order = np.argsort(cell, kind="stable")
    columns: dict[str, Any] = {
        name: np.concatenate([getattr(a, name), getattr(b, name)])[order] for name in ("user", "item", "rating")
    }
    return Feedback(**columns, users=a.users, items=a.items)


def _ratings(what: str, table: InputTable) -> Array:
    column = table.fetch(table.columns).to_series()
    if not len(column):
        raise EmptyError(f"{what}: has no ratings; give those of cells drawn at random.")
    return values.ratings(column, f"{what}: column {column.name!r}")


def _labels(column: pl.Series) -> Array:
    return column.cast(pl.String).fill_null("(missing)").to_numpy()
