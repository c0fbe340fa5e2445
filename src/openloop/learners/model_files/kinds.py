"""Which learners a model file can hold, by name: a class is looked up here, never by a path that a file names."""

from __future__ import annotations

from typing import Any

from openloop import learners
from openloop.errors import InputError, did_you_mean, quoted

SAVED = (
    "MF", "WMF", "ADG", "AUC", "PureSVD", "Random", "GlobalAverage", "Popularity", "Bias", "Factors",
    "Stack", "Recalibrated", "Exposure", "Features", "DR", "RelMF", "OrdinalMF", "JointMNAR", "MixtureMNAR",
)  # fmt: skip


def kind(name: Any) -> Any:
    """The class of a learner."""
    if name not in SAVED:
        raise InputError(f"class {quoted(name)} is not a learner.{did_you_mean(str(name), SAVED)}")
    return getattr(learners, name)


def is_saved(model: Any) -> bool:
    """Whether a file can hold such a model: one of these, and no subclass of it."""
    name = type(model).__name__
    return name in SAVED and type(model) is getattr(learners, name)
