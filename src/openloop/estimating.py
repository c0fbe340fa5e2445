"""A log's propensities by a named model, checked, and written back beside its rows.

This module knows nothing about terminals; its messages speak of the options of `openloop propensity`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from openloop import propensity
from openloop.core.covariates import Covariates
from openloop.core.feedback import Feedback, Floats, Vocabulary
from openloop.data.columns import Column
from openloop.data.features import covariates
from openloop.data.formats import open_file
from openloop.data.reading import read
from openloop.errors import ColumnError, FormatError, InputError, UndefinedError, did_you_mean, listing
from openloop.files import replacing

if TYPE_CHECKING:
    from openloop.propensity.checking import Check

MODELS = {
    "popularity": "Popularity",
    "naive-bayes": "NaiveBayes",
    "logistic": "Logistic",
    "low-rank": "LowRank",
    "boosted": "Boosted",
}
WITH_FEATURES = ("logistic", "boosted")
CALIBRATIONS = ("none", "isotonic", "platt")

FilePath = str | os.PathLike[str]
Step = Callable[[str, float], None]  # what is being done, and the share of the work before it

WRITERS: dict[str, Callable[[pl.DataFrame, Path], None]] = {
    ".csv": lambda rows, path: rows.write_csv(path),
    ".tsv": lambda rows, path: rows.write_csv(path, separator="\t"),
    ".parquet": lambda rows, path: rows.write_parquet(path),
    ".pq": lambda rows, path: rows.write_parquet(path),
    ".jsonl": lambda rows, path: rows.write_ndjson(path),
    ".ndjson": lambda rows, path: rows.write_ndjson(path),
}
TEXT, JSON = (".csv", ".tsv"), (".jsonl", ".ndjson")


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What to read, which model to fit, and what to write where; whatever cannot work is refused here.

    `users` and `items` are sizes of a population with the ids 0 … n-1. `column` is the name of the new column.
    """

    log: FilePath
    out: FilePath
    model: str
    uniform: FilePath | None = None
    user_features: FilePath | None = None
    item_features: FilePath | None = None
    user: Column = None
    item: Column = None
    rating: Column = None
    users: int | None = None
    items: int | None = None
    column: str = "propensity"
    calibrate: str = "none"
    floor: float = 0.0
    quantile: float | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        _check_model(self)
        _check_numbers(self)
        if self.suffix not in WRITERS:
            known = listing(list(WRITERS), limit=len(WRITERS))
            raise FormatError(f"--out {str(self.out)!r}: extension {self.suffix!r} is not one of {known}; rename it.")
        refuse_overwriting([self.out], self.inputs)

    @property
    def suffix(self) -> str:
        """The extension of the file to write, which says its format."""
        return Path(self.out).suffix.lower()

    @property
    def inputs(self) -> list[FilePath]:
        """The files to read."""
        given = (self.log, self.uniform, self.user_features, self.item_features)
        return [path for path in given if path is not None]

    @property
    def columns(self) -> dict[str, Any]:
        """Where user, item and rating stand, as `ol.read` takes it."""
        return {"user": self.user, "item": self.item, "rating": self.rating}


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimated:
    """What was read, fitted and found; what the fit had to say is among the notes of `check`."""

    log: FilePath
    rows: int
    users: int
    items: int
    model: str
    check: Check

    def summary(self) -> str:
        """What was read and fitted, in one line."""
        share = self.rows / (self.users * self.items)
        grid = f"{self.users:,} users × {self.items:,} items ({share:.2%} of the cells)"
        return f"read {self.log}: {self.rows:,} rows of {grid}; fitted {self.model}"


def _silent(_what: str, _done: float) -> None: ...


