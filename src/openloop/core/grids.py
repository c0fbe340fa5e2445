"""Whether a model fits a log's users and items: the shape of an array, the vocabularies of a recommender."""

from __future__ import annotations

from typing import Any

from openloop.core.feedback import Feedback, Vocabulary
from openloop.errors import AlignmentError, PredictionError


def check_shape(what: str, shape: tuple[int, ...], log: Feedback) -> None:
    """Refuse an array that is not U × I."""
    if shape != (log.n_users, log.n_items):
        raise PredictionError(
            f"{what}: has shape {shape}, and the population is {log.n_users:,} users × {log.n_items:,} items, in order "
            "of id; give a row for each user and a column for each item, or pass users= and items= with all ids where "
            "the log is read."
        )


def check_ids(model: Any, log: Feedback) -> None:
    """Refuse a log of other users or items than those of the log that a model was fitted on."""
    if model.users_ != log.users or model.items_ != log.items:
        raise AlignmentError(
            f"{type(model).__name__}: fitted on {len(model.users_):,} users × {len(model.items_):,} items, but this "
            f"log has other ids, {log.n_users:,} × {log.n_items:,}; read it with like=."
        )


def check_vocabulary(what: str, model: Any, log: Feedback) -> None:
    """Refuse a model of other ids: codes of another vocabulary would be other users and items."""
    for side, ids in (("users", log.users), ("items", log.items)):
        vocabulary = getattr(model, f"{side}_", None)
        if isinstance(vocabulary, Vocabulary) and vocabulary != ids:
            raise AlignmentError(
                f"{what}: fitted on other {side} than the log's ({len(vocabulary):,} ids, the log has {len(ids):,}); "
                "read the log with like= the model or the log it was fitted on, or fit it on this log."
            )
