"""FEEDBACK → P: models of who saw what, each loaded when it is first asked for.

A propensity model knows nothing about metrics, estimators or recommenders. It speaks of the whole log: what a
split kept of it is the business of whoever scores a part.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from openloop.errors import AlignmentError

if TYPE_CHECKING:
    from openloop.core.feedback import Feedback
    from openloop.propensity.known import Known
    from openloop.propensity.uniform import Uniform

__all__ = ["Uniform", "Known"]

# scikit-learn's base class costs over a second, so a model is imported by its first use.
_HOME = {"Uniform": "uniform", "Known": "known"}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        msg = f"module {__name__!r} has no attribute {name!r}; models: {', '.join(__all__)}."
        raise AttributeError(msg)
    value = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def check_fitted(model: Any) -> None:
    """Refuse a model without `users_`, which every fit sets."""
    if not hasattr(model, "users_"):
        from sklearn.exceptions import NotFittedError

        msg = f"{type(model).__name__}: not fitted; call fit(feedback) before predict or matrix."
        raise NotFittedError(msg)


def check_grid(model: Any, feedback: Feedback) -> None:
    """Refuse a model that is not fitted, and a feedback on other users or items than it was fitted on."""
    check_fitted(model)
    if model.users_ != feedback.users or model.items_ != feedback.items:
        msg = (
            f"{type(model).__name__}: fitted on {len(model.users_):,} users × {len(model.items_):,} items, "
            f"asked about other ids, {feedback.n_users:,} × {feedback.n_items:,}; read that log with like=."
        )
        raise AlignmentError(msg)
