"""A propensity model fitted to a log as the options of a command say: its sample and its covariates read."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from openloop.commands.log_files import LogRequest
from openloop.core.feedback import Array, Feedback
from openloop.data import values
from openloop.data.columns import Column, InputTable, choose, names_a, shared
from openloop.data.features import features_beside
from openloop.data.formats import open_file
from openloop.data.reading import read
from openloop.errors import ColumnError, EmptyError, InputError, did_you_mean, listing, quoted
from openloop.propensity.naming import CALIBRATIONS, ModelSpec
from openloop.support.atomic import FilePath
from openloop.support.fields import fields_of
from openloop.support.wording import percent


@dataclass(frozen=True, slots=True, kw_only=True)
class FitRequest(LogRequest):
    """A log, and what a propensity model fitted to it is given beside its name; the requests of commands extend it."""

    user_features: FilePath | None = None
    item_features: FilePath | None = None
    gamma: float | None = None
    calibrate: str = "none"
    floor: float = 0.0
    quantile: float | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        LogRequest.__post_init__(self)
        _check_numbers(self)

    def spec(self, named: str) -> ModelSpec:
        """The model of that name with all that it is given."""
        return ModelSpec.parse(named, **fields_of(ModelSpec, self))

    @property
    def corrections(self) -> str:
        """What is done to p, in words that go on after its source."""
        calibrated = "" if self.calibrate == "none" else f", calibrated ({self.calibrate})"
        quantile = "" if self.quantile is None else f", the smallest {percent(self.quantile)} raised"
        return calibrated + quantile + (f", raised to at least {self.floor:g}" if self.floor else "")


def fit(spec: ModelSpec, log: Feedback, columns: Mapping[str, Column], seed: int) -> Any:
    """The model, fitted; `columns` are the log's, which the files beside it may share."""
    return spec.model(seed).fit(log, **_side(spec, log, columns))


def _side(spec: ModelSpec, log: Feedback, columns: Mapping[str, Column]) -> dict[str, Any]:
    """What the fit takes beside the log."""
    side: dict[str, Any] = {}
    if spec.sample is not None:
        side["uniform"] = _sample(f"{spec}={spec.sample}", spec.sample, columns)
    for role, path, ids in (("user", spec.user_features, log.users), ("item", spec.item_features, log.items)):
        if path is not None:
            side[f"{role}_features"] = features_beside(role, path, ids, columns[role])
    return side


def _sample(what: str, path: FilePath, columns: Mapping[str, Column]) -> Feedback | Array:
    """The uniform sample: a log, or ratings alone."""
    table = open_file(path, columns, undivided=True)
    if len(table.columns) == 1 and not any(names_a(side, table.columns[0]) for side in ("user", "item")):
        return _ratings(what, table)
    named: dict[str, Any] = dict(shared(table, columns))
    try:
        choose(table, named)
    except ColumnError as error:
        raise ColumnError(
            f"{what}: must have columns of user, item and rating, or one column, of ratings alone, got "
            f"{listing(list(table.columns))}; name them as in the log, or keep the ratings."
        ) from error
    return read(path, **named, uniform=True)


def _ratings(what: str, table: InputTable) -> Array:
    column = table.fetch(table.columns).to_series()
    if not len(column):
        raise EmptyError(f"{what}: has no ratings; give those of cells drawn at random.")
    return values.ratings(column, f"{what}: column {quoted(column.name)}")


def _check_numbers(wanted: FitRequest) -> None:
    if wanted.calibrate not in CALIBRATIONS:
        raise InputError(f"--calibrate {wanted.calibrate!r} is unknown.{did_you_mean(wanted.calibrate, CALIBRATIONS)}")
    if wanted.gamma is not None and not 0 < wanted.gamma < math.inf:
        raise InputError(f"--gamma must be positive, got {wanted.gamma:g}; leave it out to estimate it.")
    if not 0 <= wanted.floor <= 1:
        raise InputError(f"--floor must lie in [0, 1], got {wanted.floor:g}; 0 means no floor.")
    if wanted.quantile is not None and not 0 < wanted.quantile < 1:
        raise InputError(f"--quantile must lie strictly between 0 and 1, got {wanted.quantile:g}; leave it out.")
    if wanted.seed < 0:
        raise InputError(f"--seed must be at least 0, got {wanted.seed}; choose another.")
