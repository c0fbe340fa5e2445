"""The files of an audit whose rows stay on disk: lazy scans on one population, p in a column of the log.

Nothing here holds more than the distinct ids, their counts, and the rows of a range of users: the rows of large files
are first put on disk by user, and `ol.audit` joins them a range at a time.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import narwhals as nw
import polars as pl

from openloop.commands.audit.model_files import MATRIX, is_matrix, is_model_file, table_of
from openloop.commands.audit.request import (
    OWN,
    AuditInputs,
    AuditRequest,
    given_ids,
    guesses,
    is_number_of_strata,
    mixed_ids,
    propensity_choice,
    split_of,
)
from openloop.commands.audit.scan_columns import (
    ScannedIds,
    check_propensities,
    check_ratings,
    collected,
    number,
    rating,
    refuse_empty,
)
from openloop.commands.audit.scan_repeats import ScannedLog, StreamedLogs, check_numbers
from openloop.commands.audit.scan_whole import ScannedWhole, with_whole
from openloop.commands.table_files import suffix
from openloop.data.columns import Column, InputTable, choose, choose_log, shared
from openloop.data.delimited import TextForm
from openloop.data.formats import BROKEN, PARQUET, open_file
from openloop.errors import InputError, PredictionError, quoted
from openloop.propensity.naming import MODELS, is_model
from openloop.sources.frames.model_tables import refuse_repeats
from openloop.sources.frames.opening import PAIR
from openloop.sources.frames.parting import PART, WHOLE, Division, by_user
from openloop.sources.predictions import unknown_ids
from openloop.sources.rules import SIDES, no_rows, pair_columns
from openloop.support.atomic import FilePath
from openloop.support.frames import rows as rows_of
from openloop.support.memory import free_memory
from openloop.support.progress import Step, silent

KEPT, WORKED = 40, 110  # bytes for each row that is held, and for each one of the file being read
ROW_OF_TEXT, ROW_ZIPPED = 20, 5  # bytes of a short row in a file
USABLE = 0.8  # of the memory that is free
STREAMED = " or ".join(name for name, entry in MODELS.items() if entry.counts)


# -- whether to ----------------------------------------------------------------------------------------------


def rows_stay_on_disk(wanted: AuditRequest, notes: list[str]) -> bool:
    """Whether rows should stay on disk: asked for, or because they may not fit into memory and can be streamed."""
    reason = refusal(wanted)
    if wanted.stream:
        if reason is not None:
            raise InputError(f"--stream: {reason}; leave --stream out.")
        return True
    if wanted.stream is False:
        return False
    rows, free = [_about_rows(path) for path in wanted.inputs], free_memory()
    needed = KEPT * sum(rows) + WORKED * max(rows)
    if needed <= USABLE * free or reason is not None:
        return False
    sizes = f"{needed / 2**30:.1f} GiB in memory, of which {free / 2**30:.1f} GiB are free"
    notes.append(f"rows are streamed from disk: the files would take up to {sizes}")
    return True


def refusal(wanted: AuditRequest) -> str | None:
    """Why the rows cannot stay on disk."""
    for name, path in wanted.models:
        if suffix(path) == MATRIX or is_model_file(path):
            return f"model {name!r} ({path}) must be a table of pairs, whose rows can be streamed"
    asked, columns = wanted.propensity, open_file(wanted.log, wanted.columns, wanted.form).columns
    if asked is None and OWN not in columns:
        return f"--propensity must be given: a column, {STREAMED}"
    if asked is not None and asked not in columns and is_model(asked) and not (model := wanted.spec(asked)).counts:
        return f"--propensity must be a column, {STREAMED}, and {model}{wanted.corrections} needs the log in memory"
    choosing = {"test": None, "positive": None, "cold": "keep", "duplicates": "error"}
    for name, default in choosing.items():
        if (value := getattr(wanted, name)) != default:
            return f"--{name} {value} chooses among the rows of the log, which needs them in memory"
    if wanted.min_item_rows:
        return f"--min-item-rows {wanted.min_item_rows} removes items from log and models, which needs them in memory"
    if wanted.item_features is not None:
        return f"--item-features {wanted.item_features} is for the similarity of lists, which needs the lists in memory"
    named = next((s for s in wanted.strata if not is_number_of_strata(s)), None)
    return None if named is None else f"--strata {named} is a column, and only strata of propensity can be streamed"


def _about_rows(path: FilePath) -> float:
    """About how many rows a file has; none where it stays on disk or cannot be read, which is reported elsewhere."""
    file = Path(path).expanduser()
    if not file.is_file() or suffix(path) == MATRIX:
        return 0.0
    if suffix(path) in PARQUET:
        try:
            return float(pl.scan_parquet(file, glob=False).select(pl.len()).collect().item())
        except BROKEN:
            return 0.0
    return file.stat().st_size / (ROW_ZIPPED if suffix(path) == ".gz" else ROW_OF_TEXT)


# -- the scans -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Scan:
    """A file whose rows are not read, and the column of each role."""

    what: str
    table: InputTable
    columns: Mapping[str, str]

    @property
    def raw(self) -> pl.LazyFrame:
        """The columns under the names of their roles."""
        if self.table.scan is None:
            raise InputError(f"{self.what}: cannot be streamed; leave --stream out.")
        rows = self.table.scan(list(dict.fromkeys(self.columns.values())))
        return rows.select(pl.col(column).alias(role) for role, column in self.columns.items())

    @property
    def types(self) -> pl.Schema:
        """The types of the columns."""
        return self.raw.collect_schema()

    def ids(self, role: str, *, keep_text: bool = False) -> ScannedIds:
        """The ids of users or items, checked."""
        what = f"{self.what}: {role} column {quoted(self.columns[role])}"
        return ScannedIds.of(self.raw.select(role), what, text=self.table.text, keep_text=keep_text)

    def check(self) -> None:
        """Refuse what `read` refuses of a log's numbers."""
        for role, check in (("rating", check_ratings), ("propensity", check_propensities)):
            if role in self.columns:
                check(self.raw.select(role), f"{self.what}: {role} column {quoted(self.columns[role])}")

    def frame(self, ids: Mapping[str, ScannedIds]) -> pl.LazyFrame:
        """The log's columns as `read` has them, in 64 bits; positives are rated 1."""
        types = self.types
        made = {role: ids[role].column for role in SIDES} | {"rating": pl.lit(1.0)}
        for role in self.columns:
            if role not in SIDES:
                made[role] = (rating if role == "rating" else number)(role, types[role])
        return self.raw.select(**made)

    def predictions(self, ids: Mapping[str, ScannedIds]) -> pl.LazyFrame:
        """The ids, and scores and ranks unchanged; the code that reads them reports what is not a number."""
        return self.raw.with_columns(ids[side].column.alias(side) for side in SIDES)


