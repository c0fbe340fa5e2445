"""The files of an audit whose rows stay on disk: lazy scans on one population, p in a column of the log.

Nothing here holds more than the distinct ids and a count for each item; `ol.audit` reads the scans in batches.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from openloop.commands.audit.model_files import MATRIX, is_matrix, is_model_file, table_of
from openloop.commands.audit.request import (
    OWN,
    AuditInputs,
    AuditRequest,
    Choice,
    given_ids,
    guesses,
    is_number_of_strata,
    propensity_choice,
    split_of,
)
from openloop.commands.table_files import suffix
from openloop.core.positives import only_positives
from openloop.core.propensities import not_exposure
from openloop.data.columns import Column, InputTable, choose, choose_log, shared
from openloop.data.delimited import TextForm
from openloop.data.formats import PARQUET, open_file
from openloop.errors import InputError
from openloop.estimators.naming import method
from openloop.propensity.naming import MODELS, ModelSpec, is_model
from openloop.sources.predictions import unknown_ids
from openloop.sources.rules import SIDES, pair_columns
from openloop.support.atomic import FilePath
from openloop.support.memory import free_memory
from openloop.support.progress import Step, silent

UNSCALED = ("snips", "stratified", "naive")  # estimators that need no scale of p
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
    rows, free = [_rows_of(path) for path in wanted.inputs], free_memory()
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
        return (
            f"--min-item-rows {wanted.min_item_rows} cuts the catalogue of log and models, which needs them in memory"
        )
    if wanted.item_features is not None:
        return (
            f"--item-features {wanted.item_features} says how alike the items of lists are, which needs these in memory"
        )
    named = next((s for s in wanted.strata if not is_number_of_strata(s)), None)
    return None if named is None else f"--strata {named} is a column, and only strata of propensity can be streamed"


def _rows_of(path: FilePath) -> float:
    """About how many rows a file has; none where it stays on disk or cannot be read, which is reported elsewhere."""
    file = Path(path).expanduser()
    if not file.is_file() or suffix(path) == MATRIX:
        return 0.0
    if suffix(path) in PARQUET:
        try:
            return float(pl.scan_parquet(file, glob=False).select(pl.len()).collect().item())
        except (pl.exceptions.PolarsError, OSError):
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

    def whole_ids(self, role: str) -> bool:
        """Whether ids are integers; in delimited text, whether each is written as that integer is."""
        dtype = self.raw.collect_schema()[role]
        if not self.table.text:
            return dtype.is_integer()
        field = pl.col(role)
        same = field.cast(pl.Int64, strict=False).cast(pl.String).eq_missing(field)
        return bool(_collected(self.raw.select(same.all())).item())

    def frame(self, ids: Mapping[str, Any]) -> pl.LazyFrame:
        """Ids of the types given, all else as 64-bit floats; what is no number is missing; positives are rated 1."""
        columns = [pl.col(role).cast(ids.get(role, pl.Float64), strict=False) for role in self.columns]
        return self.raw.select(*columns, *([] if "rating" in self.columns else [pl.lit(1.0).alias("rating")]))

    def predictions(self, ids: Mapping[str, Any]) -> pl.LazyFrame:
        """Ids of the types given, and scores and ranks as they are: whoever reads them says which are no numbers."""
        return self.raw.with_columns(pl.col(side).cast(ids[side], strict=False) for side in SIDES)


def _collected(frame: pl.LazyFrame) -> pl.DataFrame:
    return frame.collect(engine="streaming")


def _rows(frame: pl.LazyFrame) -> int:
    return int(_collected(frame.select(pl.len())).item())


def _id_types(scans: Sequence[Scan]) -> dict[str, Any]:
    """Integers where all files have them, else text; typed integers beside text are refused."""
    types: dict[str, Any] = {}
    for role in SIDES:
        whole = [scan.whole_ids(role) for scan in scans]
        typed = [scan for scan, w in zip(scans, whole, strict=True) if w and not scan.table.text]
        if typed and not all(whole):
            other = scans[whole.index(False)]
            raise InputError(
                f"the {role} ids are integers in {typed[0].what} and text in {other.what}; cast one of them."
            )
        types[role] = pl.Int64() if all(whole) else pl.String()
    return types


# -- one audit -----------------------------------------------------------------------------------------------


def gather(wanted: AuditRequest, notes: list[str], step: Step = silent) -> AuditInputs:
    """Scan everything, count, and say what was guessed or assumed."""
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
    logs = [scan for scan in (log, *beside) if scan is not None]
    types = _id_types([*logs, *(scan for scans in models.values() for scan in scans)])
    step("counting users and items", 0.3)
    known = {role: _known(wanted, role, logs, chosen, types) for role in SIDES}
    frames = {name: [scan.predictions(types) for scan in scans] for name, scans in models.items()}
    for scans in models.values():
        _refuse_unknown(scans, types, known)
    train, sample = (None if scan is None else scan.frame(types) for scan in beside)
    step("finding propensities", 0.6)
    parts = SplitScans.of(wanted, log.frame(types), train, notes)
    more = parts.more(wanted, notes, complete=_complete(models, frames, known))
    if choice.model is not None:  # only models of counts are streamed
        made = choice.model.bare(0)
        more |= {"by_items": made.fits_items, "assumes": made.assumes, "blind": True}
    return AuditInputs(
        models={name: found if len(found) > 1 else found[0] for name, found in frames.items()},
        log=parts.with_propensity(choice, wanted.floor, known, notes),
        propensities="propensity",
        asked=wanted.question(
            exclude=train, open_loop=sample, user="user", item="item", rating="rating",
            population=tuple(len(known[role]) for role in SIDES), **more,
        ),
        notes=tuple(notes), about_log=f"{wanted.log}, streamed from disk",
        about_propensity=choice.source(split=len(parts.whole) > 1) + wanted.corrections,
    )  # fmt: skip


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


def _known(
    wanted: AuditRequest, role: str, logs: Sequence[Scan], chosen: Mapping[str, str], types: Mapping[str, Any]
) -> pl.Series:
    """All ids of the population."""
    given = given_ids(role, wanted.users if role == "user" else wanted.items, chosen[role])
    if given is None:
        ids = pl.concat([scan.frame(types).select(role) for scan in logs]).unique()
        return _collected(ids)[role].drop_nulls().sort()
    known = pl.Series(role, given.ids.tolist()).cast(types[role])
    for scan in logs:
        _refuse_unknown([scan], types, {role: known})
    return known


def _refuse_unknown(scans: Sequence[Scan], types: Mapping[str, Any], known: Mapping[str, pl.Series]) -> None:
    for scan in scans:
        for role, ids in known.items():
            strange = pl.col(role).is_in(ids.implode()).not_()
            rows = _collected(scan.frame(types).filter(strange).group_by(role).len())
            if len(rows):
                raise unknown_ids(scan.what, role, rows[role], int(rows["len"].sum()), integers=None)


def _complete(
    models: Mapping[str, Sequence[Scan]], frames: Mapping[str, Sequence[pl.LazyFrame]], known: Mapping[str, pl.Series]
) -> bool:
    """Whether every model has the scores of all cells, and none has ranks."""
    cells = len(known["user"]) * len(known["item"])
    listed = any("rank" in scan.columns for scans in models.values() for scan in scans)
    return not listed and all(_rows(frame) == cells for found in frames.values() for frame in found)


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitScans:
    """The log, the log that leaves the rankings, and how one log became the two."""

    log: pl.LazyFrame
    train: pl.LazyFrame | None
    way: str  # random, time or none
    rows: tuple[int, int]

    @classmethod
    def of(cls, wanted: AuditRequest, log: pl.LazyFrame, train: pl.LazyFrame | None, notes: list[str]) -> SplitScans:
        """As said, or as the pairs of the two suggest."""
        if train is None:
            return cls(log=log, train=None, way="none", rows=(_rows(log), 0))
        rows = _rows(log), _rows(train)
        common = _rows(train.select(SIDES).join(log.select(SIDES), on=list(SIDES), how="semi"))  # holds the log's pairs
        return cls(log=log, train=train, way=split_of(wanted, common, rows, notes), rows=rows)

    @property
    def whole(self) -> list[pl.LazyFrame]:
        """The log whose cells propensities speak of, in parts."""
        return [self.log] if self.train is None or self.way == "none" else [self.log, self.train]

    def more(self, wanted: AuditRequest, notes: list[str], *, complete: bool) -> dict[str, Any]:
        """What is known of the parts: complete scores, no scale after a split by time, shares of a random one."""
        more: dict[str, Any] = {"complete": True} if complete else {}
        if self.train is not None:
            more["excluded_share"] = 0.0  # of a log of its own
        if self.way == "time":
            more |= _unscaled(wanted, notes) | {"scaled": False}
        if self.way == "random":
            more |= dict(zip(("share", "excluded_share"), (rows / sum(self.rows) for rows in self.rows), strict=True))
        return more

    def with_propensity(
        self, choice: Choice, floor: float, known: Mapping[str, pl.Series], notes: list[str]
    ) -> pl.LazyFrame:
        """The log with a column of the probability that the whole log observes a row's cell."""
        log, p = self.log, pl.col("propensity")
        if choice.model is not None:
            self._check_exposure(choice.model)
            log = log.join(self._fitted(choice.model, known, notes).lazy(), on="item", how="left")
        return log.with_columns(p.clip(lower_bound=floor).alias("propensity")) if floor else log

    def _check_exposure(self, spec: ModelSpec) -> None:
        if not spec.bare(0).fits_items:
            return
        rating = pl.concat([part.select("rating") for part in self.whole])
        low, high = _collected(rating.select(low=pl.min("rating"), high=pl.max("rating"))).row(0)
        if low is not None and only_positives(low, high):
            raise not_exposure(f"--propensity {spec}")

    def _fitted(self, spec: ModelSpec, known: Mapping[str, pl.Series], notes: list[str]) -> pl.DataFrame:
        """p of each item, from its count in the whole log."""
        counted = _collected(pl.concat([part.select("item") for part in self.whole]).group_by("item").len())
        items = pl.DataFrame({"item": known["item"]})
        n = items.join(counted, on="item", how="left", maintain_order="left")["len"].fill_null(0)
        model = spec.bare(0)
        notes += [f"{spec}: {note}" for note in model.fit_counts(n.cast(pl.Float64).to_numpy(), len(known["user"]))]
        return items.with_columns(pl.Series("propensity", model.item_propensities_))


def _unscaled(wanted: AuditRequest, notes: list[str]) -> dict[str, Any]:
    """A part split by time has p up to a factor only."""
    scaled = [name for name in wanted.estimators if method(name).scale != "never"]
    if scaled:
        raise InputError(
            f"--estimator {scaled[0]}: after --split time the probability that the log observes a cell is known up to "
            "a factor only; use snips or stratified."
        )
    if wanted.estimators:
        return {}
    notes.append("the log was split by time: its weights are 1/p, right up to an unknown factor, so ips is left out")
    return {"estimators": list(UNSCALED)}
