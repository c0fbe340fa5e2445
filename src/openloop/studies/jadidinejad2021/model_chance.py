"""What the published code leaves to chance in a model's open-loop value, drawn again: threads and batches."""

from __future__ import annotations

from typing import Any

import numpy as np

from openloop.core.feedback import Array
from openloop.studies.jadidinejad2021.models import WHOLE, Ints, log_of, places, relevant, split_of, unfitted
from openloop.studies.kit.trials import Given

WMF32 = "WMF32"  # of which the notebook prints three numbers


def variant(given: Given, *, model: str, kind: str, number: int) -> dict[str, Array]:
    """A trial: a model fitted on the whole log in another way, and its places in the open loop, as `models.trial`.

    "threads": the rows in turn from `number` equal parts of the log. "batches": from the published start, batches and
    unrated items drawn by the seed `number`. "ids": items numbered by their ids instead of by first appearance.
    """
    part = split_of(given, WHOLE, 0)
    log = log_of(given, interleaved(len(part.train), number) if kind == "threads" else part.train)
    changed: dict[str, Any] = {"batches": {"data_seed": number}, "ids": {"order": "sorted"}, "threads": {}}[kind]
    scores = unfitted(model).set_params(**changed).fit(log).scores(np.arange(log.n_users))  # (U, I)
    return {"open": places(scores, log, part.order, *relevant(given))}


def interleaved(n: int, threads: int) -> Ints:
    """The rows 0 … n − 1 as they come when as many threads go through equal parts of them, in step."""
    at = np.arange(-(-n // threads) * threads).reshape(threads, -1).T.ravel()
    return at[at < n]