# -- one audit -----------------------------------------------------------------------------------------------


def gather(wanted: AuditRequest, notes: list[str], step: Step = silent) -> AuditInputs:
    """Scan everything, count, and say what was guessed or assumed."""
    with ExitStack() as until:  # what was put on disk goes, also where something is refused
        inputs = _gathered(wanted, notes, step, until)
        return replace(inputs, held=until.pop_all())


def _gathered(wanted: AuditRequest, notes: list[str], step: Step, until: ExitStack) -> AuditInputs:
    step("looking at the files", 0.0)
    table = open_file(wanted.log, wanted.columns, wanted.form)
    chosen = choose_log(table, wanted.columns)
    notes += guesses(table, chosen, wanted.columns)
    choice = propensity_choice(wanted, table, notes)
    own = {} if choice.column is None else {"propensity": choice.column}
    log = Scan(what=str(wanted.log), table=table, columns=chosen | own)
    rated: dict[str, Any] = {} if "rating" in chosen else {"rating": False}
    beside = [
        None if path is None else _beside(path, chosen, more, wanted.form_of(path))
        for path, more in ((wanted.exclude, rated), (wanted.open_loop, {}))
    ]
    named = wanted.model_columns(chosen)
    models = {name: [_predictions(name, path, named) for path in paths] for name, paths in wanted.tables.items()}
    step("counting users and items", 0.3)
    logs = [scan for scan in (log, *beside) if scan is not None]
    for scan in logs:
        refuse_empty(scan.raw, scan.what)
    found = {role: _of_logs(wanted, role, logs, chosen) for role in SIDES}
    for scan in logs:  # after the ids, as where rows are read
        scan.check()
    known = {role: ids for role, (ids, _) in found.items()}
    logged = [scan.frame({role: next(own) for role, (_, own) in found.items()}) for scan in logs]
    with _logs_first([ScannedLog(scan.what, own, own) for scan, own in zip(logs, logged, strict=True)]):
        predicted = {name: [_predicted(name, scan, known) for scan in scans] for name, scans in models.items()}
    step("looking for rows that are there twice", 0.5)
    tables, ranges = by_user([*logged, *(own for scans in predicted.values() for own in scans)], until, step)
    by_file = [ScannedLog(scan.what, *frames) for scan, *frames in zip(logs, logged, tables, strict=False)]
    scored, *others = (tables.pop(0) for _ in logs)
    train, sample = (None if scan is None else others.pop(0) for scan in beside)
    with _logs_first(by_file, ranges):
        frames = {
            name: [_refuse_repeats(scan, tables.pop(0), ranges) for scan in scans] for name, scans in models.items()
        }
    step("finding propensities", 0.9)
    parts = SplitScans.of(wanted, scored, train, ranges, notes)
    more = parts.more(complete=_complete(models, frames, known))
    rows, known_too = with_whole(ScannedWhole.of(parts.whole, known), choice, wanted, notes)
    return AuditInputs(
        models={name: found if len(found) > 1 else found[0] for name, found in frames.items()},
        log=rows,
        propensities="propensity",
        asked=wanted.question(
            exclude=train, open_loop=sample, user="user", item="item", rating="rating",
            population=tuple(len(known[role]) for role in SIDES), parts=ranges, **more, **known_too,
        ),
        streamed=StreamedLogs(logs=by_file, parts=ranges, excluded=parts.rows[1] or None),
        notes=tuple(notes), about_log=f"{wanted.log}, streamed from disk",
        about_propensity=choice.source(split=len(parts.whole) > 1) + wanted.corrections,
    )  # fmt: skip


