"""`Basis`: what the weights of an audit rest on, as far as a verdict needs it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from openloop import propensity
from openloop.core.feedback import Feedback, check_fitted
from openloop.core.positives import only_positives
from openloop.core.propensities import Propensities, not_exposure, predicted_by
from openloop.errors import InputError
from openloop.moments.question import Question
from openloop.propensity.naming import MODELS, Entry

KNOWN = {"by_items": "fits_items", "modelled": "modelled"}  # options of an audit, and what models call them


@dataclass(frozen=True, slots=True, kw_only=True)
class Basis:
    """Where the weights come from.

    `blind`: p was fitted without seeing ratings. `sample`: the ratings drawn at random that p was fitted with.
    `balanced`: weights were raked. `by_cells`: p was fitted to single cells. `by_rating`: p depends on the rating
    alone. `modelled`: how p depends on the rating is a joint model's guess. `unseen`: the population's share of ratings
    of which the log has no row. `positives`: every row is one, so Σw is the liking rate. `clicks`: the log does not say
    what was shown.
    """

    blind: bool = False
    sample: int | None = None
    balanced: bool = False
    by_cells: bool = False
    by_rating: bool = False
    modelled: bool = False
    unseen: float = 0.0
    positives: bool = False
    clicks: bool = False

    @classmethod
    def of(
        cls, propensities: Any, log: Any, *, blind: bool = False, sampled: int | None = None, modelled: bool = False
    ) -> Basis:
        """The basis of an audit.

        `blind`: a column of the log was fitted without seeing ratings; `sampled`: with so many drawn at random;
        `modelled`: by a joint model.
        """
        column = cls(blind=blind, sample=sampled, modelled=modelled)
        if not isinstance(log, Feedback):
            return column
        seen = _of_one_row(propensities, log)
        if seen is None:
            return replace(column, positives=log.positives, clicks=unexposed(log, propensities))
        return cls(
            blind=blind or seen.blind, sample=sampled if seen.sample is None else seen.sample.size,
            balanced=seen.base is not None, by_cells=seen.by_cells, by_rating=seen.by_rating,
            modelled=modelled or seen.modelled,
            unseen=0.0 if seen.sample is None else seen.sample.unseen(log.rating), positives=log.positives,
        )  # fmt: skip

    @property
    def bare(self) -> bool:
        """Whether p are bare numbers of unknown origin."""
        return not (
            self.blind or self.balanced or self.by_cells or self.by_rating or self.modelled or self.clicks
        ) and self.sample is None  # fmt: skip

    def with_span(self, low: float, high: float, asked: Question) -> Basis:
        """That of a frame, whose ratings go from `low` to `high`, unless more is known of the log that it is from."""
        positives = only_positives(low, high)
        if positives and self.blind and asked.by_items:
            raise not_exposure("audit")
        return replace(self, positives=positives)


def granted(assumes: Any) -> dict[str, Any]:
    """What is said about p by a sentence, or by the model that made its column or that model's name, as options."""
    if isinstance(assumes, str) and assumes in MODELS:
        return _granted_by_name(MODELS[assumes])
    if assumes is None or isinstance(assumes, str):
        return {"assumes": assumes}
    try:
        found = {"assumes": assumes.assumes, "blind": not assumes.sees_rating}
    except AttributeError as error:
        kind = type(assumes).__name__
        raise InputError(
            f"propensity_model= must be the name of a model of propensities or a fitted one, got {kind}."
        ) from error
    check_fitted(assumes)
    found |= {name: bool(getattr(assumes, of, False)) for name, of in KNOWN.items()}
    drawn = [getattr(model, "sample_", None) for model in (assumes, getattr(assumes, "inner_", None))]
    return found | {"sampled": next((int(sample.size) for sample in drawn if sample is not None), None)}


def _granted_by_name(entry: Entry) -> dict[str, Any]:
    kind = getattr(propensity, entry.model)
    if entry.sample:  # how many ratings were drawn is not known here
        return {"assumes": kind.assumes if isinstance(kind.assumes, str) else "", "sampled": 0}
    return {"assumes": kind.assumes, "blind": not kind.sees_rating, "by_items": kind.fits_items}


def unexposed(log: Feedback, propensities: Any) -> bool:
    """Whether a log has positives only, without exposure."""
    return log.positives and log.propensity is None and propensities is None


def _of_one_row(given: Any, log: Feedback) -> Propensities | None:
    """The propensities of one row say what all rest on; bare numbers say nothing."""
    if isinstance(given, Propensities):
        return given
    return predicted_by("audit", given, log.take(np.arange(1))) if hasattr(given, "predict") else None