def estimate(wanted: Wanted, step: Step = _silent) -> Estimated:
    """Fit the model to the log, check it, and write the log with a column of propensities.

    All columns and the order of the rows stay as they are. A delimited file without a header gets one, of the
    names by which `ol.read` calls its columns (user, item, rating, time, column_5 …). Nothing is written unless
    everything before has worked.
    """
    step("reading the log", 0.0)
    rows = _whole_log(wanted)
    log = read(wanted.log, **wanted.columns, users=wanted.users, items=wanted.items)
    if len(log) != len(rows):
        raise InputError(f"{wanted.log}: changed while it was read ({len(rows):,}, then {len(log):,} rows); try again.")
    side = _side(wanted, log)
    step(f"fitting {wanted.model}", 0.2)
    model = _model(wanted).fit(log, **side)
    p = model.predict(log).used
    step("checking the fit", 0.6)
    checked = propensity.check(model, log, rng=wanted.seed)
    step("writing the log", 0.9)
    _write(wanted, rows, in_input_order(log, p))
    grid = {"rows": len(log), "users": log.n_users, "items": log.n_items}
    return Estimated(log=wanted.log, **grid, model=wanted.model, check=checked)


def in_input_order(log: Feedback, values: Floats) -> Floats:
    """Values of the rows of a log in the order in which its input had them."""
    ordered = np.empty(len(log))
    ordered[log.row] = values
    return ordered


# -- the log and what goes with it ---------------------------------------------------------------------------


def _whole_log(wanted: Wanted) -> pl.DataFrame:
    """Every column of the log as it is, in types that the file to write can hold."""
    table = open_file(wanted.log, wanted.columns)
    twice = sorted({name for name in table.columns if table.columns.count(name) > 1})
    if twice:
        raise ColumnError(f"{table.name}: several columns are named {listing(twice)}; rename all but one of each.")
    if wanted.column in table.columns:
        raise ColumnError(
            f"{table.name}: has a column {wanted.column!r} already; name the new one with --column NAME, or drop it."
        )
    _refuse_other_roles(table.name, table.columns, wanted.columns)
    rows = table.fetch(table.columns)
    if wanted.suffix in TEXT:
        _refuse_types(table.name, rows, wanted.suffix, ".parquet or .jsonl", nested=False)
    elif wanted.suffix in JSON:
        _refuse_types(table.name, rows, wanted.suffix, ".parquet", nested=True)
    return rows.select(_typed(c) for c in rows.iter_columns()) if table.text and wanted.suffix not in TEXT else rows


def _refuse_other_roles(name: str, columns: Sequence[str], roles: Mapping[str, Column]) -> None:
    """Without a header columns are named by position: the file written would call items users."""
    for role, at in roles.items():
        called = columns[at] if isinstance(at, int) and 0 <= at < len(columns) else role
        if called != role and called in roles:
            raise ColumnError(
                f"{name}: column {at} is given as --{role}, but is called {called!r} here, and would be so in --out; "
                "give the file a header with names of its own."
            )


def _refuse_types(name: str, rows: pl.DataFrame, suffix: str, other: str, *, nested: bool) -> None:
    for column in rows.iter_columns():
        if isinstance(column.dtype, pl.Binary | pl.Object) or (column.dtype.is_nested() and not nested):
            held = f"cannot hold column {column.name!r}, {column.dtype}"
            raise FormatError(f"{name}: a {suffix} file {held}; write {other}, or drop the column.")


def _typed(fields: pl.Series) -> pl.Series:
    """The numbers that these fields write, if writing the numbers gives the same fields; so "007" stays text."""
    for dtype in (pl.Int64, pl.Float64):
        numbers = fields.cast(dtype, strict=False)
        if numbers.cast(pl.String).equals(fields, null_equal=True):
            return numbers
    return fields


def _side(wanted: Wanted, log: Feedback) -> dict[str, Any]:
    """What the fit takes beside the log."""
    side: dict[str, Any] = {}
    if wanted.uniform is not None:
        side["uniform"] = read(wanted.uniform, **wanted.columns, uniform=True)
    if wanted.user_features is not None:
        side["user_features"] = _features(wanted.user_features, log.users, wanted.user)
    if wanted.item_features is not None:
        side["item_features"] = _features(wanted.item_features, log.items, wanted.item)
    return side


