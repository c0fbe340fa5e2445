"""Your own functions inside a metric, of the rank alone or of a rating and its prediction; checked."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from openloop.core.feedback import Floats, frozen
from openloop.errors import InputError

PROBED = 64  # ranks that a function is tried on before any log is there


@dataclass(frozen=True, slots=True, kw_only=True)
class RankGain:
    """f(rank), 0 beyond rank k where the metric's name has one. Rank is 1-based, and comes as an array of floats."""

    name: str
    function: Callable[[Any], Any]
    k: int | None = None

    def __post_init__(self) -> None:
        _check_parameters(self.name, self.function, ("rank",), _NORMALISER)
        self.table(PROBED if self.k is None else max(PROBED, self.k + 1))

    def table(self, ranks: int) -> Floats:
        """f(1) … f(ranks), finite and the same at every call."""
        rank = np.arange(1.0, ranks + 1)
        gain = _called(self.name, self.function, (rank,), "write it for arrays, as np.where(rank <= 3, 1.0, 0.0).")
        if not np.array_equal(gain, _called(self.name, self.function, (rank,), "repair it.")):
            raise InputError(
                f"metric {self.name!r}: the function gives other values when called again; use no random numbers in it."
            )
        _check_each(self.name, self.function, (rank,), gain)
        if self.k is not None and np.any(gain[self.k :]):
            place = self.k + int(np.flatnonzero(gain[self.k :])[0])
            raise InputError(
                f"metric {self.name!r}: beyond rank {self.k} its gain must be 0, and at rank {place + 1:,} it is "
                f"{gain[place]:g}; write np.where(rank <= {self.k}, gain, 0.0), or leave @{self.k} out of the name."
            )
        return gain  # (ranks,)


_NORMALISER = (
    "the function gets nothing else, such as the number of a user's relevant items or a cutoff. "
    'per="user" divides by that number, per="cell" by nothing, a name that ends in @10 declares a cutoff, and a '
    "parameter belongs to a function around it that returns the metric"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PairLoss:
    """f(rating, prediction) of each row; of arrays, or of a frame's columns where plain arithmetic is enough."""

    name: str
    function: Callable[[Any, Any], Any]

    def __post_init__(self) -> None:
        _check_parameters(self.name, self.function, ("rating", "prediction"), "it gets nothing else")
        rating, prediction = probe_pairs()
        loss = _called(
            self.name, self.function, (rating, prediction), "write it for arrays, as np.where(error > 1, 1.0, 0.0)."
        )
        _check_each(self.name, self.function, (rating, prediction), loss)

    def __call__(self, rating: Any, prediction: Any) -> Any:
        """The loss of each row, as an array or as an expression."""
        if isinstance(rating, np.ndarray):
            return _called(self.name, self.function, (rating, np.asarray(prediction, np.float64)), "repair it.")
        try:
            loss = self.function(rating, prediction)
        except (TypeError, AttributeError, ValueError) as error:
            raise self.needs_arrays(str(error)) from error
        if type(loss) is not type(rating):
            raise self.needs_arrays(f"it gave {type(loss).__name__}")
        return loss

    def needs_arrays(self, why: str) -> InputError:
        """The error of a function that cannot be computed inside an engine."""
        return InputError(
            f"metric {self.name!r}: its function works on arrays, but not on the columns of a frame ({why}); use only "
            "+ − * / **, read the log with ol.read, or write a gain for ol.Metric(gain=), whose x.abs and x.where work "
            "on both."
        )


def probe_pairs() -> tuple[Floats, Floats]:
    """Ratings and predictions to try a function on: below, at and above each other."""
    rating, prediction = np.meshgrid(np.arange(1.0, 6.0), np.linspace(0.75, 5.25, 7))
    return frozen(rating.ravel()), frozen(prediction.ravel())


def _check_parameters(name: str, function: Any, names: Sequence[str], why: str) -> None:
    """Refuse a function that takes anything but what it is given."""
    words = ", ".join(names)
    if not callable(function):
        raise InputError(f"metric {name!r}: decorates a function of ({words}), got {type(function).__name__}.")
    parameters = list(inspect.signature(function).parameters.values())
    plain = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    if len(parameters) != len(names) or any(p.kind not in plain for p in parameters):
        raise InputError(
            f"metric {name!r}: it takes ({words}) and nothing else, got ({', '.join(map(str, parameters))}): {why}."
        )


def _check_each(name: str, function: Callable[..., Any], arguments: tuple[Floats, ...], values: Floats) -> None:
    """Refuse a function that looks at the whole array, as by its length or maximum, and not at each number alone."""
    half = slice(len(values) // 2, None, -1)  # the first of them, the other way round
    again = _called(name, function, tuple(a[half] for a in arguments), "repair it.")
    if not np.allclose(again, values[half], rtol=1e-9, atol=1e-12):
        raise InputError(
            f"metric {name!r}: the function gives another value for a number when the array around it changes; use "
            "each number alone, without the length, maximum or mean of the array."
        )


def _called(name: str, function: Callable[..., Any], arguments: tuple[Floats, ...], remedy: str) -> Floats:
    """The function's values at the arguments, one finite number each."""
    try:
        with np.errstate(all="ignore"):  # what is not finite is refused below, with its place
            values = np.asarray(function(*(a.copy() for a in arguments)))
    except (TypeError, ValueError) as error:
        raise InputError(f"metric {name!r}: the function failed on arrays ({error}); {remedy}") from error
    if values.shape != arguments[0].shape or values.dtype.kind not in "fiub":
        raise InputError(
            f"metric {name!r}: the function must give one real number for each of {len(arguments[0]):,}, got shape "
            f"{values.shape} of {values.dtype}; return an array as long as what it is given."
        )
    gain = values.astype(np.float64)
    bad = np.flatnonzero(~np.isfinite(gain))
    if len(bad):
        point = ", ".join(f"{a[bad[0]]:g}" for a in arguments)
        raise InputError(
            f"metric {name!r}: its value at {point} is {gain[bad[0]]}, not a finite number; repair it there."
        )
    return gain
