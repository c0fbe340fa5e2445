"""FEEDBACK → P: models of who saw what, each loaded when it is first asked for.

A propensity model knows nothing about metrics, estimators or recommenders. It speaks of the whole log: what a
split kept of it is the business of whoever scores a part.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from openloop.propensity.boosted import Boosted
    from openloop.propensity.calibrated import Calibrated
    from openloop.propensity.checking import Check, check
    from openloop.propensity.known import Known
    from openloop.propensity.logistic import Logistic
    from openloop.propensity.low_rank import LowRank
    from openloop.propensity.naive_bayes import NaiveBayes
    from openloop.propensity.popularity import Popularity
    from openloop.propensity.uniform import Uniform

__all__ = [
    "Uniform", "Known", "Popularity", "NaiveBayes", "Logistic", "LowRank", "Boosted", "Calibrated",
    "check", "Check",
]  # fmt: skip

# scikit-learn's base class costs over a second, so a model is imported by its first use.
_HOME = {
    "Uniform": "uniform",
    "Known": "known",
    "Popularity": "popularity",
    "NaiveBayes": "naive_bayes",
    "Logistic": "logistic",
    "LowRank": "low_rank",
    "Boosted": "boosted",
    "Calibrated": "calibrated",
    "check": "checking",
    "Check": "checking",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        msg = f"module {__name__!r} has no attribute {name!r}; models: {', '.join(__all__)}."
        raise AttributeError(msg)
    value = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
