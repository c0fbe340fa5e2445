"""A log's propensities by a named model, checked, and written back beside its rows.

This module knows nothing about terminals; its messages speak of the options of `openloop propensity`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import polars as pl

from openloop import propensity
from openloop.commands.table_files import (
    check_extension,
    holdable,
    in_input_order,
    log_line,
    open_to_extend,
    refuse_overwriting,
    suffix,
    write,
)
from openloop.core.feedback import Feedback
from openloop.data.columns import Column
from openloop.data.features import features_beside
from openloop.data.reading import read
from openloop.errors import InputError, UndefinedError, did_you_mean
from openloop.support.atomic import FilePath
from openloop.support.progress import Step, silent

if TYPE_CHECKING:
    from openloop.propensity.checks.checking import Check

MODELS = {
    "uniform": "Uniform",
    "popularity": "Popularity",
    "naive-bayes": "NaiveBayes",
    "logistic": "Logistic",
    "low-rank": "LowRank",
    "boosted": "Boosted",
}
WITH_FEATURES = ("logistic", "boosted")
CALIBRATIONS = ("none", "isotonic", "platt")


@dataclass(frozen=True, slots=True, kw_only=True)
class PropensityRequest:
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
    gamma: float | None = None
    calibrate: str = "none"
    floor: float = 0.0
    quantile: float | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        _check_model(self)
        _check_numbers(self)
        check_extension(self.out)
        refuse_overwriting([self.out], self.inputs)

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
    """The log that was read and the model that was fitted to it; its propensities are written."""

    wanted: PropensityRequest
    log: Feedback
    fitted: Any

    @property
    def notes(self) -> tuple[str, ...]:
        """What the fit had to say; `check` has it among its own notes."""
        return tuple(getattr(self.fitted, "notes_", ()))

    def summary(self) -> str:
        """What was read and fitted, in one line."""
        return f"{log_line(self.wanted.log, self.log)}; fitted {self.wanted.model}"

    def check(self, step: Step = silent) -> Check:
        """How far the propensities can be trusted; refits the model a few times."""
        step("checking the fit", 0.0)
        return propensity.check(self.fitted, self.log, rng=self.wanted.seed)


def estimate(wanted: PropensityRequest, step: Step = silent) -> Estimated:
    """Fit the model to the log, and write the log with a column of propensities.

    All columns and the order of the rows stay as they are. A delimited file without a header gets one, of the
    names by which `ol.read` calls its columns (user, item, rating, time, column_5 …). Nothing is written unless
    everything before has worked; checks come afterwards, so that a long one cannot lose the fit.
    """
    step("reading the log", 0.0)
    rows = _whole_log(wanted)
    log = read(wanted.log, **wanted.columns, users=wanted.users, items=wanted.items)
    if len(log) != len(rows):
        raise InputError(f"{wanted.log}: changed while it was read ({len(rows):,}, then {len(log):,} rows); try again.")
    side = _side(wanted, log)
    step(f"fitting {wanted.model}", 0.3)
    model = _model(wanted).fit(log, **side)
    p = in_input_order(log, model.predict(log).used)
    step("writing the log", 0.9)
    write(wanted.out, rows.with_columns(pl.Series(wanted.column, p)))
    return Estimated(wanted=wanted, log=log, fitted=model)


# -- the log and what goes with it ---------------------------------------------------------------------------


def _whole_log(wanted: PropensityRequest) -> pl.DataFrame:
    """Every column of the log as it is, in types that the file to write can hold."""
    table = open_to_extend(wanted.log, wanted.columns, wanted.column)
    return holdable(table, table.fetch(table.columns), suffix(wanted.out))


def _side(wanted: PropensityRequest, log: Feedback) -> dict[str, Any]:
    """What the fit takes beside the log."""
    side: dict[str, Any] = {}
    if wanted.uniform is not None:
        side["uniform"] = read(wanted.uniform, **wanted.columns, uniform=True)
    if wanted.user_features is not None:
        side["user_features"] = features_beside("user", wanted.user_features, log.users, wanted.user)
    if wanted.item_features is not None:
        side["item_features"] = features_beside("item", wanted.item_features, log.items, wanted.item)
    return side


def _model(wanted: PropensityRequest) -> Any:
    """The model, unfitted; within `Calibrated` where its p are to be mapped or raised."""
    model = getattr(propensity, MODELS[wanted.model])()
    if wanted.gamma is not None:
        model.set_params(gamma=wanted.gamma)
    if "rng" in model.get_params():
        model.set_params(rng=wanted.seed)
    if wanted.calibrate == "none" and wanted.floor == 0 and wanted.quantile is None:
        return model
    method = None if wanted.calibrate == "none" else wanted.calibrate
    floor, quantile = wanted.floor, wanted.quantile
    return propensity.Calibrated(model, method=method, floor=floor, quantile=quantile, rng=wanted.seed)


# -- refusals ------------------------------------------------------------------------------------------------


def _check_model(wanted: PropensityRequest) -> None:
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


def _check_numbers(wanted: PropensityRequest) -> None:
    if wanted.calibrate not in CALIBRATIONS:
        raise InputError(
            f"--calibrate {wanted.calibrate!r} is no way to calibrate.{did_you_mean(wanted.calibrate, CALIBRATIONS)}"
        )
    if wanted.model == "naive-bayes" and wanted.calibrate != "none":
        raise UndefinedError(
            f"--calibrate {wanted.calibrate}: naive-bayes knows the p of observed cells only, since it depends on the "
            "rating, so there are no others to calibrate on; leave it out."
        )
    if wanted.gamma is not None and wanted.model != "popularity":
        raise InputError(
            f"--gamma {wanted.gamma:g}: only popularity has it, the model is {wanted.model}; leave it out."
        )
    if wanted.gamma is not None and not 0 < wanted.gamma < math.inf:
        raise InputError(f"--gamma must be positive, got {wanted.gamma:g}; leave it out to estimate it.")
    if not 0 <= wanted.floor <= 1:
        raise InputError(f"--floor must lie in [0, 1], got {wanted.floor}; 0 raises nothing.")
    if wanted.quantile is not None and not 0 < wanted.quantile < 1:
        raise InputError(f"--quantile must lie strictly between 0 and 1, got {wanted.quantile}; leave it out.")
    if wanted.seed < 0:
        raise InputError(f"--seed must be at least 0, got {wanted.seed}; choose another.")
    if not wanted.column:
        raise InputError("--column must not be empty; leave it out for 'propensity'.")
