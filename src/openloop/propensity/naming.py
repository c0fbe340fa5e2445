"""Propensity models by name, `NAME[=SAMPLE]`, and what each of them needs, takes and refuses.

A model around another is written `NAME:INNER[=SAMPLE]`. A new model is one line of `MODELS`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from openloop import propensity
from openloop.errors import InputError, UndefinedError, did_you_mean
from openloop.support.atomic import FilePath
from openloop.support.wording import joined


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """What a model is called in `openloop.propensity`, and what it can be given."""

    model: str
    sample: bool = False  # needs ratings of cells drawn at random
    features: Literal["none", "both", "any"] = "none"  # covariates: of users and items together, or of either
    gamma: bool = False  # has an exponent
    calibrates: bool = True  # knows the p of every cell, so that held-out cells can correct it
    counts: bool = False  # can be fitted to the items' counts, so that the rows may stay on disk
    inside: str = ""  # the model within it where INNER names none; empty: it has none


MODELS = {
    "uniform": Entry(model="Uniform", counts=True),
    "popularity": Entry(model="Popularity", gamma=True, counts=True),
    "naive-bayes": Entry(model="NaiveBayes", sample=True, calibrates=False),
    "logistic": Entry(model="Logistic", features="both"),
    "low-rank": Entry(model="LowRank"),
    "boosted": Entry(model="Boosted", features="any"),
    "balanced": Entry(model="Balanced", sample=True, inside="logistic"),
}
FORMS = tuple(f"{name}=SAMPLE" if entry.sample else name for name, entry in MODELS.items())
CALIBRATIONS = ("none", "isotonic", "platt")
EXAMINED_BY = ("randomised", "assignment", "user-item", "item")  # how a log tells positions and items apart


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSpec:
    """A propensity model by name and what it is given; what it lacks or cannot use is refused here.

    `calibrate` is one of `CALIBRATIONS`; it, `floor` and `quantile` are those of `Calibrated`.
    """

    name: str
    inner: str | None = None
    sample: FilePath | None = None
    user_features: FilePath | None = None
    item_features: FilePath | None = None
    gamma: float | None = None
    calibrate: str = "none"
    floor: float = 0.0
    quantile: float | None = None

    def __post_init__(self) -> None:
        _check_names(self)
        _check_sample(self)
        _check_features(self)
        _check_settings(self)

    @classmethod
    def parse(cls, text: str, **given: Any) -> ModelSpec:
        """The model that `NAME[:INNER][=SAMPLE]` names, with what else it is given."""
        name, inner, sample = parts(text)
        return cls(name=name, inner=inner, sample=sample, **given)

    def __str__(self) -> str:
        return self.name if self.inner is None else f"{self.name}:{self.inner}"

    @property
    def entries(self) -> tuple[Entry, ...]:
        """The model's entry, and that of the model within it."""
        own = MODELS[self.name]
        return (own, MODELS[self.inner or own.inside]) if own.inside else (own,)

    @property
    def counts(self) -> bool:
        """Whether the items' counts are all that the fit needs."""
        return all(entry.counts for entry in self.entries) and self.calibrate == "none" and self.quantile is None

    def bare(self, rng: int) -> Any:
        """The model, unfitted, without calibration or floor."""
        return self._around(self._made(self.entries[-1], rng), rng)

    def model(self, rng: int) -> Any:
        """The model, unfitted; the p of the innermost are mapped or raised by `Calibrated` where that is asked for."""
        made, method = self._made(self.entries[-1], rng), None if self.calibrate == "none" else self.calibrate
        if method is not None or self.floor > 0 or self.quantile is not None:
            made = propensity.Calibrated(made, method=method, floor=self.floor, quantile=self.quantile, rng=rng)
        return self._around(made, rng)

    def _around(self, made: Any, rng: int) -> Any:
        """The model within those that are written before it."""
        for entry in reversed(self.entries[:-1]):
            made = self._made(entry, rng, made)
        return made

    def _made(self, entry: Entry, rng: int, *inside: Any) -> Any:
        made = getattr(propensity, entry.model)(*inside)
        if entry.gamma:
            made.set_params(gamma=self.gamma)
        if "rng" in made.get_params(deep=False):
            made.set_params(rng=rng)
        return made


def parts(text: str) -> tuple[str, str | None, str | None]:
    """NAME, INNER and SAMPLE; None for what is not written."""
    head, equals, sample = text.partition("=")
    name, colon, inner = head.partition(":")
    return name, inner if colon else None, sample if equals else None


def is_model(text: str) -> bool:
    """Whether the text begins with the name of a model."""
    return parts(text)[0] in MODELS


def sample_of(text: str) -> str | None:
    """The file in NAME=SAMPLE, if the model needs one."""
    name, _, sample = parts(text)
    return sample or None if name in MODELS and MODELS[name].sample else None


# -- refusals ------------------------------------------------------------------------------------------------


def _those(what: str) -> str:
    """The names of the models that take something."""
    return joined([name for name, entry in MODELS.items() if getattr(entry, what) not in (False, "none")])


def _check_names(spec: ModelSpec) -> None:
    for name in (spec.name, spec.inner):
        if name is not None and name not in MODELS:
            raise InputError(f"{name!r} is not a propensity model.{did_you_mean(name, MODELS)}")
    if spec.inner is not None and not MODELS[spec.name].inside:
        raise InputError(f"{spec}: {spec.name} has no model within it; write {spec.name}.")


def _check_sample(spec: ModelSpec) -> None:
    needed = any(entry.sample for entry in spec.entries)
    if needed and not spec.sample:
        raise InputError(f"{spec}: needs ratings of cells drawn at random; write {spec}=SAMPLE, their file.")
    if not needed and spec.sample is not None:
        raise InputError(f"{spec}={spec.sample}: only {_those('sample')} take a sample; write {spec}.")


def _check_features(spec: ModelSpec) -> None:
    given = spec.user_features, spec.item_features
    if not any(given):
        return
    taken = {entry.features for entry in spec.entries}
    if taken == {"none"}:
        raise InputError(
            f"user_features= and item_features= are for {_those('features')}, the model is {spec}; leave them out."
        )
    if "both" in taken and not all(given):
        raise InputError(
            f"{spec}: uses products of user and item features, so it needs both sides; pass both user_features= and "
            "item_features=, or neither."
        )


def _check_settings(spec: ModelSpec) -> None:
    if spec.gamma is not None and not any(entry.gamma for entry in spec.entries):
        raise InputError(f"gamma={spec.gamma:g}: only {_those('gamma')} has it, the model is {spec}; leave it out.")
    if spec.calibrate != "none" and not all(entry.calibrates for entry in spec.entries):
        raise UndefinedError(
            f"calibrate={spec.calibrate}: {spec} cannot be calibrated, since its p depends on the rating, which "
            "unobserved cells do not have; leave it out."
        )
