"""Every exception and warning of openloop.

    OpenloopError
    ├── InputError (ValueError)          an argument or a file cannot be used
    │   ├── ColumnError                  a column is missing or misnamed
    │   ├── FormatError                  a file is truncated, empty or of another format
    │   ├── EmptyError                   nothing is left to estimate from
    │   ├── DuplicateError               a (user, item) pair occurs twice
    │   ├── RatingError                  a rating is missing, not finite or not a number
    │   ├── PropensityError              a propensity is outside (0, 1]
    │   ├── UnknownIdError               a user or item is not in the vocabulary
    │   ├── AlignmentError               an array belongs to another log or order
    │   ├── PredictionError              predictions are missing, doubled or not finite
    │   ├── BalanceError                 no weights reproduce the requested means
    │   ├── NameFormatError              a metric or estimator name does not parse
    │   └── LeakError                    scoring would use data that it must not
    ├── UndefinedError (ValueError)      a combination has no definition, with the reason
    ├── DivergenceError (ArithmeticError)  a fit grew beyond what float64 can hold
    ├── DeviceError (RuntimeError)       no GPU, or too little memory on it
    └── MissingPackageError (ImportError)  an optional package is not installed

    OpenloopWarning (UserWarning)
    ├── BalanceWarning                   too many totals are balanced for the number of rows
    └── ThresholdWarning                 the default threshold makes nearly all rows, or nearly none, relevant

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
    """An argument or a file cannot be used."""


class ColumnError(InputError):
    """A column is missing or misnamed."""


class FormatError(InputError):
    """A file is truncated, empty or of another format."""


class EmptyError(InputError):
    """Nothing is left to estimate from."""


class DuplicateError(InputError):
    """A (user, item) pair occurs twice."""


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
    """No weights reproduce the requested means."""


class NameFormatError(InputError):
    """A metric or estimator name does not parse."""


class LeakError(InputError):
    """Scoring would use data that it must not."""


class UndefinedError(OpenloopError, ValueError):
    """A combination of metric, estimator and data has no definition."""


class DivergenceError(OpenloopError, ArithmeticError):
    """A fit grew beyond what float64 can hold."""


class DeviceError(OpenloopError, RuntimeError):
    """There is no GPU, or too little memory on it."""


class MissingPackageError(OpenloopError, ImportError):
    """An optional package is not installed."""


class OpenloopWarning(UserWarning):
    """The root of all warnings of openloop."""


class BalanceWarning(OpenloopWarning):
    """Too many totals are balanced for the number of rows."""


class ThresholdWarning(OpenloopWarning):
    """The default threshold makes nearly all rows, or nearly none, relevant."""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """' Did you mean X?' for the nearest known name, or the known names.

    Args:
        name: The name that was given.
        known: The names that exist.

    Returns:
        The end of a message, which begins with a space.

    Examples:
        >>> ol.errors.did_you_mean("snip", ["naive", "ips", "snips"])
        " Did you mean 'snips'?"
    """
    names = [str(k) for k in known]
    near = difflib.get_close_matches(name.lower(), [n.lower() for n in names], n=1, cutoff=0.6)
    if near:
        return f" Did you mean {quoted(next(n for n in names if n.lower() == near[0]))}?"
    return f" Known: {listing(names, limit=20)}."


def listing(values: Sequence[object], limit: int = 5) -> str:
    """The first few values, and how many there are in all.

    Args:
        values: The values that a message names.
        limit: How many of them are shown.

    Returns:
        The values as text, separated by commas.

    Examples:
        >>> ol.errors.listing([3, 1, 4, 1, 5], limit=2)
        '3, 1, … (5 in all)'
    """
    shown = ", ".join(quoted(v) for v in values[:limit])
    return shown if len(values) <= limit else f"{shown}, … ({len(values):,} in all)"


def quoted(value: object) -> str:
    """A value as a message shows it: at most 200 characters, without control characters that a terminal would obey.

    Args:
        value: Any value; text gets quotes.

    Returns:
        The value as printable text.

    Examples:
        >>> ol.errors.quoted("ml-100k")
        "'ml-100k'"
    """
    text = str(value)
    cut = text[:SHOWN]
    shown = repr(cut) if isinstance(value, str) else "".join(c if c.isprintable() else repr(c)[1:-1] for c in cut)
    return shown if len(text) <= SHOWN else f"{shown}…"
