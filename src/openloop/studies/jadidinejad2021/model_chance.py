"""What the published code leaves to chance in a model's open-loop value, drawn again: threads and batches."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from openloop.core.feedback import Array, Feedback
from openloop.studies.jadidinejad2021.models import START, WHOLE, Ints, places, relevant, split_of
from openloop.studies.kit.trials import Given

WMF32 = "WMF32"  # of which the notebook prints three numbers


def variant(given: Given, *, kind: str, number: int) -> dict[str, Array]:
    """A trial: one model fitted on the whole log in another way, and its places in the open loop, as `models.trial`.

    "threads": BO, its rows in turn from `number` equal parts of the log. "batches": WMF32 from the published start,
    its batches drawn by the seed `number`. "ids": MF10, items numbered by their ids instead of by first appearance.
    """
    part = split_of(given, WHOLE, 0)
    log = _log(given, interleaved(len(part.train), number) if kind == "threads" else part.train)
    scores = VARIANTS[kind](log, number).scores(np.arange(log.n_users))  # (U, I)
    return {"open": places(scores, log, part.order, *relevant(given))}


def interleaved(n: int, threads: int) -> Ints:
    """The rows 0 … n − 1 as they come when as many threads go through equal parts of them, in step."""
    at = np.arange(-(-n // threads) * threads).reshape(threads, -1).T.ravel()
    return at[at < n]


def _log(given: Given, rows: Ints) -> Feedback:
    users, items = given["shape"].tolist()
    columns = (given[name][rows] for name in ("user", "item", "rating"))
    return Feedback.from_arrays(*columns, users=users, items=items)


def _other_threads(log: Feedback, _: int) -> Any:
    from openloop.learners.zoo_models import zoo

    return zoo("BO")["BO"].fit(log)


def _other_batches(log: Feedback, seed: int) -> Any:
    from openloop.learners.zoo_models import zoo

    start: Any = zoo("WMF", 32, START)[WMF32]
    start.model.max_iter = 0
    begun = start.fit(log).model_
    model: Any = zoo("WMF", 32, seed)[WMF32]
    model.model.init_params = {"U": begun.U, "V": begun.V}
    return model.fit(log)


def _by_id(log: Feedback, seed: int) -> Any:
    from openloop.learners.zoo_models import zoo

    return zoo("MF", 10, seed)["MF10"].set_params(order="sorted").fit(log)


VARIANTS: dict[str, Callable[[Feedback, int], Any]] = {
    "threads": _other_threads,
    "batches": _other_batches,
    "ids": _by_id,
}
