"""Every exception and warning of openloop.

    OpenloopError
    ├── InputError (ValueError)          something handed in cannot be used
    │   ├── ColumnError                  a column is missing or misnamed
    │   ├── FormatError                  a file is truncated, empty or of another format
    │   ├── EmptyError                   nothing is left to estimate from
    │   ├── DuplicateError               a (user, item) pair stands twice
    │   ├── RatingError                  a rating is missing, not finite or not a number
    │   ├── PropensityError              a propensity is outside (0, 1]
    │   ├── UnknownIdError               a user or item is not in the vocabulary
    │   ├── AlignmentError               an array belongs to another log or order
    │   ├── PredictionError              predictions are missing, doubled or not finite
    │   ├── BalanceError                 no weights have the means that were asked for
    │   ├── NameFormatError              a metric or estimator name does not parse
    │   └── LeakError                    scoring would use data that it must not
    ├── UndefinedError (ValueError)      a combination has no definition, with the reason
    ├── DivergenceError (ArithmeticError)  a fit left the numbers that a computer can hold
    ├── DeviceError (RuntimeError)       no GPU, or too little memory on it
    └── MissingPackageError (ImportError)  an optional package is not installed

    OpenloopWarning (UserWarning)
    ├── BalanceWarning                   more is balanced than the rows can carry
    └── ThresholdWarning                 nearly all rows or nearly none are relevant by a threshold that nobody chose

A message has name, rule, value and remedy: "Propensities: 12 of 54,000 values are 0, so their weights are
infinite; pass floor= or drop those rows."
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence

SHOWN = 200  # characters of a value in a message


class OpenloopError(Exception):
    """The root of all errors raised by openloop."""


class InputError(OpenloopError, ValueError):
    """Something handed in cannot be used."""


class ColumnError(InputError):
    """A column is missing or misnamed."""


class FormatError(InputError):
    """A file is truncated, empty or of another format."""


class EmptyError(InputError):
    """Nothing is left to estimate from."""


class DuplicateError(InputError):
    """A (user, item) pair stands twice."""


class RatingError(InputError):
    """A rating is missing, not finite or not a number."""


class PropensityError(InputError):
    """A propensity is outside (0, 1]."""


class UnknownIdError(InputError):
    """A user or item is not in the vocabulary."""


class AlignmentError(InputError):
    """An array belongs to another log or order."""


class PredictionError(InputError):
    """Predictions are missing, doubled or not finite."""


class BalanceError(InputError):
    """No weights have the means that were asked for."""


class NameFormatError(InputError):
    """A metric or estimator name does not parse."""


class LeakError(InputError):
    """Scoring would use data that it must not."""


class UndefinedError(OpenloopError, ValueError):
    """A combination of metric, estimator and data has no definition."""


class DivergenceError(OpenloopError, ArithmeticError):
    """A fit left the numbers that a computer can hold."""


class DeviceError(OpenloopError, RuntimeError):
    """There is no GPU, or too little memory on it."""


class MissingPackageError(OpenloopError, ImportError):
    """An optional package is not installed."""


class OpenloopWarning(UserWarning):
    """The root of all warnings of openloop."""


class BalanceWarning(OpenloopWarning):
    """More is balanced than the rows can carry."""


class ThresholdWarning(OpenloopWarning):
    """Nearly all rows or nearly none are relevant by a threshold that nobody chose."""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """' Did you mean X?' for the nearest known name, or the known names."""
    names = [str(k) for k in known]
    near = difflib.get_close_matches(name.lower(), [n.lower() for n in names], n=1, cutoff=0.6)
    if near:
        return f" Did you mean {quoted(next(n for n in names if n.lower() == near[0]))}?"
    return f" Known: {listing(names, limit=20)}."


def listing(values: Sequence[object], limit: int = 5) -> str:
    """The first few values, and how many more there are."""
    shown = ", ".join(quoted(v) for v in values[:limit])
    return shown if len(values) <= limit else f"{shown}, … ({len(values):,} in all)"


def quoted(value: object) -> str:
    """A value as a message shows it: text in quotes, 200 characters at most, and none that a terminal would obey."""
    text = str(value)
    cut = text[:SHOWN]
    shown = repr(cut) if isinstance(value, str) else "".join(c if c.isprintable() else repr(c)[1:-1] for c in cut)
    return shown if len(text) <= SHOWN else f"{shown}…"
