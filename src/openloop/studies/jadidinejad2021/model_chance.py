"""What the published code leaves to chance in a model's open-loop value, drawn again: threads and batches."""

from __future__ import annotations

from typing import Any

import numpy as np

from openloop.core.feedback import Array, Feedback
from openloop.studies.jadidinejad2021.models import START, WHOLE, Ints, places, relevant, split_of
from openloop.studies.kit.trials import Given

WMF32 = "WMF32"  # of which the notebook prints three numbers


def variant(given: Given, *, model: str, kind: str, number: int) -> dict[str, Array]:
    """A trial: a model fitted on the whole log in another way, and its places in the open loop, as `models.trial`.

    "threads": the rows in turn from `number` equal parts of the log. "batches": from the published start, batches and
    unrated items drawn by the seed `number`. "ids": items numbered by their ids instead of by first appearance.
    """
    from openloop.learners.zoo_models import ONE_SIZE, zoo

    part = split_of(given, WHOLE, 0)
    log = _log(given, interleaved(len(part.train), number) if kind == "threads" else part.train)
    family = model.rstrip("0123456789")
    unfitted = zoo(family, int(model[len(family) :]) if family not in ONE_SIZE else (), START)[model]
    changed: dict[str, Any] = {"batches": {"data_seed": number}, "ids": {"order": "sorted"}, "threads": {}}[kind]
    scores = unfitted.set_params(**changed).fit(log).scores(np.arange(log.n_users))  # (U, I)
    return {"open": places(scores, log, part.order, *relevant(given))}


def interleaved(n: int, threads: int) -> Ints:
    """The rows 0 … n − 1 as they come when as many threads go through equal parts of them, in step."""
    at = np.arange(-(-n // threads) * threads).reshape(threads, -1).T.ravel()
    return at[at < n]


def _log(given: Given, rows: Ints) -> Feedback:
    users, items = given["shape"].tolist()
    columns = (given[name][rows] for name in ("user", "item", "rating"))
    return Feedback.from_arrays(*columns, users=users, items=items)