@contextmanager
def _logs_first(logs: Sequence[ScannedLog], ranges: Division | None = None) -> Generator[None]:
    """A log that has a pair twice is refused before predictions are, as where rows are read.

    Before there are ranges of users it would take minutes to find that out about many rows.
    """
    try:
        yield
    except InputError:
        if ranges is not None or sum(rows_of(log.rows) for log in logs) <= PART:
            StreamedLogs(logs=logs, parts=ranges or WHOLE).refuse_repeats()
        raise


def _beside(path: FilePath, chosen: Mapping[str, str], more: dict[str, Any], form: TextForm) -> Scan:
    table = open_file(path, chosen, form)
    named: dict[str, Any] = shared(table, chosen)
    columns = choose(table, named) if "rating" in chosen else choose_log(table, named | more)
    return Scan(what=str(path), table=table, columns=columns)


def _predictions(name: str, path: FilePath, named: Mapping[str, Column]) -> Scan:
    what = f"model {name!r} ({path})"
    table = table_of(what, path, named)
    if is_matrix(table, named):
        raise InputError(f"--stream: {what} is a matrix, which is read whole; give user, item and score.")
    return Scan(what=what, table=table, columns=pair_columns(table, named))


def _of_logs(
    wanted: AuditRequest, role: str, logs: Sequence[Scan], chosen: Mapping[str, str]
) -> tuple[pl.Series, Iterator[ScannedIds]]:
    """All ids of the population, and those of each log."""
    given = given_ids(role, wanted.users if role == "user" else wanted.items, chosen[role])
    if given is not None:
        known = pl.Series(role, given.ids.tolist())
        return known, iter([_within(scan, role, known) for scan in logs])
    own = [scan.ids(role) for scan in logs]
    if len({ids.whole for ids in own}) > 1:
        raise mixed_ids(role, [ids.ids[0] for ids in own])
    return pl.concat([ids.ids for ids in own]).unique().sort().alias(role), iter(own)


