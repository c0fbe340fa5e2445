"""Metrics on predicted ratings: cell metrics of Schnabel et al. 2016, Eqs. 2, 3, 4 and 7."""

from __future__ import annotations

from openloop.core.feedback import Floats
from openloop.core.metric import Column, Columns, Metric
from openloop.errors import PredictionError

MAX_LEVELS = 64  # above that ratings are not levels, and accuracy says nothing


def _absolute(x: Columns) -> Column:
    # Eq. 2: δ = |Y − Ŷ|
    return x.abs(x.rating - x.prediction)


def _squared(x: Columns) -> Column:
    # Eq. 3: δ = (Y − Ŷ)²
    return (x.rating - x.prediction) * (x.rating - x.prediction)


def _exact(x: Columns) -> Column:
    # Eq. 4: δ = 1{Ŷ = Y}, the prediction rounded to the nearest rating level
    return x.where(x.level(x.prediction) == x.level(x.rating), 1.0, 0.0)


def _zero_or_one(prediction: Floats) -> None:
    not_binary = prediction[(prediction != 0) & (prediction != 1)]
    if len(not_binary):
        raise PredictionError(
            f"cg@k: predictions must be a 0/1 recommendation matrix, got {not_binary[0]!r}; for scores use prec@k, "
            "which is the same measure on ranks."
        )


def cumulative_gain(k: int) -> Metric:
    """cg@k: the average rating of what a 0/1 matrix with a budget of k recommends (Eq. 7)."""
    # Eq. 7: δ = (I/k) Ŷ · Y
    return Metric(
        name=f"cg@{k}", on="prediction", kind="cell", gain=lambda x: x.cells / float(k) * x.prediction * x.rating,
        better="higher", k=k, check=_zero_or_one,
    )  # fmt: skip


mae = Metric(name="mae", on="prediction", kind="cell", gain=_absolute, better="lower")
mse = Metric(name="mse", on="prediction", kind="cell", gain=_squared, better="lower")
rmse = Metric(name="rmse", on="prediction", kind="cell", gain=_squared, better="lower", additive=False, root=True)
accuracy = Metric(name="accuracy", on="prediction", kind="cell", gain=_exact, better="higher")


def midpoints(levels: Floats) -> Floats | None:
    """What separates the rating levels, for accuracy; None where ratings are too many to be levels."""
    return (levels[1:] + levels[:-1]) / 2 if len(levels) <= MAX_LEVELS else None
