"""A log's propensities by a named model, checked, and written back beside its rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import polars as pl

from openloop import propensity
from openloop.commands.fitting import FitRequest, fit
from openloop.commands.table_files import (
    check_extension,
    holdable,
    in_input_order,
    log_line,
    open_to_extend,
    pairs_of,
    refuse_overwriting,
    suffix,
    write,
)
from openloop.core.feedback import Feedback
from openloop.data.columns import choose_log
from openloop.data.reading import read
from openloop.errors import InputError
from openloop.propensity.naming import ModelSpec
from openloop.support.atomic import FilePath
from openloop.support.progress import Step, silent

if TYPE_CHECKING:
    from openloop.propensity.checks.checking import Check


@dataclass(frozen=True, slots=True, kw_only=True)
class PropensityRequest(FitRequest):
    """What to read, which model to fit, and what to write where; whatever cannot work is refused here.

    `model` is NAME[=SAMPLE]; `uniform` is another way to name the sample. `users` and `items` are sizes of a population
    with the ids 0 … n-1. `column` is the name of the new column, by default propensity. A balanced p may exceed 1, so
    its weight is written instead, by default as weight.
    """

    out: FilePath
    model: str
    uniform: FilePath | None = None
    users: int | None = None
    items: int | None = None
    column: str | None = None
    safe_csv: bool = False

    def __post_init__(self) -> None:
        FitRequest.__post_init__(self)
        if self.column == "":
            raise InputError("--column must not be empty; leave it out for 'propensity' or 'weight'.")
        check_extension(self.out, safe_csv=self.safe_csv)
        refuse_overwriting([self.out], self.inputs)

    @property
    def chosen(self) -> ModelSpec:
        """The model."""
        if self.uniform is not None and "=" in self.model:
            raise InputError(f"--uniform {self.uniform}: --model {self.model} names a sample already; leave one out.")
        return self.spec(self.model if self.uniform is None else f"{self.model}={self.uniform}")

    @property
    def balanced(self) -> bool:
        """Whether weights are balanced, so that they are what is written."""
        return self.chosen.name == "balanced"

    @property
    def target(self) -> str:
        """The name of the new column."""
        return self.column or ("weight" if self.balanced else "propensity")

    @property
    def inputs(self) -> list[FilePath]:
        """The files to read."""
        given = (self.log, self.chosen.sample, self.user_features, self.item_features)
        return [path for path in given if path is not None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimated:
    """The log that was read and the model that was fitted to it; its propensities are written."""

    wanted: PropensityRequest
    log: Feedback
    fitted: Any

    @property
    def notes(self) -> tuple[str, ...]:
        """How the log was read, and what the fit had to say; `check` has that among its own notes."""
        return (*self.log.notes, *getattr(self.fitted, "notes_", ()))

    def summary(self) -> str:
        """What was read and fitted, in one line, and what was written where that is not p."""
        fitted = f"{log_line(self.wanted.log, self.log)}; fitted {self.wanted.chosen}"
        if not self.wanted.balanced:
            known = f"an audit treats column {self.wanted.target!r} as known"
            return f"{fitted}; {known}, unless you pass --assumes {self.wanted.chosen.name}"
        return (
            f"{fitted}; column {self.wanted.target!r} has weights for training; for an audit, which balances each part "
            "that it scores, pass --propensity balanced=SAMPLE"
        )

    def check(self, step: Step = silent) -> Check:
        """How far the propensities can be trusted; refits the model a few times."""
        step("checking the fit", 0.0)
        return propensity.check(self.fitted, self.log, rng=self.wanted.seed)


def estimate(wanted: PropensityRequest, step: Step = silent) -> Estimated:
    """Fit the model to the log, and write the log with a column of propensities, or of balanced weights.

    All columns and the order of the rows stay as they are; rows of one pair have one p, and rows that were left out
    none. A delimited file without a header gets one, of the names by which `ol.read` calls its columns (user, item,
    rating, time, column_5 …). Nothing is written unless everything before has worked; checks
    come afterwards, so that a long one cannot lose the fit.
    """
    step("reading the log", 0.0)
    table = open_to_extend(wanted.log, wanted.columns, wanted.target, wanted.form)
    rows = holdable(table, table.fetch(table.columns), suffix(wanted.out))
    log = read(wanted.log, **wanted.reading, users=wanted.users, items=wanted.items)
    if log.input_rows != len(rows):
        raise InputError(
            f"{wanted.log}: changed while it was read ({len(rows):,}, then {log.input_rows:,} rows); try again."
        )
    step(f"fitting {wanted.chosen}", 0.3)
    chosen = choose_log(table, wanted.columns)
    model = fit(wanted.chosen, log, chosen, wanted.seed)
    p = model.predict(log)
    step("writing the log", 0.9)
    found = in_input_order(p.weights if wanted.balanced else p.used, pairs_of(table, chosen, log))
    rows = rows.with_columns(pl.Series(wanted.target, found, nan_to_null=True))
    write(wanted.out, rows, safe_csv=wanted.safe_csv)
    return Estimated(wanted=wanted, log=log, fitted=model)