def _features(path: FilePath, ids: Vocabulary, named: Column) -> Covariates:
    """Ids stand in the column that is named as in the log, if there is one, else in the obvious one."""
    shared = isinstance(named, str) and named in open_file(path, {"id": named}).columns
    return covariates(path, ids, id=named if shared else None)


def _model(wanted: Wanted) -> Any:
    """The model, unfitted; within `Calibrated` where its p are to be mapped or raised."""
    model = getattr(propensity, MODELS[wanted.model])()
    if "rng" in model.get_params():
        model.set_params(rng=wanted.seed)
    if wanted.calibrate == "none" and wanted.floor == 0 and wanted.quantile is None:
        return model
    method = None if wanted.calibrate == "none" else wanted.calibrate
    floor, quantile = wanted.floor, wanted.quantile
    return propensity.Calibrated(model, method=method, floor=floor, quantile=quantile, rng=wanted.seed)


def _write(wanted: Wanted, rows: pl.DataFrame, p: Floats) -> None:
    with replacing(wanted.out) as temporary:
        WRITERS[wanted.suffix](rows.with_columns(pl.Series(wanted.column, p)), temporary)


# -- refusals ------------------------------------------------------------------------------------------------


def refuse_overwriting(outputs: Iterable[FilePath], inputs: Iterable[FilePath]) -> None:
    """Refuse a file to write that is one of those to read, or that is to be written twice."""
    taken = {_real(path): f"is also read ({path})" for path in inputs}
    for path in outputs:
        if _real(path) in taken:
            raise InputError(f"{path}: would be overwritten, and {taken[_real(path)]}; write to another file.")
        taken[_real(path)] = f"is also written ({path})"


def _real(path: FilePath) -> object:
    """What two names of one file have in common."""
    file = Path(path).expanduser()
    if not file.exists():
        return str(file.resolve())
    found = file.stat()
    return found.st_dev, found.st_ino


def _check_model(wanted: Wanted) -> None:
    name, features = wanted.model, (wanted.user_features, wanted.item_features)
    if name not in MODELS:
        raise InputError(f"--model {name!r} is no model.{did_you_mean(name, MODELS)}")
    if name == "naive-bayes" and wanted.uniform is None:
        raise InputError("--model naive-bayes needs ratings of cells drawn at random; pass --uniform FILE.")
    if name != "naive-bayes" and wanted.uniform is not None:
        raise InputError(f"--uniform {wanted.uniform}: only naive-bayes uses it, the model is {name}; leave it out.")
    if any(features) and name not in WITH_FEATURES:
        raise InputError(
            f"--user-features and --item-features are for {' and '.join(WITH_FEATURES)}, the model is {name}; "
            "leave them out."
        )
    if name == "logistic" and any(features) and not all(features):
        raise InputError(
            "--model logistic uses products of user and item features, so one side alone says nothing; "
            "pass both --user-features and --item-features, or neither."
        )


def _check_numbers(wanted: Wanted) -> None:
    if wanted.calibrate not in CALIBRATIONS:
        raise InputError(
            f"--calibrate {wanted.calibrate!r} is no way to calibrate.{did_you_mean(wanted.calibrate, CALIBRATIONS)}"
        )
    if wanted.model == "naive-bayes" and wanted.calibrate != "none":
        raise UndefinedError(
            f"--calibrate {wanted.calibrate}: naive-bayes knows the p of observed cells only, since it depends on the "
            "rating, so there are no others to calibrate on; leave it out."
        )
    if not 0 <= wanted.floor <= 1:
        raise InputError(f"--floor must lie in [0, 1], got {wanted.floor}; 0 raises nothing.")
    if wanted.quantile is not None and not 0 < wanted.quantile < 1:
        raise InputError(f"--quantile must lie strictly between 0 and 1, got {wanted.quantile}; leave it out.")
    if wanted.seed < 0:
        raise InputError(f"--seed must be at least 0, got {wanted.seed}; choose another.")
    if not wanted.column:
        raise InputError("--column must not be empty; leave it out for 'propensity'.")
