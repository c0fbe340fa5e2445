"""The protocols of models: what evaluation may ask of them."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np

from openloop.core.feedback import Array, Feedback, Floats, Vocabulary
from openloop.core.propensities import Propensities
from openloop.errors import OpenloopError, PredictionError

if TYPE_CHECKING:
    import numpy.typing as npt


@runtime_checkable
class Recommender(Protocol):
    """A model of ratings or preferences; debiasing enters its fit as `sample_weight`.

    Your own class needs `predict` for metrics on ratings, `scores` for those on ranks, and `fit` where it is
    fitted here. Users and items are codes of the scored log; with `users_` and `items_`, the vocabularies that it was
    fitted on, it is found by id. What fits fresh copies needs scikit-learn's `BaseEstimator`.
    """

    def fit(self, feedback: Feedback, sample_weight: Floats | None = None) -> Any:
        """Learn from feedback; returns self."""
        ...

    def predict(self, user: npt.ArrayLike, item: npt.ArrayLike) -> Array:
        """The predicted rating of each (user, item) pair of codes."""
        ...

    def scores(self, users: npt.ArrayLike) -> Array:
        """The scores of all items for these users: a users × items block."""
        ...


@contextmanager
def asking(what: str, about: str) -> Generator[None]:
    """What others' code raises while it is asked is an error that begins with `what`."""
    try:
        yield
    except (OpenloopError, MemoryError):
        raise
    except Exception as error:
        raise PredictionError(
            f"{what}: asked about {about} it raised {type(error).__name__}: {error}; repair it, or check that it takes "
            "what it is given."
        ) from error


def check_numbers(what: str, scores: Any) -> None:
    """Refuse an array of text, objects or complex numbers, which have no order or no size."""
    if isinstance(scores, np.ndarray) and scores.dtype.kind not in "biuf":
        raise PredictionError(f"{what}: scores must be numbers, got {scores.dtype}; cast them to floats.")


def predicted_block(model: Any, users: Any) -> Array:
    """What a recommender predicts of all items for these users, (B, I): its scores, unless it says otherwise."""
    return on_host((model.predictions if hasattr(model, "predictions") else model.scores)(users))


def on_host(values: Any) -> Array:
    """A model's answer as an array; of a tensor the values, on any device, with or without a gradient.

    NumPy has no bfloat16, whose numbers are all single ones.
    """
    if hasattr(values, "detach"):
        values = values.detach().cpu()
        values = values.float() if str(getattr(values, "dtype", "")) == "torch.bfloat16" else values
    return np.asarray(values)


@runtime_checkable
class FactorModel(Protocol):
    """A recommender whose scores are one matrix product, so that ranks need no block of its own making."""

    def factor_arrays(self) -> tuple[Array, Array, Array | None]:
        """User factors (U, K), item factors (I, K) and item bias (I,) or None."""
        ...


@runtime_checkable
class Placeable(Protocol):
    """A recommender that can be had in the codes of other vocabularies, with an answer for ids that it lacks."""

    unknown: str  # what becomes of these: "error" or "zero"
    notes_: tuple[str, ...]  # what the reader of its estimates should know

    def placed(self, users: Vocabulary, items: Vocabulary) -> Any:
        """The same model in these codes."""
        ...


@runtime_checkable
class PropensityModel(Protocol):
    """A model of who saw what.

    Your own class needs `fit` and `predict`; `matrix` may be missing. `sees_rating = True` says that p may depend
    on the rating; else it is taken to be blind to it (`core.propensities.predicted_by`). A fresh copy, for checks on
    held-out cells, needs scikit-learn's `BaseEstimator` or `refit(feedback)`.
    """

    def fit(self, feedback: Feedback) -> Any:
        """Learn from feedback; returns self."""
        ...

    def predict(self, feedback: Feedback) -> Propensities:
        """The propensity of each observed cell, carrying the feedback's fingerprint."""
        ...

    def matrix(self) -> Floats:
        """The propensity of every cell (users × items); an UndefinedError where p depends on the rating."""
        ...