def _within(scan: Scan, role: str, known: pl.Series) -> ScannedIds:
    """The ids of a file, all of which a population has."""
    found = scan.ids(role, keep_text=known.dtype == pl.String)
    strange = found.unknown(known)
    if strange.height:
        rows = rows_of(scan.raw.filter(pl.col(role).is_in(strange["field"].implode())))
        names = strange["id"].unique()
        like = known.head(2).to_list() if len(names) == len(found.ids) > 1 else ()
        raise unknown_ids(scan.what, role, names, rows, integers=known.dtype == pl.Int64, like=like)
    return found


def _predicted(model: str, scan: Scan, known: Mapping[str, pl.Series]) -> pl.LazyFrame:
    if collected(scan.raw.head(1)).height == 0:
        raise no_rows(scan.what)
    found = scan.predictions({role: _within(scan, role, known[role]) for role in SIDES})
    check_numbers(model, scan.what, found)  # before pairs, as where rows are read
    return found


def _refuse_repeats(scan: Scan, frame: pl.LazyFrame, ranges: Division) -> pl.LazyFrame:
    refuse_repeats(scan.what, _pairs(frame), PredictionError, parts=ranges)
    return frame


def _pairs(frame: pl.LazyFrame) -> Any:
    """User and item, as frames of engines have them."""
    return nw.from_native(frame.select(pl.col(side).alias(key) for side, key in zip(SIDES, PAIR, strict=True)))


def _complete(
    models: Mapping[str, Sequence[Scan]], frames: Mapping[str, Sequence[pl.LazyFrame]], known: Mapping[str, pl.Series]
) -> bool:
    """Whether every model has the scores of all cells, and none has ranks."""
    cells = len(known["user"]) * len(known["item"])
    listed = any("rank" in scan.columns for scans in models.values() for scan in scans)
    return not listed and all(rows_of(frame) == cells for found in frames.values() for frame in found)


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitScans:
    """The log, the log that leaves the rankings, and how one log became the two."""

    log: pl.LazyFrame
    train: pl.LazyFrame | None
    way: str  # random, time or none
    rows: tuple[int, int]

    @classmethod
    def of(
        cls,
        wanted: AuditRequest,
        log: pl.LazyFrame,
        train: pl.LazyFrame | None,
        ranges: Division,
        notes: list[str],
    ) -> SplitScans:
        """As said, or as the pairs of the two suggest."""
        if train is None:
            return cls(log=log, train=None, way="none", rows=(rows_of(log), 0))
        rows = rows_of(log), rows_of(train)
        both = zip(*(ranges.pieces(_pairs(frame)) for frame in (train, log)), strict=True)
        common = sum(rows_of(own.join(logged, on=list(PAIR), how="semi")) for own, logged in both)
        return cls(log=log, train=train, way=split_of(wanted, common, rows, notes), rows=rows)

    @property
    def whole(self) -> list[pl.LazyFrame]:
        """The log that propensities are about, in parts."""
        return [self.log] if self.train is None or self.way == "none" else [self.log, self.train]

    def more(self, *, complete: bool) -> dict[str, Any]:
        """What is known of the parts: complete scores, no scale after a split by time, shares of a random one."""
        more: dict[str, Any] = {"complete": True} if complete else {}
        if self.train is not None:
            more["excluded_share"] = 0.0  # of a log of its own
        if self.way == "time":
            more["scaled"] = False
        if self.way == "random":
            more |= dict(zip(("share", "excluded_share"), (rows / sum(self.rows) for rows in self.rows), strict=True))
        return more
